//! The flow, as the operator and the console see it: every stage with its position, lag and age.

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;
use tidings_backbone::{
    log::Offset,
    projector::{State as ProjectorState, Status},
};
use utoipa::ToSchema;

use super::{
    input::Query,
    moment::Moment,
    problem::Problem,
    state::{App, AppState},
};

pub(super) const FLOW_PATH: &str = "/v1/admin/flow";
/// Longest time a caller may let the flow settle.
pub(super) const SETTLE_TIME_MAX: Duration = Duration::from_secs(60);
const SETTLE_MILLIS_MAX: u32 = 60_000;

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
