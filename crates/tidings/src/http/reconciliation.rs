//! Routes of the reconciliation: whether what follows from facts is what it must be.

use axum::{
    Json,
    extract::{Extension, State},
    http::{HeaderMap, StatusCode},
};
use tidings_backbone::{
    Error,
    audit::Actor,
    log::Offset,
    reconcile::{Refusal, Run},
};

use super::{
    cursor::ListName,
    input::{IDEMPOTENCY_KEY_TEXT, NoQuery, PathText, Query, action_key},
    page::{self, CursorParams, Items},
    problem::{Name, Problem},
    state::AppState,
};
use crate::{auth::Identity, reconciliations::RunView};

/// Runs of the reconciliation, the newest first
///
/// Without examples of what they found: those are with each run.
#[utoipa::path(
    get, path = "/v1/admin/reconciliations", tag = "admin", operation_id = "reconciliations",
    params(CursorParams),
    responses((status = 200, body = Items<RunView>)),
)]
pub(super) async fn reconciliations(
    State(app): State<AppState>,
    mut query: Query,
) -> Result<Json<Items<RunView>>, Problem> {
    let limit = page::limit(&mut query)? as usize;
    // The numbers of runs go up as offsets do.
    let before: Option<Offset> = page::place(&mut query, ListName::Reconciliations)?;
    query.end()?;
    let mut runs = app.reconciliations.list(before.map(|before| before.0), limit + 1).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().map(|run| Offset(run.seq)).filter(|_| more);
    let items = runs.into_iter().map(RunView::short).collect();
    Ok(Json(Items::new(items, ListName::Reconciliations, next.as_ref())))
}

/// Compare what follows from facts with them
///
/// A process that runs projectors does it within some seconds, while reads and writes go on.
#[utoipa::path(
    post, path = "/v1/admin/reconciliations", tag = "admin", operation_id = "reconcile",
    params(
        ("projector" = Option<String>, Query, example = "relation", description = "Its projection alone"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses(
        (status = 202, body = RunView),
        (status = 404, description = "not-found: no such projector"),
        (status = 409, description = "reconciliation-refused: another one is under way"),
        (status = 422, description = "idempotency-key-reused"),
    ),
)]
pub(super) async fn start(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    let projector = query.take("projector")?;
    query.end()?;
    let key = action_key(&headers, &identity, "reconciliation", &projector)?;
    let actor = Actor::new(&identity.subject);
    accepted(app.reconciliations.start(projector.as_deref(), &actor, key.as_ref()).await)
}

/// A run of the reconciliation
#[utoipa::path(
    get, path = "/v1/admin/reconciliations/{run_id}", tag = "admin", operation_id = "reconciliation",
    params(("run_id" = String, Path)),
    responses((status = 200, body = RunView), (status = 404, description = "not-found")),
)]
pub(super) async fn reconciliation(
    State(app): State<AppState>,
    PathText { text, .. }: PathText,
    _: NoQuery,
) -> Result<Json<RunView>, Problem> {
    let found = app.reconciliations.find(&text).await?;
    found.map(|run| Json(RunView::whole(run))).ok_or_else(|| refused(&Refusal::UnknownRun))
}

/// Repair what a run found
///
/// By events, written within some seconds by a process that runs projectors. Only what the last run found, and only
/// projections: nothing repairs the log.
#[utoipa::path(
    post, path = "/v1/admin/reconciliations/{run_id}/repair", tag = "admin", operation_id = "repairReconciliation",
    params(
        ("run_id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses(
        (status = 202, body = RunView),
        (status = 404, description = "not-found"),
        (status = 409, description = "reconciliation-refused"),
        (status = 422, description = "idempotency-key-reused"),
    ),
)]
pub(super) async fn repair(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    PathText { text, .. }: PathText,
    headers: HeaderMap,
    _: NoQuery,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    let key = action_key(&headers, &identity, "reconciliation/repair", &text)?;
    accepted(app.reconciliations.repair(&text, &Actor::new(&identity.subject), key.as_ref()).await)
}

fn accepted(run: tidings_backbone::Result<Run>) -> Result<(StatusCode, Json<RunView>), Problem> {
    match run {
        Ok(run) => Ok((StatusCode::ACCEPTED, Json(RunView::whole(run)))),
        Err(Error::Reconcile(refusal)) => Err(refused(&refusal)),
        Err(error) => Err(error.into()),
    }
}

fn refused(refusal: &Refusal) -> Problem {
    let name = match refusal {
        Refusal::UnknownProjector | Refusal::UnknownRun => Name::NotFound,
        Refusal::UnderWay { .. } | Refusal::NothingToRepair | Refusal::TooOld => Name::ReconciliationRefused,
        Refusal::KeyReused => return Problem::new(Name::IdempotencyKeyReused),
    };
    Problem::new(name).detail(refusal.to_string())
}
