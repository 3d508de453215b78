//! Routes of the operator: the events.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;
use tidings_backbone::log::{Log, Offset, Recorded};
use tidings_event::{EventId, cloudevents};
use utoipa::ToSchema;

use super::{
    cursor::ListName,
    input::{PathText, Query},
    page::{self, CursorParams, Items},
    problem::{Name, Problem},
    state::{App, AppState},
};

const LATEST_EVENTS_MAX: u32 = 100;
/// Offsets that are looked through at once for events further down.
const STEP_EVENTS_MAX: i64 = 4_096;

/// An event and where it stands in the log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventView {
    /// Where the event stands in the log.
    offset: i64,
    /// The event as CloudEvents 1.0 JSON.
    #[schema(value_type = Object)]
    event: Box<RawValue>,
}

/// Events, in the order they were committed
#[utoipa::path(
    get, path = "/v1/admin/events", tag = "admin", operation_id = "events",
    params(
        CursorParams,
        ("latest" = Option<u32>, Query, minimum = 1, maximum = 100,
            description = "The newest events, instead of a page; not together with `cursor` or `limit`"),
        ("before" = Option<i64>, Query, minimum = 1,
            description = "The `limit` events just below this offset, to page back; not together with `cursor`"),
    ),
    responses((status = 200, body = Items<EventView>)),
)]
pub(super) async fn events(State(app): State<AppState>, mut query: Query) -> Result<Json<Items<EventView>>, Problem> {
    if let Some(latest) = query.number("latest", 1..=LATEST_EVENTS_MAX)? {
        query.end()?;
        let recorded = last_before(&app.log, Offset(i64::MAX), latest as usize).await?;
        return Ok(Json(Items { items: views(&recorded)?, next_cursor: None }));
    }
    let limit = page::limit(&mut query)? as usize;
    if let Some(text) = query.take("before")? {
        query.end()?;
        let recorded = events_before(&app, &text, limit).await?;
        return Ok(Json(Items { items: views(&recorded)?, next_cursor: None }));
    }
    let after: Option<Offset> = page::place(&mut query, ListName::Events)?;
    query.end()?;
    let mut recorded = app.log.read_on(after.unwrap_or_default(), limit + 1).await?;
    let more = recorded.len() > limit;
    recorded.truncate(limit);
    let next = recorded.last().map(|recorded| recorded.offset).filter(|_| more);
    Ok(Json(Items::new(views(&recorded)?, ListName::Events, next.as_ref())))
}

async fn events_before(app: &App, text: &str, limit: usize) -> Result<Vec<Recorded>, Problem> {
    let before = text.parse::<i64>().ok().filter(|before| *before >= 1 && !text.starts_with('+'));
    let before = before.ok_or_else(|| Problem::field("before", "must be a whole number of at least 1"))?;
    Ok(last_before(&app.log, Offset(before), limit).await?)
}

/// The last `limit` events below an offset, in order. Offsets may have holes, where a database gave numbers
/// to transactions that were rolled back: what falls short is looked for further down, in growing steps.
async fn last_before(log: &Log, before: Offset, limit: usize) -> tidings_backbone::Result<Vec<Recorded>> {
    let extent = log.extent().await?;
    let mut found: Vec<Recorded> = Vec::new();
    let mut upper = before.0.saturating_sub(1).min(extent.head.0);
    let mut step = i64::try_from(limit).unwrap_or(i64::MAX);
    while found.len() < limit && upper >= extent.earliest.0 {
        let lower = upper.saturating_sub(step).max(0);
        let mut part = log.read(Offset(lower), usize::try_from(step).unwrap_or(usize::MAX)).await?;
        part.retain(|recorded| recorded.offset.0 <= upper);
        part.append(&mut found);
        found = part;
        (upper, step) = (lower, (step * 2).min(STEP_EVENTS_MAX));
    }
    Ok(found.split_off(found.len().saturating_sub(limit)))
}

/// One event
#[utoipa::path(
    get, path = "/v1/admin/events/{event_id}", tag = "admin", operation_id = "event",
    params(("event_id" = String, Path, example = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c")),
    responses((status = 200, body = EventView), (status = 404, description = "not-found")),
)]
pub(super) async fn event(
    State(app): State<AppState>,
    PathText { name, text }: PathText,
    query: Query,
) -> Result<Json<EventView>, Problem> {
    query.end()?;
    let id: EventId = text.parse().map_err(|_| Problem::field(name, "must be a UUID"))?;
    let found = app.log.find(id).await?;
    let missing = || Problem::new(Name::NotFound).detail("no event that the log still holds has this id");
    view(&found.ok_or_else(missing)?).map(Json)
}

fn views(recorded: &[Recorded]) -> Result<Vec<EventView>, Problem> {
    recorded.iter().map(view).collect()
}

fn view(recorded: &Recorded) -> Result<EventView, Problem> {
    let internal = |error: &(dyn std::error::Error + 'static)| Problem::internal(error);
    let text = cloudevents::json::encode(&recorded.event, cloudevents::SOURCE).map_err(|error| internal(&error))?;
    let event = RawValue::from_string(text).map_err(|error| internal(&error))?;
    Ok(EventView { offset: recorded.offset.0, event })
}
