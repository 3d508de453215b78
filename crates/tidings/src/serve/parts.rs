//! The parts of each role, put together.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tidings_backbone::{
    log::{Log, Offset},
    projector::{self, Projector, Runtime},
    reconcile::{Reconciled, Reconciler},
    relay::Relay,
    trace::Sampling,
};
use tidings_community::relation::{
    bucket::FollowBucket, counters::CounterReader, lists::Lists, projection::RelationProjector,
    reconcile::RelationReconciled, top_page::TopPages,
};
use tokio_util::sync::CancellationToken;

use super::{options, relaying, role::Role, running::Parts};
use crate::{
    Result,
    auth::{ExternalKeys, Verifier},
    config::{Config, Mode},
    http::{self, App, AppState, Baseline, Health, Ops, Readiness, Scrape, Sources, telemetry},
    ledgers::Ledgers,
    store::{self, ServerClaim, Store},
};

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

/// Compares the projections of this product with their facts, and the outbox with the log.
pub fn reconciler(store: &Store, config: &Config) -> Reconciler {
    let (db, clock, ids) = (store.db.clone(), store.clock.clone(), store.ids.clone());
    Reconciler::new(db, store.log(), clock, ids, reconciled(store), options::reconcile(config))
}

/// What can be compared and repaired.
fn reconciled(store: &Store) -> Vec<Arc<dyn Reconciled>> {
    let relation = RelationReconciled::new(store.clock.clone());
    vec![match &store.hot {
        Some(hot) => Arc::new(relation.with_cache(hot.clone())),
        None => Arc::new(relation),
    }]
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
    let (relay, reconciler) = (relay(role, &store, &config)?, reconciler(&store, &config));
    let (ledgers, running_ledgers) = Ledgers::start(&store);
    let clock = store.clock.clone();
    let health = Health::new(readiness, store.log(), false).with_relay(relay.as_ref().map(Relay::handle));
    let sources = sources(&store, &config, &health, runtime.handle(), &reconciler);
    let scrape = Scrape::new(metrics.clone(), Sources { ledgers: Some(ledgers.clone()), ..sources });
    telemetry::build_info(config.mode().name(), role.name());
    telemetry::limits(config.http.requests_in_flight_max, config.http.connections_max);
    let app = Arc::new(App {
        db: store.db.clone(),
        log: store.log(),
        ids: store.ids.clone(),
        ledgers,
        baseline,
        relay: relay.as_ref().map(Relay::handle),
        projectors: runtime.handle(),
        reconciliations: reconciler.control(),
        follow_bucket: follow_bucket(&store, &config),
        counters: counters(&store, &config),
        lists: lists(&store, &config),
        verifier: verifier(&store, &config)?,
        sessions: store::sessions(store.folder(), &clock),
        login_links: store::login_links(store.folder(), &clock),
        scrape,
        sampling: Sampling::new(config.telemetry.sample_ratio),
        // Who reads and writes does so while Kafka is away; what follows from it comes later.
        health,
        shutdown: CancellationToken::new(),
        clock,
        config,
    });
    let (log, mut parts) = (store.log(), Parts::new(Some(store.clone()), metrics));
    parts.ledgers = Some(running_ledgers);
    parts.claim = Some(claim);
    parts.start_retention(&store, &app.config);
    parts.start_alerts(role, &store, &app.config)?;
    parts.background.push(tokio::spawn(prepare_key(Arc::clone(&app))));
    parts.start_reconciler(role, reconciler);
    parts.start_work(role, &log, runtime, relay);
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
    let (relay, reconciler) = (relay(role, &store, config)?, reconciler(&store, config));
    let health = Health::new(readiness, store.log(), true).with_relay(relay.as_ref().map(Relay::handle));
    let sources = sources(&store, config, &health, runtime.handle(), &reconciler);
    telemetry::build_info(config.mode().name(), role.name());
    let ops = Ops {
        scrape: Scrape::new(metrics.clone(), sources),
        health,
        clock: store.clock.clone(),
        verifier: if config.http.metrics_public { None } else { Some(verifier(&store, config)?) },
    };
    let (log, mut parts) = (store.log(), Parts::new(Some(store.clone()), metrics));
    parts.start_alerts(role, &store, config)?;
    parts.start_reconciler(role, reconciler);
    parts.start_work(role, &log, runtime, relay);
    Ok((ops, parts))
}

/// What the metrics are measured at.
fn sources(
    store: &Store,
    config: &Config,
    health: &Health,
    projectors: projector::Handle,
    reconciler: &Reconciler,
) -> Sources {
    Sources {
        health: health.clone(),
        db: Some(store.db.clone()),
        ledgers: None,
        // Told by relays too: all who could apply anything may be dead.
        projectors: Some(projectors),
        reconciliations: Some(reconciler.control()),
        relay_group: (config.mode() == Mode::Distributed).then(|| config.relay_group().to_owned()),
        clock: store.clock.clone(),
    }
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
