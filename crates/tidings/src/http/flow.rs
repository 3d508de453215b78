//! The flow, as the operator and the console see it: every stage with its position, lag and age.

mod stages;

pub(crate) use stages::topic_ends;

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;
use tidings_backbone::{
    log::{Log, Offset},
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
    /// `embedded` or `distributed`.
    #[schema(example = "embedded")]
    mode: &'static str,
    /// Whether every projector has dealt with all that was committed when the request came, and
    /// no key waits for a retry.
    settled: bool,
    /// The events as they were committed; embedded, they are the log.
    log: LogView,
    /// The stages, in the order of the path.
    stages: Vec<Stage>,
}

/// What is held of the events that were committed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogView {
    /// Offset of the first event still held.
    earliest: i64,
    /// Offset of the last event.
    head: i64,
}

/// One stage of the path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Stage {
    /// Which kind of stage: `facts`, `log` or `projector`; distributed also `outbox` and `relay` between
    /// the first two.
    #[schema(example = "projector")]
    stage: &'static str,
    /// Which of its kind.
    #[schema(example = "relation")]
    name: String,
    /// Offset of the last event it has dealt with; of several parts of the log, the sum. Null where events
    /// have no offset yet, or nobody can tell.
    position: Option<i64>,
    /// Commands or events dealt with since the server started: two answers make a rate. On topics of Kafka,
    /// the ends of transactions count too.
    total: u64,
    /// Events committed and not yet dealt with.
    lag: i64,
    /// Age of the oldest of them, in milliseconds.
    oldest_age_ms: Option<i64>,
    /// Keys that wait for a retry.
    parked_keys: i64,
    /// Keys whose attempts are spent.
    dead_keys: i64,
    /// `running`, `waiting` (another process runs it), `backing_off`, `stopped`, `unregistered`, or
    /// `unreachable` (a service is away, so nobody can tell).
    #[schema(example = "running")]
    state: &'static str,
    /// Why, when it is not simply running.
    detail: Option<String>,
    /// How far it is in each part of the log; only if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartView>>,
}

/// How far a stage is in one part of the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct PartView {
    /// The topic.
    #[schema(example = "tidings.relation")]
    topic: String,
    /// The partition of the topic.
    partition: i32,
    /// Offset of the last event it has dealt with; -1 before the first of a topic.
    position: i64,
    /// Events it has not dealt with.
    lag: i64,
}

/// The flow of events through the stages
#[utoipa::path(
    get, path = FLOW_PATH, tag = "admin", operation_id = "flow",
    params(
        ("settle_ms" = Option<u32>, Query, minimum = 0, maximum = 60000,
            description = "Answer once everything committed by now was dealt with, or after this many milliseconds"),
        ("parts" = Option<bool>, Query, description = "Whether projectors tell each part of the log"),
    ),
    responses((status = 200, body = Flow)),
)]
pub(super) async fn flow(State(app): State<AppState>, mut query: Query) -> Result<Json<Flow>, Problem> {
    let settle_ms = query.number("settle_ms", 0..=SETTLE_MILLIS_MAX)?;
    let with_parts = query.flag("parts")?;
    query.end()?;
    let waited = match settle_ms.filter(|millis| *millis > 0) {
        Some(millis) => Some(wait(&app, Duration::from_millis(millis.into())).await?),
        None => None,
    };
    let extent = app.projectors.extent().await?;
    let mut stages: Vec<Stage> = app.ledgers.decided().into_iter().map(stages::facts).collect();
    let is_settled = stages::behind_facts(&app, extent.head, with_parts, &mut stages).await?;
    let log = LogView { earliest: extent.earliest.0, head: extent.head.0 };
    let mode = if matches!(app.log, Log::Kafka(_)) { "distributed" } else { "embedded" };
    Ok(Json(Flow { at: Moment(app.clock.now()), mode, settled: waited.unwrap_or(is_settled), log, stages }))
}

/// Lets the flow settle; a server that shuts down waits for nobody.
async fn wait(app: &App, time_max: Duration) -> Result<bool, Problem> {
    tokio::select! {
        settled = app.projectors.settle(time_max) => Ok(settled?),
        () = app.shutdown.cancelled() => Ok(false),
    }
}
