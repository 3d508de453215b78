//! The parts of a server: started together, watched, ended in order.

use std::{sync::Arc, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tidings_backbone::{projector::Runtime, retention::Retention};
use tidings_community::relation::{
    bucket::FollowBucket, counters::CounterReader, projection::RelationProjector, top_page::TopPages,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::options;
use crate::{
    Error, Result,
    auth::{ExternalKeys, Verifier},
    config::Config,
    http::{App, AppState, Baseline, Readiness},
    ledgers::{self, Ledgers},
    store::{self, ServerClaim, Store},
};

/// How often metrics are tidied, so that histograms do not grow between scrapes.
const UPKEEP_GAP: Duration = Duration::from_secs(5);
/// Bounds of latency histograms, in seconds.
const SECONDS_BUCKETS: [f64; 13] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Bounds of histograms of batch sizes.
const SIZE_BUCKETS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// The running parts behind HTTP.
#[derive(Debug)]
pub(super) struct Parts {
    ledgers: ledgers::Running,
    /// Ends projectors, retention and upkeep.
    shutdown: CancellationToken,
    projectors: JoinHandle<tidings_backbone::Result<()>>,
    background: Vec<JoinHandle<()>>,
    store: Store,
    /// Given back last.
    claim: ServerClaim,
}

/// The projectors of this product, ready to run or only to be asked how far they are.
pub fn projector_runtime(store: &Store, config: &Config) -> Runtime {
    Runtime::new(store.db.clone(), store.log(), store.clock.clone())
        .knowing(tidings_event::payload::known_types())
        .with(Arc::new(RelationProjector), options::projector(config))
}

/// Starts everything that runs behind HTTP.
pub(super) async fn start(
    store: Store,
    config: Config,
    metrics: PrometheusHandle,
    claim: ServerClaim,
) -> Result<(AppState, Parts)> {
    let runtime = projector_runtime(&store, &config);
    let baseline = baseline(&runtime).await?;
    let (ledgers, running_ledgers) = Ledgers::start(&store.db, &store.clock, &store.ids);
    let clock = store.clock.clone();
    let app = Arc::new(App {
        db: store.db.clone(),
        log: store.log(),
        ids: store.ids.clone(),
        ledgers,
        baseline,
        projectors: runtime.handle(),
        follow_bucket: FollowBucket::in_process(options::bucket(&config), clock.clone()),
        counters: CounterReader::checking_every(store.db.clone(), options::counter_check_every(&config)),
        top_pages: TopPages::new(config.relation.top_page_followers_min),
        verifier: verifier(&store, &config)?,
        sessions: store::sessions(store.folder(), &clock),
        login_links: store::login_links(store.folder(), &clock),
        metrics: metrics.clone(),
        readiness: Readiness::default(),
        shutdown: CancellationToken::new(),
        clock,
        config,
    });
    let shutdown = CancellationToken::new();
    let retention = Retention::new(store.db.clone(), store.clock.clone(), options::retention(&app.config));
    let background = vec![
        tokio::spawn(retention.run(shutdown.clone())),
        tokio::spawn(keep_up(metrics, shutdown.clone())),
        tokio::spawn(prepare_key(Arc::clone(&app))),
    ];
    let projectors = tokio::spawn(runtime.run(shutdown.clone()));
    let parts = Parts { ledgers: running_ledgers, shutdown, projectors, background, store, claim };
    Ok((app, parts))
}

fn verifier(store: &Store, config: &Config) -> Result<Verifier> {
    let external = config.auth.jwks().map(|url| ExternalKeys::new(url, store.clock.clone())).transpose()?;
    let own = store::signing_key(store.folder());
    Ok(Verifier::new(own, external, config.auth.clone(), store.clock.clone()))
}

async fn baseline(runtime: &Runtime) -> Result<Baseline> {
    let handle = runtime.handle();
    let head = handle.extent().await?.head;
    let statuses = handle.statuses().await?;
    Ok(Baseline { head, positions: statuses.into_iter().map(|status| (status.name, status.position)).collect() })
}

/// Makes the signing key beside the first requests, none of which can have a token before it is there.
async fn prepare_key(app: AppState) {
    if let Err(error) = app.verifier.own_key().await {
        tracing::error!(error = tidings_backbone::Error::chain(&error), "own tokens cannot be verified");
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

/// Makes the process's metrics, and answers what shows them. A process has one set of metrics: a
/// second server in it, as tests start them, counts into a set of its own that nobody feeds.
pub fn install_metrics() -> PrometheusHandle {
    let suffix = |text: &str| Matcher::Suffix(text.to_owned());
    let builder = PrometheusBuilder::new();
    // Buckets are given, so building cannot fail; the default would keep every sample for a while.
    let builder = builder.set_buckets_for_metric(suffix("_seconds"), &SECONDS_BUCKETS).unwrap_or_default();
    let builder = builder.set_buckets_for_metric(suffix("_commands"), &SIZE_BUCKETS).unwrap_or_default();
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::debug!("metrics are installed already");
    }
    handle
}

impl Parts {
    /// Waits for a part that ends although nobody asked it to.
    pub(super) async fn failed(&mut self) -> Error {
        let part = "the projectors";
        match (&mut self.projectors).await {
            Ok(Ok(())) => Error::PartEnded { part, source: None },
            Ok(Err(error)) => error.into(),
            Err(source) => Error::PartEnded { part, source: Some(source) },
        }
    }

    /// Ends the parts, those that write first. Requests must have ended before.
    pub(super) async fn end(self) {
        self.ledgers.drain().await;
        self.shutdown.cancel();
        if !self.projectors.is_finished() {
            log_end(self.projectors.await.map(|ended| ended.map_err(Error::from)));
        }
        for part in self.background {
            log_end(part.await.map(Ok));
        }
        self.store.db.close().await;
        drop(self.claim);
        tracing::info!("ended in order");
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
