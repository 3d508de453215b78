//! Routes of the operator: rebuilds of projections.

use std::num::NonZeroU32;

use axum::{
    Json,
    extract::{Extension, State},
    http::HeaderMap,
};
use serde::{Deserialize, Serialize};
use tidings_backbone::{
    Error,
    audit::Actor,
    projector::rebuild::{Rebuild, Refusal},
};
use utoipa::ToSchema;

use super::{
    body,
    input::{IDEMPOTENCY_KEY_TEXT, NoQuery, PathText, Query, action_key},
    page::Items,
    problem::{Name, Problem},
    state::{App, AppState},
};
use crate::{
    auth::Identity,
    rebuilds::{self, RebuildView},
};

/// What is to be rebuilt, and how.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRebuild {
    /// The projector.
    #[schema(example = "relation")]
    projector: String,
    /// `beginning` (of the log, or facts where it no longer reaches back to it), `facts`, a moment in RFC 3339, or
    /// an offset of the outbox. `beginning` unless given.
    #[serde(default)]
    from: Option<String>,
    /// Where a replay in place ends: a moment or an offset, not before `from`.
    #[serde(default)]
    until: Option<String>,
    /// Whether events are applied to the live generation once more, instead of to a new one.
    #[serde(default)]
    in_place: bool,
    /// Events, or rows of facts, of one second; no limit unless given.
    #[serde(default)]
    #[schema(value_type = Option<u32>, minimum = 1)]
    events_per_second: Option<NonZeroU32>,
    /// Whether it waits for the switch to be asked for; not in place, where there is none.
    #[serde(default)]
    hold: bool,
    /// Whether it is only said what would be begun.
    #[serde(default)]
    dry_run: bool,
}

/// The last rebuild of each projector
#[utoipa::path(
    get, path = "/v1/admin/rebuilds", tag = "admin", operation_id = "rebuilds",
    responses((status = 200, body = Items<RebuildView>)),
)]
pub(super) async fn rebuilds(State(app): State<AppState>, _: NoQuery) -> Result<Json<Items<RebuildView>>, Problem> {
    let items = rebuilds::views(&app.projectors.rebuilds(), app.clock.now()).await?;
    Ok(Json(Items { items, next_cursor: None }))
}

/// Rebuild a projector
///
/// The next generation of its projection is built beside the live one, checked against facts, and readers are
/// given it at once. Reads and writes go on meanwhile.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds", tag = "admin", operation_id = "startRebuild",
    params(("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT)),
    request_body = NewRebuild,
    responses(
        (status = 200, body = RebuildView, description = "Asked for, or with `dry_run` what would be"),
        (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
        (status = 422, description = "idempotency-key-reused"),
    ),
)]
pub(super) async fn start(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    headers: HeaderMap,
    body::Json(new): body::Json<NewRebuild>,
) -> Result<Json<RebuildView>, Problem> {
    let key = action_key(&headers, &identity, "rebuild/start", &new)?;
    let NewRebuild { projector, from, until, in_place, events_per_second, hold, dry_run } = new;
    let start = rebuilds::start(from.as_deref(), until.as_deref(), in_place, events_per_second, hold);
    let start = start.map_err(|(field, wrong)| Problem::field(field, wrong))?;
    let rebuilds = app.projectors.rebuilds();
    let begun = match dry_run {
        true => rebuilds.would_start(&projector, start).await,
        false => rebuilds.start(&projector, start, &actor(&identity), key.as_ref()).await,
    };
    shown(&app, begun).await
}

/// Hold a rebuild up
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/pause", tag = "admin", operation_id = "pauseRebuild",
    params(
        ("projector" = String, Path, example = "relation"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused"), (status = 422, description = "idempotency-key-reused")),
)]
pub(super) async fn pause(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    headers: HeaderMap,
    _: NoQuery,
) -> Result<Json<RebuildView>, Problem> {
    let key = action_key(&headers, &identity, "rebuild/pause", &text)?;
    shown(&app, app.projectors.rebuilds().pause(&text, &actor(&identity), key.as_ref()).await).await
}

/// Go on with a rebuild
///
/// With one that was held up, at another pace if one is given; one that failed is checked again.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/resume", tag = "admin", operation_id = "resumeRebuild",
    params(
        ("projector" = String, Path, example = "relation"),
        ("events_per_second" = Option<u32>, Query, minimum = 0, description = "At this pace; 0 for no limit"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused"), (status = 422, description = "idempotency-key-reused")),
)]
pub(super) async fn resume(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Json<RebuildView>, Problem> {
    let limit = query.number("events_per_second", 0..=u32::MAX)?.map(u64::from);
    query.end()?;
    let key = action_key(&headers, &identity, "rebuild/resume", &(&text, limit))?;
    shown(&app, app.projectors.rebuilds().resume(&text, limit, &actor(&identity), key.as_ref()).await).await
}

/// Give readers what is built
///
/// Once it has caught up and was checked again.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/switch", tag = "admin", operation_id = "switchRebuild",
    params(
        ("projector" = String, Path, example = "relation"),
        ("force" = Option<bool>, Query, description = "Whatever the check says, and without the events of dead keys"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused"), (status = 422, description = "idempotency-key-reused")),
)]
pub(super) async fn switch(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Json<RebuildView>, Problem> {
    let force = query.flag("force")?;
    query.end()?;
    let key = action_key(&headers, &identity, "rebuild/switch", &(&text, force))?;
    shown(&app, app.projectors.rebuilds().switch(&text, force, &actor(&identity), key.as_ref()).await).await
}

/// Give a rebuild up
///
/// What was built is removed.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/cancel", tag = "admin", operation_id = "cancelRebuild",
    params(
        ("projector" = String, Path, example = "relation"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused"), (status = 422, description = "idempotency-key-reused")),
)]
pub(super) async fn cancel(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    headers: HeaderMap,
    _: NoQuery,
) -> Result<Json<RebuildView>, Problem> {
    let key = action_key(&headers, &identity, "rebuild/cancel", &text)?;
    shown(&app, app.projectors.rebuilds().cancel(&text, &actor(&identity), key.as_ref()).await).await
}

fn actor(identity: &Identity) -> Actor {
    Actor::new(&identity.subject)
}

async fn shown(app: &App, rebuild: tidings_backbone::Result<Rebuild>) -> Result<Json<RebuildView>, Problem> {
    let rebuild = rebuild.map_err(|error| match &error {
        Error::Rebuild { refusal: Refusal::UnknownProjector, .. } => {
            Problem::new(Name::NotFound).detail("no projector has this name")
        }
        Error::Rebuild { refusal: Refusal::KeyReused, .. } => Problem::new(Name::IdempotencyKeyReused),
        Error::Rebuild { projector, refusal } => match rebuilds::wrong_part(refusal) {
            Some((field, wrong)) => Problem::field(field, wrong),
            None => Problem::new(Name::RebuildRefused).detail(rebuilds::refused(projector, refusal)),
        },
        _ => error.into(),
    })?;
    let view = rebuilds::view(&app.projectors.rebuilds(), rebuild, app.clock.now()).await?;
    Ok(Json(view))
}
