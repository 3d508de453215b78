//! Runs projectors, each in a task of its own.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Projector,
    retry::Gaps,
    status::{Handle, Tasks},
    supervisor::Supervisor,
    task::Plan,
};
use crate::{
    Clock, Db, Error, Result,
    limits::{PROJECTOR_APPLY_TIME_MAX, PROJECTOR_BACKOFF_MAX, PROJECTOR_BATCH_EVENTS_MAX},
    log::Log,
};

/// How a projector is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tries of a failing event, and the gaps between them.
    pub gaps: Gaps,
    /// What to do when the log no longer reaches back to the projector's position.
    pub on_missing_history: MissingHistory,
    /// Events applied in one transaction.
    pub batch_events_max: usize,
    /// Time one call of [`Projector::apply`] may take; it holds the write lock meanwhile. A batch
    /// that takes longer is tried again with fewer events, and one event alone is parked.
    pub apply_time_max: Duration,
    /// Whether it is kept when the projector passed what, as [`crate::journey`] tells it: some ten small rows a
    /// second for each part of the log, which [`crate::retention`] removes.
    pub keeps_trail: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gaps: Gaps::default(),
            on_missing_history: MissingHistory::Stop,
            batch_events_max: PROJECTOR_BATCH_EVENTS_MAX,
            apply_time_max: PROJECTOR_APPLY_TIME_MAX,
            keeps_trail: true,
        }
    }
}

/// The outcome when a projector needs events that the log no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingHistory {
    /// The projector stops and says so; nothing is skipped.
    Stop,
    /// It goes on at the first event the log still holds, and says so.
    Earliest,
}

/// Runs projectors, each in a task of its own.
#[derive(Debug)]
pub struct Runtime {
    plans: Vec<(Plan, Tasks)>,
    known_types: HashSet<String>,
    db: Db,
    log: Log,
    clock: Clock,
    handle: Handle,
}

impl Runtime {
    /// A runtime without projectors yet.
    pub fn new(db: Db, log: Log, clock: Clock) -> Self {
        let handle = Handle::new(db.clone(), log.clone(), clock.clone());
        Self { plans: Vec::new(), known_types: HashSet::new(), db, log, clock, handle }
    }

    /// Names event types that are no surprise although no projector here wants them. A type that
    /// is neither named nor wanted is counted, and said once.
    #[must_use]
    pub fn knowing<'t>(mut self, event_types: impl IntoIterator<Item = &'t str>) -> Self {
        self.known_types.extend(event_types.into_iter().map(str::to_owned));
        self
    }

    /// Adds a projector.
    #[must_use]
    pub fn with(mut self, projector: Arc<dyn Projector>, options: Options) -> Self {
        self.known_types.extend(projector.event_types().iter().map(|event_type| (*event_type).to_owned()));
        let tasks = self.handle.register(Arc::clone(&projector), self.log.parts(projector.event_types()));
        let (db, clock) = (self.db.clone(), self.clock.clone());
        self.plans.push((Plan::new(projector, options, db, clock, self.log.before_first()), tasks));
        self
    }

    /// Tells how far the projectors are.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `shutdown`; each projector then finishes its transaction, so its position never
    /// passes an event that was not applied.
    ///
    /// # Errors
    /// When a projector's task ended by a fault of this crate; the others are ended in order first.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let ending = shutdown.child_token();
        let known_types = Arc::new(self.known_types);
        let mut running = JoinSet::new();
        for (plan, tasks) in self.plans {
            let plan = plan.knowing(Arc::clone(&known_types));
            running.spawn(Supervisor::new(plan, self.log.clone(), tasks).run(ending.clone()));
        }
        let watching = watch_other_processes(&self.db);
        tokio::pin!(watching);
        let mut outcome = Ok(());
        loop {
            tokio::select! {
                ended = running.join_next() => match ended {
                    None => return outcome,
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(error))) => {
                        outcome = Err(error);
                        ending.cancel();
                    }
                    Some(Err(error)) => {
                        outcome = Err(Error::Invariant { message: format!("a projector's task ended: {error}") });
                        ending.cancel();
                    }
                },
                () = &mut watching => {}
            }
        }
    }
}

/// Notices commits of other processes for good.
async fn watch_other_processes(db: &Db) {
    loop {
        let Err(error) = db.watch_other_processes().await;
        tracing::warn!(error = Error::chain(&error), "commits of other processes are not noticed for a while");
        tokio::time::sleep(PROJECTOR_BACKOFF_MAX).await;
    }
}
