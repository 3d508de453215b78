//! Health and readiness.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidings_backbone::{
    log::{Log, Offset, Part},
    relay,
};
use utoipa::ToSchema;

use super::{problem::SaysItself, state::AppState, telemetry};

/// Time a service is given to answer a check.
pub(super) const CHECK_TIME_MAX: Duration = Duration::from_secs(2);
/// After all that a topic can hold, so that only its end is asked for.
const BEYOND: Offset = Offset(i64::MAX - 1);

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
    /// `ready`, or `unready` when a check failed that is not optional.
    #[schema(example = "ready")]
    status: &'static str,
    /// What was looked at.
    checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Check {
    /// What it is.
    #[schema(example = "database")]
    name: &'static str,
    /// Whether it is well.
    ok: bool,
    /// Whether the process does its work without it, more slowly or with what it gets later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
}

/// Whether the process does its work. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    ready: Arc<AtomicBool>,
    /// The service without which it cannot begin.
    waits_for: Arc<Mutex<Option<&'static str>>>,
}

impl Readiness {
    /// Says that the process does its work, or no longer does.
    pub fn set(&self, ready: bool) {
        self.ready.store(ready, Ordering::SeqCst);
    }

    /// Whether the process does its work.
    pub fn get(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// Says which service is missing before the process can begin.
    pub fn wait_for(&self, service: Option<&'static str>) {
        *self.waits_for.lock().unwrap_or_else(PoisonError::into_inner) = service;
    }

    /// What is told before the process has begun: there is nothing yet that could be asked.
    pub(super) fn before_begin(&self) -> Response {
        let missing = *self.waits_for.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = missing.map(|name| Check { name, ok: false, optional: false });
        answer(std::iter::once(serving(false)).chain(missing).collect())
    }
}

/// What a role is asked about when it is asked how it is.
#[derive(Clone, Debug)]
pub struct Health {
    /// Whether the process does its work.
    pub readiness: Readiness,
    /// Nothing for a relay that runs alone.
    log: Option<Log>,
    kafka: Option<Probe>,
    relay: Option<relay::Handle>,
    /// Whether the process has more to do than to relay.
    relay_is_optional: bool,
}

impl Health {
    /// Looks at what `log` stands on; `needs_kafka` where nothing can be done without it.
    pub fn new(readiness: Readiness, log: Log, needs_kafka: bool) -> Self {
        let kafka = match &log {
            Log::Embedded(_) => None,
            Log::Kafka(kafka) => {
                let part = Part { topic: kafka.options().checkpoint_topic().into(), number: 0 };
                Some(Probe {
                    log: log.clone(),
                    part,
                    optional: !needs_kafka,
                    busy: Arc::default(),
                    well: Arc::default(),
                })
            }
        };
        Self { readiness, log: Some(log), kafka, relay: None, relay_is_optional: !needs_kafka }
    }

    /// Looks at a relay alone.
    pub fn of_relay(readiness: Readiness, relay: relay::Handle) -> Self {
        Self { readiness, log: None, kafka: None, relay: Some(relay), relay_is_optional: false }
    }

    /// Looks at the relay of this process as well.
    #[must_use]
    pub fn with_relay(self, relay: Option<relay::Handle>) -> Self {
        Self { relay, ..self }
    }

    /// The log that it looks at.
    pub(super) fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// The relay of this process.
    pub(super) fn relay(&self) -> Option<&relay::Handle> {
        self.relay.as_ref()
    }

    /// Whether the database answers; true where there is none.
    pub(super) async fn database_answers(&self) -> bool {
        match &self.log {
            Some(log) => database_answers(log).await,
            None => true,
        }
    }

    /// Whether Kafka answers; true where there is none.
    pub(super) async fn kafka_answers(&self) -> bool {
        match &self.kafka {
            Some(probe) => probe.check().await.ok,
            None => true,
        }
    }

    pub(super) async fn report(&self) -> Response {
        let mut checks = vec![serving(self.readiness.get())];
        if let Some(log) = &self.log {
            checks.push(Check { name: "database", ok: database_answers(log).await, optional: false });
        }
        if let Some(probe) = &self.kafka {
            checks.push(probe.check().await);
        }
        if let Some(relay) = &self.relay {
            // One that stands by does what it is there for.
            let ok = matches!(relay.status().state, relay::State::Active | relay::State::Standby);
            checks.push(Check { name: "relay", ok, optional: self.relay_is_optional });
        }
        answer(checks)
    }
}

fn serving(ok: bool) -> Check {
    Check { name: "serving", ok, optional: false }
}

fn answer(checks: Vec<Check>) -> Response {
    let (code, status) = if checks.iter().all(|check| check.ok || check.optional) {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unready")
    };
    (code, Extension(SaysItself), Json(Ready { status, checks })).into_response()
}

/// Asks Kafka whether it is there, one question at a time: its client takes long to give up, and questions
/// must not gather behind it.
#[derive(Clone, Debug)]
struct Probe {
    log: Log,
    part: Part,
    optional: bool,
    busy: Arc<AtomicBool>,
    /// What the last question was answered.
    well: Arc<AtomicBool>,
}

impl Probe {
    async fn check(&self) -> Check {
        let check = |ok| Check { name: "kafka", ok, optional: self.optional };
        if self.busy.swap(true, Ordering::SeqCst) {
            return check(self.well.load(Ordering::SeqCst));
        }
        let probe = self.clone();
        let asking = tokio::spawn(async move {
            let answered = probe.log.behind(vec![(probe.part, BEYOND)]).await;
            telemetry::service_up("kafka", answered.is_ok());
            if let Err(error) = &answered {
                tracing::warn!(error = tidings_backbone::Error::chain(error), "Kafka fails its check");
            }
            probe.well.store(answered.is_ok(), Ordering::SeqCst);
            probe.busy.store(false, Ordering::SeqCst);
            answered.is_ok()
        });
        let answered = tokio::time::timeout(CHECK_TIME_MAX, asking).await;
        let ok = matches!(answered, Ok(Ok(true)));
        if !ok {
            telemetry::service_up("kafka", false);
            self.well.store(false, Ordering::SeqCst);
        }
        check(ok)
    }
}

async fn database_answers(log: &Log) -> bool {
    let answers = asked_database(log).await;
    telemetry::service_up("database", answers);
    answers
}

async fn asked_database(log: &Log) -> bool {
    match tokio::time::timeout(CHECK_TIME_MAX, log.extent()).await {
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
pub(super) async fn ready(State(app): State<AppState>) -> Response {
    app.health.report().await
}
