//! Routes of the parking lot: what waits, and what an operator does about it.

mod request;
mod view;

use axum::{
    Json,
    extract::{Extension, State},
    http::HeaderMap,
};
use tidings_backbone::{
    audit::Actor,
    log::{Offset, Part},
    parking::{self, Refusal},
};
use utoipa::IntoParams;

use self::{
    request::{DiscardRequest, Given, RedriveRequest},
    view::{DiscardedView, ParkedView, PlanView, WaitingView},
};
use super::{
    body,
    cursor::ListName,
    input::{IDEMPOTENCY_KEY_TEXT, NoQuery, Query, action_key},
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

/// Let parked keys be tried again
///
/// Each key in the order of its events, the longest parked key first. A key that was dead stops at its first new
/// failure. Nothing is tried before the answer: the projector does it then. Asking again changes nothing but the
/// times, and what is asked is written to the audit. With `shown` it does what a dry run has shown, and nothing more.
/// A dry run does nothing, and keeps no answer.
#[utoipa::path(
    post, path = "/v1/admin/parked/redrive", tag = "admin", operation_id = "redrive",
    params(("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT)),
    request_body = RedriveRequest,
    responses(
        (status = 200, body = PlanView),
        (status = 404, description = "not-found: no parked key matches"),
        (status = 409, description = "redrive-refused: it would do more than `shown`"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
        (status = 422, description = "idempotency-key-reused"),
    ),
)]
pub(super) async fn redrive(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    headers: HeaderMap,
    body::Json(asked): body::Json<RedriveRequest>,
) -> Result<Json<PlanView>, Problem> {
    let key = action_key(&headers, &identity, "redrive", &asked)?;
    let (wanted, dry_run) = asked.wanted()?;
    let planned = if dry_run {
        let mut tx = app.db.read().await?;
        parking::plan(tx.conn(), &wanted).await?
    } else {
        parking::redrive(&app.db, &wanted, &Actor::new(&identity.subject), key.as_ref(), app.clock.now()).await?
    };
    Ok(Json(PlanView::new(&planned.map_err(refused)?, dry_run)))
}

/// Discard one waiting event, for good
///
/// It is not applied for this projector then, unless a rebuild applies the log again. The audit keeps it whole, with
/// the reason. The rest of its key
/// goes on: if it was the one that failed, the next one is tried at once, with fresh attempts.
#[utoipa::path(
    post, path = "/v1/admin/parked/discard", tag = "admin", operation_id = "discard",
    params(("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT)),
    request_body = DiscardRequest,
    responses(
        (status = 200, body = DiscardedView),
        (status = 404, description = "not-found: no such event waits"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
        (status = 422, description = "idempotency-key-reused"),
    ),
)]
pub(super) async fn discard(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    headers: HeaderMap,
    body::Json(asked): body::Json<DiscardRequest>,
) -> Result<Json<DiscardedView>, Problem> {
    let key = action_key(&headers, &identity, "discard", &asked)?;
    let (wanted, actor) = (asked.wanted()?, Actor::new(&identity.subject));
    let discarded = parking::discard(&app.db, &wanted, &actor, key.as_ref(), app.clock.now()).await?;
    DiscardedView::new(&discarded.map_err(refused)?).map(Json)
}

fn refused(refusal: Refusal) -> Problem {
    match &refusal {
        Refusal::NoneParked | Refusal::NoSuchEvent => Problem::new(Name::NotFound).detail(refusal.to_string()),
        Refusal::MoreThanShown { .. } => Problem::new(Name::RedriveRefused).detail(refusal.to_string()),
        Refusal::TooLong { .. } => Problem::field("events_per_second", format!("is too low: {refusal}")),
        Refusal::KeyReused => Problem::new(Name::IdempotencyKeyReused),
        Refusal::SeveralEvents { .. } => Problem::field("part", format!("is needed, with `offset`: {refusal}")),
    }
}
