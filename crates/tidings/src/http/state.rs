//! What every route may use.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use metrics_exporter_prometheus::PrometheusHandle;
use tidings_backbone::{
    Clock, Db, EventIds,
    log::{Log, Offset},
    projector,
};
use tidings_community::relation::{bucket::FollowBucket, counters::CounterReader, top_page::TopPages};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{Secrets, Verifier},
    config::Config,
    ledgers::Ledgers,
};

/// What every route may use; shared by all requests.
pub type AppState = Arc<App>;

/// The parts of the server that routes hand requests to.
#[derive(Debug)]
pub struct App {
    /// The configuration in effect.
    pub config: Config,
    /// The one clock.
    pub clock: Clock,
    /// Makes request ids.
    pub ids: EventIds,
    /// The database, for reads.
    pub db: Db,
    /// The log, for reads.
    pub log: Log,
    /// Decides commands.
    pub ledgers: Ledgers,
    /// Where everything stood when the server started.
    pub baseline: Baseline,
    /// How far the projectors are.
    pub projectors: projector::Handle,
    /// The rate limit of follows.
    pub follow_bucket: FollowBucket,
    /// Reads counters, and checks some of them.
    pub counters: CounterReader,
    /// First pages of long follower lists.
    pub top_pages: TopPages,
    /// Verifies bearer tokens.
    pub verifier: Verifier,
    /// Console logins.
    pub sessions: Secrets,
    /// One-time login links.
    pub login_links: Secrets,
    /// Shows the metrics.
    pub metrics: PrometheusHandle,
    /// Whether the server takes requests.
    pub readiness: Readiness,
    /// Ends long waits when the server shuts down.
    pub shutdown: CancellationToken,
}

/// Where everything stood when the server started, to tell what was done since.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// The last event.
    pub head: Offset,
    /// The last event each projector had dealt with.
    pub positions: HashMap<String, Offset>,
}

/// Whether the server takes requests. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that the server takes requests, or no longer does.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::SeqCst);
    }

    /// Whether the server takes requests.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
