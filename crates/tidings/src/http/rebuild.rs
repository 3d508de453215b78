//! Routes of the operator: rebuilds of projections.

use axum::{
    Json,
    extract::{Extension, State},
};
use serde::Deserialize;
use tidings_backbone::{
    audit::Actor,
    projector::rebuild::{Rebuild, Refusal},
};
use utoipa::ToSchema;

use super::{
    body,
    input::{NoQuery, PathText, Query},
    page::Items,
    problem::{Name, Problem},
    state::{App, AppState},
};
use crate::{
    auth::Identity,
    rebuilds::{self, RebuildView},
};

/// What is to be rebuilt, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRebuild {
    /// The projector.
    #[schema(example = "relation")]
    projector: String,
    /// `beginning` (of the log, or facts where it no longer reaches back to it), `facts`, a moment in RFC 3339, or
    /// an offset of the outbox. `beginning` unless given.
    #[serde(default)]
    from: Option<String>,
    /// Where a replay in place ends: a moment or an offset.
    #[serde(default)]
    until: Option<String>,
    /// Whether events are applied to the live generation once more, instead of to a new one.
    #[serde(default)]
    in_place: bool,
    /// Events, or rows of facts, of one second; no limit unless given.
    #[serde(default)]
    events_per_second: Option<u32>,
    /// Whether it waits for the switch to be asked for.
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
    request_body = NewRebuild,
    responses(
        (status = 200, body = RebuildView, description = "Asked for, or with `dry_run` what would be"),
        (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
    ),
)]
pub(super) async fn start(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    body::Json(new): body::Json<NewRebuild>,
) -> Result<Json<RebuildView>, Problem> {
    let NewRebuild { projector, from, until, in_place, events_per_second, hold, dry_run } = new;
    let limit = events_per_second.map(u64::from);
    let start = rebuilds::start(from.as_deref(), until.as_deref(), in_place, limit, hold);
    let start = start.map_err(|(field, wrong)| Problem::field(field, wrong))?;
    let rebuilds = app.projectors.rebuilds();
    let begun = match dry_run {
        true => rebuilds.would_start(&projector, start).await,
        false => rebuilds.start(&projector, start, &actor(&identity)).await,
    };
    shown(&app, begun).await
}

/// Hold a rebuild up
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/pause", tag = "admin", operation_id = "pauseRebuild",
    params(("projector" = String, Path, example = "relation")),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused")),
)]
pub(super) async fn pause(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    _: NoQuery,
) -> Result<Json<RebuildView>, Problem> {
    shown(&app, app.projectors.rebuilds().pause(&text, &actor(&identity)).await).await
}

/// Go on with a rebuild
///
/// With one that was held up, at another pace if one is given; one that failed is checked again.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/resume", tag = "admin", operation_id = "resumeRebuild",
    params(
        ("projector" = String, Path, example = "relation"),
        ("events_per_second" = Option<u32>, Query, minimum = 0, description = "At this pace; 0 for no limit"),
    ),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused")),
)]
pub(super) async fn resume(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    mut query: Query,
) -> Result<Json<RebuildView>, Problem> {
    let limit = query.number("events_per_second", 0..=u32::MAX)?.map(u64::from);
    query.end()?;
    shown(&app, app.projectors.rebuilds().resume(&text, limit, &actor(&identity)).await).await
}

/// Give readers what is built
///
/// Once it has caught up and was checked again.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/switch", tag = "admin", operation_id = "switchRebuild",
    params(
        ("projector" = String, Path, example = "relation"),
        ("force" = Option<bool>, Query, description = "Whatever the check says, and without the events of dead keys"),
    ),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused")),
)]
pub(super) async fn switch(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    mut query: Query,
) -> Result<Json<RebuildView>, Problem> {
    let force = query.flag("force")?;
    query.end()?;
    shown(&app, app.projectors.rebuilds().switch(&text, force, &actor(&identity)).await).await
}

/// Give a rebuild up
///
/// What was built is removed.
#[utoipa::path(
    post, path = "/v1/admin/rebuilds/{projector}/cancel", tag = "admin", operation_id = "cancelRebuild",
    params(("projector" = String, Path, example = "relation")),
    responses((status = 200, body = RebuildView), (status = 404, description = "not-found"),
        (status = 409, description = "rebuild-refused")),
)]
pub(super) async fn cancel(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    _: NoQuery,
) -> Result<Json<RebuildView>, Problem> {
    shown(&app, app.projectors.rebuilds().cancel(&text, &actor(&identity)).await).await
}

fn actor(identity: &Identity) -> Actor {
    Actor::new(&identity.subject)
}

async fn shown(app: &App, rebuild: tidings_backbone::Result<Rebuild>) -> Result<Json<RebuildView>, Problem> {
    let rebuild = rebuild.map_err(|error| match &error {
        tidings_backbone::Error::Rebuild { refusal: Refusal::UnknownProjector, .. } => {
            Problem::new(Name::NotFound).detail("no projector has this name")
        }
        tidings_backbone::Error::Rebuild { refusal, .. } => {
            Problem::new(Name::RebuildRefused).detail(refusal.to_string())
        }
        _ => error.into(),
    })?;
    let view = rebuilds::view(&app.projectors.rebuilds(), rebuild, app.clock.now()).await?;
    Ok(Json(view))
}
