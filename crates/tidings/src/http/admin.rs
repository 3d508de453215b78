//! Routes of the operator: the flow, the events, the parking lot.

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;
use tidings_backbone::{
    log::{Offset, Recorded},
    parking,
    projector::{State as ProjectorState, Status},
};
use tidings_event::{EventId, cloudevents};
use utoipa::ToSchema;

use super::{
    cursor::ListName,
    input::{PathText, Query},
    moment::Moment,
    page::{self, CursorParams, Items},
    problem::{Name, Problem},
    state::{App, AppState},
};

pub(super) const FLOW_PATH: &str = "/v1/admin/flow";
/// Longest time a caller may let the flow settle.
pub(super) const SETTLE_TIME_MAX: Duration = Duration::from_secs(60);
const SETTLE_MILLIS_MAX: u32 = 60_000;
const LATEST_EVENTS_MAX: u32 = 100;
/// Parked keys that one answer shows, the longest parked first.
const PARKED_KEYS_MAX: usize = 1_000;
/// The `source` attribute of events as the API shows them.
pub(crate) const EVENT_SOURCE: &str = "/tidings";

/// The path of events through the stages, as it stands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Flow {
    /// When this was read.
    at: Moment,
    /// Whether every projector has dealt with all that was committed when the request came, and
    /// no key waits for a retry.
    settled: bool,
    /// The log.
    log: LogView,
    /// The stages, in the order of the path.
    stages: Vec<Stage>,
}

/// What the log holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogView {
    /// Offset of the first event still held.
    earliest: i64,
    /// Offset of the last event.
    head: i64,
}

/// One stage of the path.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stage {
    /// Which kind of stage: `facts`, `log` or `projector`.
    #[schema(example = "projector")]
    stage: &'static str,
    /// Which of its kind.
    #[schema(example = "relation")]
    name: String,
    /// Offset of the last event it has dealt with; null where events have no offset yet.
    position: Option<i64>,
    /// Commands or events dealt with since the server started: two answers make a rate.
    total: u64,
    /// Events committed and not yet dealt with.
    lag: i64,
    /// Age of the oldest of them, in milliseconds.
    oldest_age_ms: Option<i64>,
    /// Keys that wait for a retry.
    parked_keys: i64,
    /// Keys whose attempts are spent.
    dead_keys: i64,
    /// `running`, `waiting` (another process runs it), `backing_off`, `stopped` or `unregistered`.
    #[schema(example = "running")]
    state: &'static str,
    /// Why, when it is not simply running.
    detail: Option<String>,
}

/// The flow of events through the stages
#[utoipa::path(
    get, path = FLOW_PATH, tag = "admin", operation_id = "flow",
    params(("settle_ms" = Option<u32>, Query, minimum = 0, maximum = 60000,
        description = "Answer once everything committed by now was dealt with, or after this many milliseconds")),
    responses((status = 200, body = Flow)),
)]
pub(super) async fn flow(State(app): State<AppState>, mut query: Query) -> Result<Json<Flow>, Problem> {
    let settle_ms = query.number("settle_ms", 0..=SETTLE_MILLIS_MAX)?;
    query.end()?;
    let waited = match settle_ms.filter(|millis| *millis > 0) {
        Some(millis) => Some(wait(&app, Duration::from_millis(millis.into())).await?),
        None => None,
    };
    let extent = app.projectors.extent().await?;
    let statuses = app.projectors.statuses().await?;
    let settled = waited.unwrap_or_else(|| statuses.iter().all(|status| is_settled(status, extent.head)));
    let mut stages: Vec<Stage> = app.ledgers.decided().into_iter().map(facts_stage).collect();
    stages.push(log_stage(&app, extent.head));
    stages.extend(statuses.into_iter().map(|status| projector_stage(&app, status)));
    let log = LogView { earliest: extent.earliest.0, head: extent.head.0 };
    Ok(Json(Flow { at: Moment(app.clock.now()), settled, log, stages }))
}

/// Lets the flow settle; a server that shuts down waits for nobody.
async fn wait(app: &App, time_max: Duration) -> Result<bool, Problem> {
    tokio::select! {
        settled = app.projectors.settle(time_max) => Ok(settled?),
        () = app.shutdown.cancelled() => Ok(false),
    }
}

fn is_settled(status: &Status, head: Offset) -> bool {
    let foreign = status.state == ProjectorState::Unregistered;
    foreign || (status.position >= head && status.retrying_keys == 0)
}

fn facts_stage((ledger, decided): (&'static str, u64)) -> Stage {
    Stage {
        stage: "facts",
        name: format!("ledger.{ledger}"),
        position: None,
        total: decided,
        lag: 0,
        oldest_age_ms: None,
        parked_keys: 0,
        dead_keys: 0,
        state: "running",
        detail: None,
    }
}

fn log_stage(app: &App, head: Offset) -> Stage {
    let position = Some(head.0);
    let total = since(app.baseline.head, head);
    Stage { stage: "log", name: "outbox".to_owned(), position, total, ..facts_stage(("", 0)) }
}

fn projector_stage(app: &App, status: Status) -> Stage {
    let before = app.baseline.positions.get(&status.name).copied().unwrap_or_default();
    Stage {
        stage: "projector",
        // By position, so that it is true also when another process runs the projector.
        total: since(before, status.position),
        name: status.name,
        position: Some(status.position.0),
        lag: status.lag_events,
        oldest_age_ms: status.oldest_age_ms,
        parked_keys: status.retrying_keys,
        dead_keys: status.dead_keys,
        state: match status.state {
            ProjectorState::Waiting => "waiting",
            ProjectorState::Running => "running",
            ProjectorState::BackingOff => "backing_off",
            ProjectorState::Stopped => "stopped",
            ProjectorState::Unregistered => "unregistered",
        },
        detail: status.detail,
    }
}

fn since(before: Offset, now: Offset) -> u64 {
    u64::try_from(now.0 - before.0).unwrap_or(0)
}

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
        let recorded = app.log.tail(latest as usize).await?;
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
    let mut recorded = app.log.read(after.unwrap_or_default(), limit + 1).await?;
    let more = recorded.len() > limit;
    recorded.truncate(limit);
    let next = recorded.last().map(|recorded| recorded.offset).filter(|_| more);
    Ok(Json(Items::new(views(&recorded)?, ListName::Events, next.as_ref())))
}

/// Offsets of the log have no holes but what retention took from its start, so a page back is a range.
async fn events_before(app: &App, text: &str, limit: usize) -> Result<Vec<Recorded>, Problem> {
    let before = text.parse::<i64>().ok().filter(|before| *before >= 1 && !text.starts_with('+'));
    let before = before.ok_or_else(|| Problem::field("before", "must be a whole number of at least 1"))?;
    let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = before.saturating_sub(1).saturating_sub(wanted).max(0);
    let mut recorded = app.log.read(Offset(after), limit).await?;
    // Near the start of the log fewer than `limit` are below; what was read beyond is not part of the page.
    recorded.retain(|recorded| recorded.offset.0 < before);
    Ok(recorded)
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
    let text = cloudevents::json::encode(&recorded.event, EVENT_SOURCE).map_err(|error| internal(&error))?;
    let event = RawValue::from_string(text).map_err(|error| internal(&error))?;
    Ok(EventView { offset: recorded.offset.0, event })
}

/// A key that waits because one of its events failed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ParkedView {
    /// The projector whose event failed.
    projector: String,
    /// The key that waits.
    key: String,
    /// `retrying`, or `dead` when its attempts are spent.
    state: &'static str,
    /// Failed tries of the event at its head.
    attempts: u32,
    /// When it is tried next; null for a dead key.
    next_attempt_at: Option<Moment>,
    /// The last error and its causes.
    error: String,
    /// When the key was parked.
    parked_at: Moment,
    /// Events that wait, the failed one included.
    waiting: u64,
}

/// Parked keys, the longest parked first
///
/// At most 1,000 are shown; the flow counts all.
#[utoipa::path(
    get, path = "/v1/admin/parked", tag = "admin", operation_id = "parked",
    responses((status = 200, body = Items<ParkedView>)),
)]
pub(super) async fn parked(State(app): State<AppState>, query: Query) -> Result<Json<Items<ParkedView>>, Problem> {
    query.end()?;
    let mut tx = app.db.read().await?;
    let keys = parking::list(tx.conn(), PARKED_KEYS_MAX).await?;
    let view = |key: parking::ParkedKey| {
        let retrying = key.state == parking::State::Retrying;
        ParkedView {
            projector: key.projector,
            key: key.key,
            state: if retrying { "retrying" } else { "dead" },
            attempts: key.attempts,
            next_attempt_at: retrying.then_some(Moment(key.next_attempt_at)),
            error: key.error,
            parked_at: Moment(key.parked_at),
            waiting: key.waiting,
        }
    };
    Ok(Json(Items { items: keys.into_iter().map(view).collect(), next_cursor: None }))
}
