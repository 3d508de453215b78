//! What every route may use.

use std::{collections::HashMap, sync::Arc};

use tidings_backbone::{
    Clock, Db, EventIds,
    log::{Log, Offset},
    projector,
    reconcile::Reconciliations,
    relay,
    trace::Sampling,
};
use tidings_community::relation::{bucket::FollowBucket, counters::CounterReader, lists::Lists};
use tokio_util::sync::CancellationToken;

use super::{health::Health, scrape::Scrape};
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
    /// The relay that this process runs.
    pub relay: Option<relay::Handle>,
    /// How far the projectors are.
    pub projectors: projector::Handle,
    /// Runs of the reconciliation.
    pub reconciliations: Reconciliations,
    /// The rate limit of follows.
    pub follow_bucket: FollowBucket,
    /// Reads counters, and checks some of them.
    pub counters: CounterReader,
    /// Reads lists of users, and keeps some of them.
    pub lists: Lists,
    /// Verifies bearer tokens.
    pub verifier: Verifier,
    /// Console logins.
    pub sessions: Secrets,
    /// One-time login links.
    pub login_links: Secrets,
    /// Shows the metrics.
    pub scrape: Scrape,
    /// Which requests are traced.
    pub sampling: Sampling,
    /// How the server is.
    pub health: Health,
    /// Ends long waits when the server shuts down.
    pub shutdown: CancellationToken,
}

/// Where everything stood when the server started, to tell what was done since.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// The last event that was committed.
    pub head: Offset,
    /// The last event that was relayed; embedded, that is the last one committed.
    pub relayed: Offset,
    /// The ends of the topics of events, each over all its partitions.
    pub topics: HashMap<String, Offset>,
    /// The last event each projector had dealt with.
    pub positions: HashMap<String, Offset>,
}
