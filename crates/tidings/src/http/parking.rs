//! Routes of the parking lot: what waits, and what an operator does about it.

mod view;

use std::num::NonZeroU32;

use axum::{
    Json,
    extract::{Extension, State},
};
use serde::Deserialize;
use tidings_backbone::{
    audit::{Actor, Reason},
    limits::{EVENT_TEXT_BYTES_MAX, PARKING_ERROR_CHARS_MAX},
    log::{Offset, Part},
    parking::{self, Filter, Refusal, Which},
};
use tidings_event::{EventId, Timestamp};
use utoipa::{IntoParams, ToSchema};

use self::view::{DiscardedView, ParkedView, PlanView, WaitingView};
use super::{
    body,
    cursor::ListName,
    input::{NoQuery, Query},
    page::{self, CursorParams, Items},
    problem::{Name, Problem},
    state::AppState,
};
use crate::auth::Identity;

/// Parked keys of one page, unless it asks for fewer.
const PARKED_KEYS_MAX: u32 = 1_000;

/// Which parked keys are meant: those that meet all that is given.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters; they are read by `filter`")]
pub(super) struct FilterParams {
    /// Of this projector.
    projector: Option<String>,
    /// This key.
    key: Option<String>,
    /// The event at its head is of this type.
    event_type: Option<String>,
    /// Its last error contains this text, in the same letters.
    error: Option<String>,
    /// `retrying`, `dead` or `redriving`.
    state: Option<String>,
    /// Parked at this time (RFC 3339) or later.
    parked_from: Option<String>,
    /// Parked before this time.
    parked_before: Option<String>,
    /// Keys wanted.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    limit: Option<u32>,
    /// `next_cursor` of the part before.
    cursor: Option<String>,
}

/// What a request gave of a filter.
#[derive(Debug, Default)]
struct Given {
    projector: Option<String>,
    key: Option<String>,
    event_type: Option<String>,
    error: Option<String>,
    state: Option<String>,
    parked_from: Option<String>,
    parked_before: Option<String>,
}

impl Given {
    fn filter(self) -> Result<Filter, Problem> {
        let time = |name: &'static str, text: Option<String>| {
            let wrong = || Problem::field(name, "must be a time such as 2026-11-29T15:26:17.123Z");
            text.map(|text| text.parse::<Timestamp>().map_err(|_| wrong())).transpose()
        };
        let state = self.state.map(|text| text.parse::<parking::State>());
        Ok(Filter {
            projector: checked("projector", self.projector, EVENT_TEXT_BYTES_MAX)?,
            key: checked("key", self.key, EVENT_TEXT_BYTES_MAX)?,
            event_type: checked("event_type", self.event_type, EVENT_TEXT_BYTES_MAX)?,
            error: checked("error", self.error, PARKING_ERROR_CHARS_MAX)?,
            state: state
                .transpose()
                .map_err(|_| Problem::field("state", "must be `retrying`, `dead` or `redriving`"))?,
            parked_from: time("parked_from", self.parked_from)?,
            parked_before: time("parked_before", self.parked_before)?,
        })
    }
}

fn checked(name: &'static str, text: Option<String>, bytes_max: usize) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.is_empty() || text.len() > bytes_max => {
            Err(Problem::field(name, format!("must have 1 to {bytes_max} bytes")))
        }
        text => Ok(text),
    }
}

/// Parked keys, the longest parked first
///
/// With `projector` and `key` it shows one key. It may be parked in several parts of the log, each a line.
#[utoipa::path(
    get, path = "/v1/admin/parked", tag = "admin", operation_id = "parked",
    params(FilterParams),
    responses((status = 200, body = Items<ParkedView>)),
)]
pub(super) async fn parked(State(app): State<AppState>, mut query: Query) -> Result<Json<Items<ParkedView>>, Problem> {
    let limit = query.number("limit", 1..=PARKED_KEYS_MAX)?.unwrap_or(PARKED_KEYS_MAX) as usize;
    let after: Option<parking::Mark> = page::place(&mut query, ListName::Parked)?;
    let given = Given {
        projector: query.take("projector")?,
        key: query.take("key")?,
        event_type: query.take("event_type")?,
        error: query.take("error")?,
        state: query.take("state")?,
        parked_from: query.take("parked_from")?,
        parked_before: query.take("parked_before")?,
    };
    query.end()?;
    let filter = given.filter()?;
    let mut tx = app.db.read().await?;
    let mut keys = parking::list(tx.conn(), &filter, after.as_ref(), limit + 1).await?;
    let more = keys.len() > limit;
    keys.truncate(limit);
    let next = keys.last().map(parking::ParkedKey::mark).filter(|_| more);
    let items = keys.into_iter().map(ParkedView::from).collect();
    Ok(Json(Items::new(items, ListName::Parked, next.as_ref())))
}

/// The events that wait under a parked key, as they will be applied
///
/// An answer may end before `limit` when the events are large; `next_cursor` says whether there are more.
#[utoipa::path(
    get, path = "/v1/admin/parked/events", tag = "admin", operation_id = "parkedEvents",
    params(
        ("projector" = String, Query, example = "relation"),
        ("key" = String, Query, example = "17"),
        CursorParams,
    ),
    responses((status = 200, body = Items<WaitingView>)),
)]
pub(super) async fn parked_events(
    State(app): State<AppState>,
    mut query: Query,
) -> Result<Json<Items<WaitingView>>, Problem> {
    let limit = page::limit(&mut query)? as usize;
    let after: Option<(Part, Offset)> = page::place(&mut query, ListName::ParkedEvents)?;
    let (projector, key) = (query.require("projector")?, query.require("key")?);
    query.end()?;
    let mut tx = app.db.read().await?;
    let place = after.as_ref().map(|(part, offset)| (part, *offset));
    let (events, more) = parking::events(tx.conn(), &projector, &key, place, limit).await?;
    let next = events.last().map(|event| (event.part.clone(), event.offset)).filter(|_| more);
    let items = events.iter().map(WaitingView::new).collect::<Result<_, _>>()?;
    Ok(Json(Items::new(items, ListName::ParkedEvents, next.as_ref())))
}

/// Which keys are to be redriven, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RedriveRequest {
    /// Of this projector.
    #[schema(example = "relation")]
    projector: Option<String>,
    /// This key.
    #[schema(example = "17")]
    key: Option<String>,
    /// The event at its head is of this type.
    event_type: Option<String>,
    /// Its last error contains this text, in the same letters.
    error: Option<String>,
    /// `retrying`, `dead` or `redriving`. Without it, and without `projector` and `key` both, what is being
    /// redriven already is passed over.
    state: Option<String>,
    /// Parked at this time (RFC 3339) or later.
    parked_from: Option<String>,
    /// Parked before this time.
    parked_before: Option<String>,
    /// `true` means every key, and is needed where nothing above is given.
    #[serde(default)]
    all: bool,
    /// Events a second over all the keys; without it, as fast as can be.
    #[schema(value_type = Option<u32>, minimum = 1)]
    events_per_second: Option<NonZeroU32>,
    /// Why, for the audit.
    reason: Option<String>,
    /// Say what would be done, and change nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Let parked keys be tried again
///
/// Each key in the order of its events, the longest parked key first. A key that was dead stops at its first new
/// failure. Nothing is tried before the answer: the projector does it then. Asking again changes nothing but the
/// times, and what is asked is written to the audit.
#[utoipa::path(
    post, path = "/v1/admin/parked/redrive", tag = "admin", operation_id = "redrive",
    request_body = RedriveRequest,
    responses(
        (status = 200, body = PlanView),
        (status = 404, description = "not-found: no parked key matches"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
    ),
)]
pub(super) async fn redrive(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    body::Json(asked): body::Json<RedriveRequest>,
) -> Result<Json<PlanView>, Problem> {
    let RedriveRequest { all, events_per_second, reason, dry_run, .. } = asked;
    let given = Given {
        projector: asked.projector,
        key: asked.key,
        event_type: asked.event_type,
        error: asked.error,
        state: asked.state,
        parked_from: asked.parked_from,
        parked_before: asked.parked_before,
    };
    let filter = given.filter()?;
    match (filter.is_empty(), all) {
        (true, false) => return Err(Problem::field("all", "must be `true` where no filter is given")),
        (false, true) => return Err(Problem::field("all", "must not be `true` beside a filter")),
        _ => {}
    }
    let reason = reason.map(|text| self::reason(&text)).transpose()?;
    let wanted = parking::Redrive { filter, events_per_second, reason };
    let planned = if dry_run {
        let mut tx = app.db.read().await?;
        parking::plan(tx.conn(), &wanted).await?
    } else {
        parking::redrive(&app.db, &wanted, &Actor::new(&identity.subject), app.clock.now()).await?
    };
    Ok(Json(PlanView::new(&planned.map_err(refused)?, dry_run)))
}

/// Which waiting event is to be discarded, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiscardRequest {
    /// The projector for which it waits.
    #[schema(example = "relation")]
    projector: String,
    /// The key under which it waits.
    #[schema(example = "17")]
    key: String,
    /// The event's id; or else `offset`.
    #[schema(example = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c")]
    event_id: Option<String>,
    /// Where it stands in the log, of what has no id.
    offset: Option<i64>,
    /// The part of the log that `offset` is in, as `topic/partition`; needed where the key waits in several.
    #[schema(example = "tidings.relation/3")]
    part: Option<String>,
    /// Why, for the audit: 1 to 2,000 bytes.
    #[schema(example = "made by a script with a wrong clock; the fact was mended by hand")]
    reason: String,
}

impl DiscardRequest {
    fn which(&self) -> Result<Which, Problem> {
        let part = self.part.as_deref().map(str::parse::<Part>).transpose();
        let part = part.map_err(|_| Problem::field("part", "must be `topic/partition`"))?;
        match (self.event_id.as_deref(), self.offset) {
            (Some(_), Some(_)) => Err(Problem::field("offset", "must not be given together with `event_id`")),
            (None, None) => Err(Problem::field("event_id", "is missing, and so is `offset`")),
            (Some(_), None) if part.is_some() => Err(Problem::field("part", "goes with `offset` alone")),
            (Some(id), None) => match id.parse::<EventId>() {
                Ok(id) => Ok(Which::Id(id.to_string())),
                Err(_) => Err(Problem::field("event_id", "must be a UUID")),
            },
            (None, Some(offset)) => Ok(Which::At(part, Offset(offset))),
        }
    }
}

/// Discard one waiting event, for good
///
/// It is never applied for this projector then. The audit keeps it whole, with the reason. The rest of its key
/// goes on: if it was the one that failed, the next one is tried at once, with fresh attempts.
#[utoipa::path(
    post, path = "/v1/admin/parked/discard", tag = "admin", operation_id = "discard",
    request_body = DiscardRequest,
    responses(
        (status = 200, body = DiscardedView),
        (status = 404, description = "not-found: no such event waits"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
    ),
)]
pub(super) async fn discard(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    body::Json(asked): body::Json<DiscardRequest>,
) -> Result<Json<DiscardedView>, Problem> {
    let (which, reason) = (asked.which()?, reason(&asked.reason)?);
    let wanted = parking::Discard { projector: asked.projector, key: asked.key, which, reason };
    let discarded = parking::discard(&app.db, &wanted, &Actor::new(&identity.subject), app.clock.now()).await?;
    DiscardedView::new(&discarded.map_err(refused)?).map(Json)
}

fn reason(text: &str) -> Result<Reason, Problem> {
    text.parse().map_err(|error: tidings_backbone::audit::InvalidReason| Problem::field("reason", error.to_string()))
}

fn refused(refusal: Refusal) -> Problem {
    match &refusal {
        Refusal::NoneParked | Refusal::NoSuchEvent => Problem::new(Name::NotFound).detail(refusal.to_string()),
        Refusal::TooLong { .. } => Problem::field("events_per_second", format!("is too low: {refusal}")),
        Refusal::SeveralEvents { .. } => Problem::field("event_id", format!("is not one event: {refusal}")),
    }
}
