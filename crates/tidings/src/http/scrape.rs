//! Metrics: what is counted as it happens is shown as it stands, what is a state is measured when somebody looks.
//!
//! A scrape always answers, within a few seconds, with all that is known: whoever is away (the database, Kafka)
//! costs only what he alone could tell, and what he told last goes on ageing.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;
use tidings_backbone::{Clock, Db, Error, log::Log, projector, reconcile::Reconciliations, relay, trace};
use tokio::{sync::Mutex, time::timeout};

use super::{
    health::{CHECK_TIME_MAX, Health},
    problem::Problem,
    process,
    state::AppState,
    telemetry,
};
use crate::ledgers::Ledgers;

/// Time that a look at one thing may take; those that are looked at at once take it together.
const LOOK_TIME_MAX: Duration = Duration::from_secs(4);
/// Time that a scrape waits for what is being measured. Prometheus gives up after ten seconds.
const SCRAPE_TIME_MAX: Duration = Duration::from_secs(5);

/// Shows the metrics of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scrape {
    metrics: PrometheusHandle,
    sources: Arc<Sources>,
    /// Held while something is measured: those who come meanwhile wait for it, and look again.
    turn: Arc<Mutex<()>>,
}

/// What is looked at.
#[derive(Debug)]
pub struct Sources {
    /// How the process is.
    pub health: Health,
    /// The database, where there is one.
    pub db: Option<Db>,
    /// The ledgers, where there is an API.
    pub ledgers: Option<Ledgers>,
    /// How far projectors are.
    pub projectors: Option<projector::Handle>,
    /// What the last reconciliation found.
    pub reconciliations: Option<Reconciliations>,
    /// The group of the relays whose lease is looked for; nothing where the log is the outbox.
    pub relay_group: Option<String>,
    /// Tells the time.
    pub clock: Clock,
}

impl Scrape {
    /// Shows `metrics`, and what is measured at `sources`.
    pub fn new(metrics: PrometheusHandle, sources: Sources) -> Self {
        Self { metrics, sources: Arc::new(sources), turn: Arc::default() }
    }

    /// All metrics, in the text format of Prometheus.
    pub(super) async fn shown(&self) -> Response {
        self.sources.publish_known();
        let measured = timeout(SCRAPE_TIME_MAX, self.measured()).await;
        if measured.is_err() {
            tracing::warn!("what is measured for the metrics takes too long; they are shown without it");
        }
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        ([(header::CONTENT_TYPE, content_type)], self.metrics.render()).into_response()
    }

    /// Measures to the end, even if whoever asked no longer waits: questions must not gather behind one another.
    async fn measured(&self) {
        let (turn, sources) = (Arc::clone(&self.turn).lock_owned().await, Arc::clone(&self.sources));
        let measuring = tokio::spawn(async move {
            sources.measure().await;
            drop(turn);
        });
        if let Err(error) = measuring.await {
            tracing::error!(error = Error::chain(&error), "measuring for the metrics ended badly");
        }
    }
}

impl Sources {
    /// Publishes what needs no look at anything that may be away.
    fn publish_known(&self) {
        process::publish_gauges();
        if let Some((spans, spans_max)) = trace::waiting() {
            tidings_backbone::telemetry::spans_waiting(spans, spans_max);
        }
        if let Some(db) = &self.db {
            db.publish_gauges();
        }
        if let Some(ledgers) = &self.ledgers {
            ledgers.publish_gauges();
        }
        if let Some(relay) = self.health.relay() {
            relay.publish_gauges();
        }
        if let Some(Log::Kafka(log)) = self.health.log() {
            log.publish_told(self.clock.now());
        }
        if let Some(projectors) = &self.projectors {
            projectors.publish_told();
        }
    }

    async fn measure(&self) {
        tokio::join!(self.measure_database(), self.measure_log());
    }

    async fn measure_database(&self) {
        let answers = self.health.database_answers().await;
        match &self.reconciliations {
            Some(reconciliations) if answers => {
                looked("reconciliation", async { reconciliations.publish_gauges().await.map(|()| true) }).await;
            }
            Some(_) => telemetry::measured("reconciliation", false),
            None => {}
        }
        match &self.projectors {
            Some(projectors) if answers => {
                looked("counted", async { projectors.publish_counted().await.map(|()| true) }).await;
            }
            Some(_) => telemetry::measured("counted", false),
            None => {}
        }
        let (Some(db), Some(group)) = (&self.db, &self.relay_group) else { return };
        if answers {
            let look = async { relay::publish_lease(&mut db.read().await?.conn(), group).await };
            looked("lease", async { look.await.map(|()| true) }).await;
        } else {
            telemetry::measured("lease", false);
        }
    }

    /// What waits for a relay is measured in every role, since all relays may be dead; what projectors have not
    /// reached is measured at the log, since they may be.
    async fn measure_log(&self) {
        let kafka_answers = tokio::join!(self.health.kafka_answers(), async {
            if let Some(Log::Kafka(log)) = self.health.log() {
                looked("outbox", log.publish_gauges(self.clock.now(), CHECK_TIME_MAX)).await;
            }
        })
        .0;
        let Some(projectors) = &self.projectors else { return };
        if kafka_answers {
            looked("projectors", async { projectors.publish_gauges().await.map(|()| true) }).await;
        } else {
            telemetry::measured("projectors", false);
        }
    }
}

/// Looks for a limited time, and says whether what is shown is of now, which the look answers.
async fn looked(at: &'static str, look: impl Future<Output = tidings_backbone::Result<bool>>) {
    let error = match timeout(LOOK_TIME_MAX, look).await {
        Ok(Ok(is_of_now)) => return telemetry::measured(at, is_of_now),
        Ok(Err(error)) => Error::chain(&error),
        Err(_elapsed) => format!("no answer within {} s", LOOK_TIME_MAX.as_secs()),
    };
    telemetry::measured(at, false);
    tracing::warn!(at, error, "what the metrics show of this is not of now");
}

/// Metrics, in the text format of Prometheus
///
/// For an admin, unless `http.metrics_public` is set.
#[utoipa::path(
    get, path = "/metrics", tag = "operation", operation_id = "metrics",
    responses((status = 200, body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics(State(app): State<AppState>) -> Result<Response, Problem> {
    Ok(app.scrape.shown().await)
}
