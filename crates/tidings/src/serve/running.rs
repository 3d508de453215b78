//! The parts of a process while they run: started together, watched, ended in order.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tidings_backbone::{
    alerts::Alerts,
    kafka::topics,
    log::{KafkaLog, Log, Offset},
    projector::Runtime,
    reconcile::Reconciler,
    relay::Relay,
    retention::Retention,
};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{options, patience, role::Role};
use crate::{
    Error, Result,
    config::Config,
    ledgers,
    store::{ServerClaim, Store},
};

/// How often metrics are tidied, so that histograms do not grow between scrapes.
const UPKEEP_GAP: Duration = Duration::from_secs(5);
/// How often the retention is told how far the relay has come.
const PUBLISHED_GAP: Duration = Duration::from_secs(20);
/// The running parts of a process.
#[derive(Debug)]
pub(super) struct Parts {
    /// Where there is an API.
    pub(super) ledgers: Option<ledgers::Running>,
    /// Ends everything below.
    pub(super) shutdown: CancellationToken,
    /// What must not end before it is asked to, each with its name.
    pub(super) watched: Vec<(&'static str, JoinHandle<Result<()>>)>,
    pub(super) background: Vec<JoinHandle<()>>,
    store: Option<Store>,
    /// Given back last.
    pub(super) claim: Option<ServerClaim>,
}

impl Parts {
    pub(super) fn new(store: Option<Store>, metrics: PrometheusHandle) -> Self {
        let (watched, background) = (Vec::new(), Vec::new());
        let mut parts =
            Self { ledgers: None, shutdown: CancellationToken::new(), watched, background, store, claim: None };
        parts.background.push(tokio::spawn(keep_up(metrics, parts.shutdown.clone())));
        parts
    }

    /// Starts the retention; where the outbox is not the log, it goes as far as the relay has come.
    pub(super) fn start_retention(&mut self, store: &Store, config: &Config) {
        let retention = Retention::new(store.db.clone(), store.clock.clone(), options::retention(config));
        let retention = match store.log() {
            Log::Embedded(_) => retention,
            Log::Kafka(log) => {
                let (published, known) = watch::channel(None);
                self.background.push(tokio::spawn(tell_published(log, published, self.shutdown.clone())));
                retention.published(known)
            }
        };
        self.background.push(tokio::spawn(retention.run(self.shutdown.clone())));
    }

    /// Starts what tells a webhook of keys that die, where the configuration names one.
    pub(super) fn start_alerts(&mut self, role: Role, store: &Store, config: &Config) -> Result<()> {
        let wanted = if role.has_projectors() { config.alerts.options()? } else { None };
        if let Some(options) = wanted {
            let alerts = Alerts::new(store.db.clone(), store.clock.clone(), &options)?;
            self.background.push(tokio::spawn(alerts.run(self.shutdown.clone())));
        }
        Ok(())
    }

    /// Starts what compares projections with their facts, where projectors run.
    pub(super) fn start_reconciler(&mut self, role: Role, reconciler: Reconciler) {
        if role.has_projectors() {
            self.background.push(tokio::spawn(reconciler.run(self.shutdown.clone())));
        }
    }

    /// Starts what the role does behind the facts, each once the log is there.
    pub(super) fn start_work(&mut self, role: Role, log: &Log, runtime: Runtime, relay: Option<Relay>) {
        let shutdown = self.shutdown.clone();
        if let Some(relay) = relay {
            let (there, shutdown) = (self.log_there(log), self.shutdown.clone());
            let running = async move { if there.await? { Ok(relay.run(shutdown).await?) } else { Ok(()) } };
            self.watched.push(("the relay", tokio::spawn(running)));
        }
        if role.has_projectors() {
            let there = self.log_there(log);
            let running = async move { if there.await? { Ok(runtime.run(shutdown).await?) } else { Ok(()) } };
            self.watched.push(("the projectors", tokio::spawn(running)));
        } else if role == Role::Api {
            // So that whoever comes first finds the topics made as configured.
            let there = self.log_there(log);
            self.background.push(tokio::spawn(async move {
                if let Err(error) = there.await {
                    tracing::error!(error = tidings_backbone::Error::chain(&error), "the topics are not as configured");
                }
            }));
        }
    }

    /// Makes and checks the topics, once Kafka is there; false when the process ends before that.
    fn log_there(&self, log: &Log) -> impl Future<Output = Result<bool>> + use<> {
        let (log, shutdown) = (log.clone(), self.shutdown.clone());
        async move {
            let Log::Kafka(log) = log else { return Ok(true) };
            let wanted = options::topics(log.options());
            let making = || async { Ok(topics::ensure(log.options(), &wanted).await?) };
            Ok(patience::until_done("kafka", None, &shutdown, making).await?.is_some())
        }
    }

    /// Waits for a part that ends although nobody asked it to.
    pub(super) async fn failed(&mut self) -> Error {
        if self.watched.is_empty() {
            return std::future::pending().await;
        }
        let ends = self.watched.iter_mut().map(|(part, task)| Box::pin(async { (*part, task.await) }));
        let ((part, ended), ..) = futures::future::select_all(ends).await;
        self.watched.retain(|(_, task)| !task.is_finished());
        match ended {
            Ok(Ok(())) => Error::PartEnded { part, source: None },
            Ok(Err(error)) => error,
            Err(source) => Error::PartEnded { part, source: Some(source) },
        }
    }

    /// Ends the parts, those that write first. Requests must have ended before.
    pub(super) async fn end(self) {
        if let Some(ledgers) = self.ledgers {
            ledgers.drain().await;
        }
        self.shutdown.cancel();
        for (_, task) in self.watched {
            log_end(task.await);
        }
        for part in self.background {
            log_end(part.await.map(Ok));
        }
        if let Some(store) = self.store {
            store.db.close().await;
        }
        drop(self.claim);
        tracing::info!("ended in order");
    }
}

/// Tells the retention how far the relay has come; what cannot be known just now is as it was.
async fn tell_published(log: KafkaLog, published: watch::Sender<Option<Offset>>, shutdown: CancellationToken) {
    loop {
        // Kafka may be away and take its time to say so.
        let known = tokio::select! {
            known = log.published() => known,
            () = shutdown.cancelled() => return,
        };
        match known {
            Ok(known) => drop(published.send_replace(known)),
            Err(error) => {
                tracing::debug!(error = tidings_backbone::Error::chain(&error), "how far the relay is cannot be told");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PUBLISHED_GAP) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn keep_up(metrics: PrometheusHandle, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(UPKEEP_GAP) => metrics.run_upkeep(),
            () = shutdown.cancelled() => return,
        }
    }
}

fn log_end(ended: Result<Result<()>, tokio::task::JoinError>) {
    let error = match ended {
        Ok(Ok(())) => return,
        Ok(Err(error)) => tidings_backbone::Error::chain(&error),
        Err(error) => tidings_backbone::Error::chain(&error),
    };
    tracing::error!(error, "a part ended badly");
}
