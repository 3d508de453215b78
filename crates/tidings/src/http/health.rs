//! Health, readiness and metrics.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    problem::{Problem, SaysItself},
    state::{App, AppState},
};

/// Time the database is given to answer a check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(2);

/// Whether the process lives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Live {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the server takes requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready`, or `unready` when a check failed.
    #[schema(example = "ready")]
    status: &'static str,
    /// What was looked at.
    checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Check {
    /// What it is.
    #[schema(example = "database")]
    name: &'static str,
    /// Whether it is well.
    ok: bool,
}

/// Whether the process lives
#[utoipa::path(
    get, path = "/health/live", tag = "operation", operation_id = "live",
    responses((status = 200, body = Live)),
)]
pub(super) async fn live() -> Json<Live> {
    Json(Live { status: "ok" })
}

/// Whether the server takes requests
#[utoipa::path(
    get, path = "/health/ready", tag = "operation", operation_id = "ready",
    responses((status = 200, body = Ready), (status = 503, body = Ready, description = "A check failed")),
)]
pub(super) async fn ready(State(app): State<AppState>) -> impl IntoResponse {
    let checks = vec![
        Check { name: "serving", ok: app.readiness.get() },
        Check { name: "database", ok: database_answers(&app).await },
    ];
    let (code, status) = if checks.iter().all(|check| check.ok) {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unready")
    };
    (code, Extension(SaysItself), Json(Ready { status, checks }))
}

async fn database_answers(app: &App) -> bool {
    match tokio::time::timeout(CHECK_TIME_MAX, app.log.extent()).await {
        Ok(Ok(_extent)) => true,
        Ok(Err(error)) => {
            tracing::warn!(error = tidings_backbone::Error::chain(&error), "the database fails its check");
            false
        }
        Err(_elapsed) => {
            tracing::warn!("the database does not answer its check in time");
            false
        }
    }
}

/// Metrics, in the text format of Prometheus
///
/// For an admin, unless `http.metrics_public` is set.
#[utoipa::path(
    get, path = "/metrics", tag = "operation", operation_id = "metrics",
    responses((status = 200, body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics(State(app): State<AppState>) -> Result<impl IntoResponse, Problem> {
    // Measured now and at the source, so that it is true whatever has stopped.
    if let Err(error) = app.projectors.publish_gauges().await {
        tracing::warn!(error = tidings_backbone::Error::chain(&error), "the lag cannot be measured");
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render()))
}
