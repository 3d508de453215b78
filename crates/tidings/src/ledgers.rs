//! The ledgers of this process: made, counted and drained in one place, for the server and for
//! commands that write.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tidings_backbone::{
    Conn,
    ledger::{Decide, Ledger},
};
use tidings_community::{relation::facts::Relation, user::facts::Registry};
use tidings_event::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::store::Store;

/// A ledger for each kind of fact. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledgers {
    /// Decides follows and unfollows.
    pub relations: Ledger<Counted<Relation>>,
    /// Decides registrations.
    pub users: Ledger<Counted<Registry>>,
    relations_decided: Arc<AtomicU64>,
    users_decided: Arc<AtomicU64>,
}

/// The running ledgers, to be drained.
#[derive(Debug)]
pub struct Running {
    shutdown: CancellationToken,
    workers: JoinSet<()>,
}

impl Ledgers {
    /// Starts the ledgers of `store`.
    pub fn start(store: &Store) -> (Self, Running) {
        let Store { db, clock, ids, hot, .. } = store;
        let shutdown = CancellationToken::new();
        let mut workers = JoinSet::new();
        let (relations_decided, users_decided) = <(Arc<AtomicU64>, Arc<AtomicU64>)>::default();

        let relation = Relation::new(ids.clone());
        let relation = match hot {
            Some(hot) => relation.with_cache(hot.clone()),
            None => relation,
        };
        let counted = Counted { decide: relation, decided: Arc::clone(&relations_decided) };
        let (relations, worker) = Ledger::new(counted, db.clone(), clock.clone());
        workers.spawn(worker.run(shutdown.clone()));

        let counted = Counted { decide: Registry::new(ids.clone()), decided: Arc::clone(&users_decided) };
        let (users, worker) = Ledger::new(counted, db.clone(), clock.clone());
        workers.spawn(worker.run(shutdown.clone()));

        (Self { relations, users, relations_decided, users_decided }, Running { shutdown, workers })
    }

    /// Publishes how many commands wait; called when metrics are scraped.
    pub fn publish_gauges(&self) {
        self.relations.publish_gauges();
        self.users.publish_gauges();
    }

    /// Names of the ledgers and how many commands each has decided since it started.
    pub fn decided(&self) -> [(&'static str, u64); 2] {
        let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [(Relation::NAME, total(&self.relations_decided)), (Registry::NAME, total(&self.users_decided))]
    }
}

impl Running {
    /// Decides what was accepted, then ends. Later commands are refused.
    pub async fn drain(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.workers.join_next().await {
            if let Err(error) = ended {
                tracing::error!(error = tidings_backbone::Error::chain(&error), "a ledger ended badly");
            }
        }
    }
}

/// Counts the commands that pass through a decision. A batch that had to be halved is counted for
/// each try: the number is for showing a rate.
#[derive(Debug)]
pub struct Counted<D> {
    decide: D,
    decided: Arc<AtomicU64>,
}

impl<D: Decide> Decide for Counted<D> {
    type Command = D::Command;
    type Outcome = D::Outcome;
    type Refusal = D::Refusal;

    const NAME: &'static str = D::NAME;

    fn key(&self, command: &Self::Command) -> u64 {
        self.decide.key(command)
    }

    async fn decide(
        &self,
        commands: &[&Self::Command],
        at: Timestamp,
        conn: Conn<'_>,
    ) -> tidings_backbone::Result<Vec<Result<Self::Outcome, Self::Refusal>>> {
        let answers = self.decide.decide(commands, at, conn).await?;
        self.decided.fetch_add(commands.len() as u64, Ordering::Relaxed);
        Ok(answers)
    }
}
