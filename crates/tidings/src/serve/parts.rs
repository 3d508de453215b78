//! The parts of a process: started together, watched, ended in order.

use std::{sync::Arc, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tidings_backbone::{
    kafka::topics,
    log::{KafkaLog, Log, Offset},
    projector::{Projector, Runtime},
    relay::Relay,
    retention::Retention,
};
use tidings_community::relation::{
    bucket::FollowBucket, counters::CounterReader, lists::Lists, projection::RelationProjector, top_page::TopPages,
};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{options, patience, relaying, role::Role};
use crate::{
    Error, Result,
    auth::{ExternalKeys, Verifier},
    config::{Config, Mode},
    http::{self, App, AppState, Baseline, Health, Ops, Readiness},
    ledgers::{self, Ledgers},
    store::{self, ServerClaim, Store},
};

/// How often metrics are tidied, so that histograms do not grow between scrapes.
const UPKEEP_GAP: Duration = Duration::from_secs(5);
/// How often the retention is told how far the relay has come.
const PUBLISHED_GAP: Duration = Duration::from_secs(20);
/// Bounds of latency histograms, in seconds.
const SECONDS_BUCKETS: [f64; 13] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Bounds of histograms of batch sizes.
const SIZE_BUCKETS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// The running parts of a process.
#[derive(Debug)]
pub(super) struct Parts {
    /// Where there is an API.
    ledgers: Option<ledgers::Running>,
    /// Ends everything below.
    shutdown: CancellationToken,
    /// What must not end before it is asked to, each with its name.
    watched: Vec<(&'static str, JoinHandle<Result<()>>)>,
    background: Vec<JoinHandle<()>>,
    store: Store,
    /// Given back last.
    claim: Option<ServerClaim>,
}

/// The projectors of this product, ready to run or only to be asked how far they are.
pub fn projector_runtime(store: &Store, config: &Config) -> Runtime {
    let relation: Arc<dyn Projector> = match &store.hot {
        Some(hot) => Arc::new(RelationProjector.with_cache(hot.clone())),
        None => Arc::new(RelationProjector),
    };
    Runtime::new(store.db.clone(), store.log(), store.clock.clone())
        .knowing(tidings_event::payload::known_types())
        .with(relation, options::projector(config))
}

/// Starts what is behind the API of a process of this role.
pub(super) async fn start_server(
    role: Role,
    store: Store,
    config: Config,
    metrics: PrometheusHandle,
    readiness: Readiness,
    claim: ServerClaim,
) -> Result<(AppState, Parts)> {
    let runtime = projector_runtime(&store, &config);
    let baseline = baseline(&store, &runtime).await?;
    let relay = relay(role, &store, &config)?;
    let (ledgers, running_ledgers) = Ledgers::start(&store);
    let clock = store.clock.clone();
    let app = Arc::new(App {
        db: store.db.clone(),
        log: store.log(),
        ids: store.ids.clone(),
        ledgers,
        baseline,
        relay: relay.as_ref().map(Relay::handle),
        projectors: runtime.handle(),
        follow_bucket: follow_bucket(&store, &config),
        counters: counters(&store, &config),
        lists: lists(&store, &config),
        verifier: verifier(&store, &config)?,
        sessions: store::sessions(store.folder(), &clock),
        login_links: store::login_links(store.folder(), &clock),
        metrics: metrics.clone(),
        // Who reads and writes does so while Kafka is away; what follows from it comes later.
        health: Health::new(readiness, store.log(), false),
        shutdown: CancellationToken::new(),
        clock,
        config,
    });
    let mut parts = Parts::new(store);
    parts.ledgers = Some(running_ledgers);
    parts.claim = Some(claim);
    parts.start_retention(&app.config);
    parts.background.push(tokio::spawn(keep_up(metrics, parts.shutdown.clone())));
    parts.background.push(tokio::spawn(prepare_key(Arc::clone(&app))));
    parts.start_work(role, runtime, relay);
    Ok((app, parts))
}

/// Starts the parts of a process of this role, which has no API.
pub(super) fn start_worker(
    role: Role,
    store: Store,
    config: &Config,
    metrics: PrometheusHandle,
    readiness: Readiness,
) -> Result<(Ops, Parts)> {
    let runtime = projector_runtime(&store, config);
    let relay = relay(role, &store, config)?;
    let ops = Ops {
        health: Health::new(readiness, store.log(), true),
        metrics: metrics.clone(),
        projectors: role.has_projectors().then(|| runtime.handle()),
        verifier: if config.http.metrics_public { None } else { Some(verifier(&store, config)?) },
    };
    let mut parts = Parts::new(store);
    parts.background.push(tokio::spawn(keep_up(metrics, parts.shutdown.clone())));
    parts.start_work(role, runtime, relay);
    Ok((ops, parts))
}

/// Where several processes take requests they share the buckets of Redis, if there is one.
fn follow_bucket(store: &Store, config: &Config) -> FollowBucket {
    let (options, clock) = (options::bucket(config), store.clock.clone());
    match &store.hot {
        Some(hot) => FollowBucket::shared(options, clock, hot.redis().clone()),
        None => FollowBucket::in_process(options, clock),
    }
}

fn counters(store: &Store, config: &Config) -> CounterReader {
    let counters = CounterReader::checking_every(store.db.clone(), options::counter_check_every(config));
    match &store.hot {
        Some(hot) => counters.with_cache(hot.clone()),
        None => counters,
    }
}

fn lists(store: &Store, config: &Config) -> Lists {
    let lists = Lists::new(store.db.clone(), TopPages::new(config.relation.top_page_followers_min));
    match &store.hot {
        Some(hot) => lists.with_cache(hot.clone()),
        None => lists,
    }
}

/// The relay of a role that has one, where the log is not the outbox itself.
fn relay(role: Role, store: &Store, config: &Config) -> Result<Option<Relay>> {
    let is_wanted = role.has_relay() && config.mode() == Mode::Distributed;
    is_wanted.then(|| relaying::relay(store, config)).transpose()
}

fn verifier(store: &Store, config: &Config) -> Result<Verifier> {
    let external = config.auth.jwks().map(|url| ExternalKeys::new(url, store.clock.clone())).transpose()?;
    let own = store::signing_key(store.folder());
    Ok(Verifier::new(own, external, config.auth.clone(), store.clock.clone()))
}

/// Where everything stands. Without Kafka nobody knows how far its readers are; they are counted from their
/// beginning then.
async fn baseline(store: &Store, runtime: &Runtime) -> Result<Baseline> {
    let handle = runtime.handle();
    let head = handle.extent().await?.head;
    let statuses = match (handle.statuses().await, store.log()) {
        (Ok(statuses), _) => statuses,
        (Err(error), Log::Kafka(_)) if error.is_transient() => Vec::new(),
        (Err(error), _) => return Err(error.into()),
    };
    let relayed = match store.log() {
        Log::Embedded(_) => head,
        Log::Kafka(log) => log.relayed().await.map_or(Offset(0), |relayed| relayed.published),
    };
    let topics = http::topic_ends(&statuses).into_iter().map(|(name, end)| (name.to_owned(), end)).collect();
    Ok(Baseline {
        head,
        relayed,
        topics,
        positions: statuses.into_iter().map(|status| (status.name, status.position)).collect(),
    })
}

/// Makes the signing key beside the first requests, none of which can have a token before it is there.
async fn prepare_key(app: AppState) {
    if let Err(error) = app.verifier.own_key().await {
        tracing::error!(error = tidings_backbone::Error::chain(&error), "own tokens cannot be verified");
    }
}

/// Tells the retention how far the relay has come; what cannot be known just now is as it was.
async fn tell_published(log: KafkaLog, published: watch::Sender<Option<Offset>>, shutdown: CancellationToken) {
    loop {
        match log.published().await {
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
    fn new(store: Store) -> Self {
        let (watched, background) = (Vec::new(), Vec::new());
        Self { ledgers: None, shutdown: CancellationToken::new(), watched, background, store, claim: None }
    }

    /// Starts the retention; where the outbox is not the log, it goes as far as the relay has come.
    fn start_retention(&mut self, config: &Config) {
        let retention = Retention::new(self.store.db.clone(), self.store.clock.clone(), options::retention(config));
        let retention = match self.store.log() {
            Log::Embedded(_) => retention,
            Log::Kafka(log) => {
                let (published, known) = watch::channel(None);
                self.background.push(tokio::spawn(tell_published(log, published, self.shutdown.clone())));
                retention.published(known)
            }
        };
        self.background.push(tokio::spawn(retention.run(self.shutdown.clone())));
    }

    /// Starts what the role does behind the facts, each once the log is there.
    fn start_work(&mut self, role: Role, runtime: Runtime, relay: Option<Relay>) {
        let shutdown = self.shutdown.clone();
        if let Some(relay) = relay {
            let (there, shutdown) = (self.log_there(), self.shutdown.clone());
            let running = async move { if there.await? { Ok(relay.run(shutdown).await?) } else { Ok(()) } };
            self.watched.push(("the relay", tokio::spawn(running)));
        }
        if role.has_projectors() {
            let there = self.log_there();
            let running = async move { if there.await? { Ok(runtime.run(shutdown).await?) } else { Ok(()) } };
            self.watched.push(("the projectors", tokio::spawn(running)));
        } else if role == Role::Api {
            // So that whoever comes first finds the topics made as configured.
            let there = self.log_there();
            self.background.push(tokio::spawn(async move {
                if let Err(error) = there.await {
                    tracing::error!(error = tidings_backbone::Error::chain(&error), "the topics are not as configured");
                }
            }));
        }
    }

    /// Makes and checks the topics, once Kafka is there; false when the process ends before that.
    fn log_there(&self) -> impl Future<Output = Result<bool>> + use<> {
        let (log, shutdown) = (self.store.log(), self.shutdown.clone());
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
