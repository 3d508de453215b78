//! Does runs: one process at a time, which keeps a run by a lease.

use std::{sync::Arc, time::Duration};

use rand::RngExt;
use tidings_event::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    Reconciled, Reconciliations,
    control::give_up,
    outcome::{self, Outcome},
    repairing,
    run::{RepairState, Run, State, Trigger},
    store::{self, Repairable, Whose},
};
use crate::{
    Clock, Db, Durability, Error, EventIds, Result,
    audit::Actor,
    counted::{self, Counted},
    db::Value,
    limits::{
        REBUILD_SETTLE_TIME_MAX, RECONCILE_FIRST_TIME, RECONCILE_LEASE_TIME, RECONCILE_LOOK_GAP, RECONCILE_STORED_ROWS,
        RECONCILE_TRIES_MAX,
    },
    log::Log,
    telemetry,
};

/// How runs are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Time between two runs on schedule; none unless given.
    pub every: Option<Duration>,
    /// Time from a commit to its being in the log, after which that is a difference.
    pub relay_late: Duration,
    /// How far back outbox and log are compared.
    pub window: Duration,
    /// A run on schedule that finds at most so many differences is repaired at once; 0 for never.
    pub repair_max: u64,
    /// The event types whose topics are compared with the outbox.
    pub event_types: Vec<&'static str>,
    /// How often to look whether a run is due, or asked for.
    pub look_gap: Duration,
    /// How long a run is kept without a word: whoever does it then has ended.
    pub lease: Duration,
    /// How long a projector is waited for: then what it has not dealt with is told apart by its events.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            every: Some(Duration::from_hours(24)),
            relay_late: Duration::from_secs(60),
            window: Duration::from_hours(24),
            repair_max: 0,
            event_types: Vec::new(),
            look_gap: RECONCILE_LOOK_GAP,
            lease: RECONCILE_LEASE_TIME,
            patience: REBUILD_SETTLE_TIME_MAX,
        }
    }
}

/// Does the runs that are due or asked for.
pub struct Reconciler {
    pub(super) db: Db,
    pub(super) log: Log,
    pub(super) clock: Clock,
    pub(super) ids: EventIds,
    pub(super) reconciled: Vec<Arc<dyn Reconciled>>,
    pub(super) options: Options,
    control: Reconciliations,
    /// The name under which this process keeps a run.
    pub(super) name: Arc<str>,
    /// Where no run was ever begun, the first one on schedule is due then.
    first_at: Timestamp,
}

impl Reconciler {
    /// A reconciler of these projections, that does nothing yet.
    pub fn new(
        db: Db,
        log: Log,
        clock: Clock,
        ids: EventIds,
        reconciled: Vec<Arc<dyn Reconciled>>,
        options: Options,
    ) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a name that no other process has; nothing repeats it")]
        let number: u128 = rand::rng().random();
        let control = Reconciliations::new(db.clone(), clock.clone(), ids.clone(), &reconciled);
        let first = options.every.unwrap_or_default().min(RECONCILE_FIRST_TIME);

        let first_at = after(clock.now(), first);
        Self { db, log, clock, ids, reconciled, options, control, name: format!("{number:032x}").into(), first_at }
    }

    /// What an operator may ask for.
    pub fn control(&self) -> Reconciliations {
        self.control.clone()
    }

    /// Does what is due or asked for, until `shutdown`; what it does then is left to others at once.
    pub async fn run(self, shutdown: CancellationToken) {
        telemetry::reconciliation_every(self.options.every.unwrap_or_default().as_secs_f64());
        let working = async {
            loop {
                if let Err(error) = self.round().await {
                    tracing::warn!(error = Error::chain(&error), "the reconciliation will try again");
                }
                tokio::time::sleep(self.options.look_gap).await;
            }
        };
        tokio::select! {
            () = working => {}
            () = shutdown.cancelled() => self.release().await,
        }
    }

    /// Begins a run if one is due, and does what is to be done and nobody does; answers whether that was anything.
    pub async fn round(&self) -> Result<bool> {
        if let Some(every) = self.options.every {
            self.control.start_if_due(every, self.first_at).await?;
        }
        let active = {
            let mut tx = self.db.glance().await?;
            store::active(&mut tx.conn()).await?
        };
        match active {
            Some(run) => self.take(&run).await,
            None => Ok(false),
        }
    }

    /// Runs at once, here or wherever it is begun first, and waits for the end; for a command line.
    ///
    /// # Errors
    /// [`Error::Reconcile`] when another one is under way.
    pub async fn run_now(&self, projector: Option<&str>, actor: &Actor) -> Result<Run> {
        let run = self.control.start(projector, actor, None).await?;
        self.see_through(&run.id).await
    }

    /// Repairs at once, and waits for the end; for a command line.
    ///
    /// # Errors
    /// [`Error::Reconcile`] as [`Reconciliations::repair`] has it.
    pub async fn repair_now(&self, id: &str, actor: &Actor) -> Result<Run> {
        self.control.repair(id, actor, None).await?;
        self.see_through(id).await
    }

    async fn see_through(&self, id: &str) -> Result<Run> {
        loop {
            let run = self.control.find(id).await?;
            let run = run.ok_or_else(|| Error::Invariant { message: "a run went while it was done".to_owned() })?;
            if !run.is_active() {
                return Ok(run);
            }
            if !self.take(&run).await? {
                tokio::time::sleep(self.options.look_gap).await;
            }
        }
    }

    /// Does what is to be done for a run, unless another process does; answers whether it was done here.
    async fn take(&self, run: &Run) -> Result<bool> {
        let (now, lease_ms) = (self.clock.now(), millis(self.options.lease));
        if !run.is_free(now, lease_ms) {
            return Ok(false);
        }
        let mut tx = self.db.write(Durability::Full).await?;
        if run.tries >= RECONCILE_TRIES_MAX {
            give_up(&mut tx.conn(), run, now, "whoever did it ended, again and again").await?;
            return tx.commit().await.map(|()| true);
        }
        let has_taken = store::take(&mut tx.conn(), run, &self.name, after(now, self.options.lease)).await?;
        tx.commit().await?;
        if !has_taken {
            return Ok(false);
        }
        if run.tries > 0 {
            tracing::warn!(run = run.id, "whoever did this reconciliation has ended; it begins anew");
        }
        let has_compared = tokio::select! {
            done = self.work(run) => done?,
            lost = self.keep(run) => lost.map(|()| false)?,
        };
        // By now the run is over, and nobody keeps it.
        if has_compared && let Err(error) = self.remove(Whose::Before(run.seq)).await {
            tracing::warn!(error = Error::chain(&error), "what was found before is left to the next reconciliation");
        }
        Ok(true)
    }

    /// Does what is to be done; answers whether it has compared, and stored what it found.
    async fn work(&self, run: &Run) -> Result<bool> {
        let (has_compared, is_to_repair) = match run.state {
            State::Running => match self.reconcile(run).await? {
                Some(is_to_repair) => (true, is_to_repair),
                None => (false, false),
            },
            State::Done | State::Failed => (false, run.repair.state == RepairState::Running),
        };
        if is_to_repair {
            repairing::repair(self, run).await?;
        }
        Ok(has_compared)
    }

    /// Keeps the run; returns when it is another process's.
    async fn keep(&self, run: &Run) -> Result<()> {
        loop {
            tokio::time::sleep(self.options.lease / 4).await;
            let until = after(self.clock.now(), self.options.lease);
            match self.change(run.seq, vec![("runner_until", until.0.into())]).await {
                Ok(true) => {}
                // It has just ended here: the work is about to say so.
                Ok(false) if self.was_last_to_do(run).await? => std::future::pending().await,
                Ok(false) => {
                    tracing::warn!(run = run.id, "another process does this reconciliation now");
                    return Ok(());
                }
                // It is kept as long as the lease lasts, and every step asks whose the run is.
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn was_last_to_do(&self, run: &Run) -> Result<bool> {
        let mut tx = self.db.glance().await?;
        let found = store::find(&mut tx.conn(), &run.id).await?;
        Ok(found.is_some_and(|found| found.runner == *self.name))
    }

    /// Leaves what this process has begun to others.
    async fn release(&self) {
        let sql = "UPDATE reconciliation SET runner_until = ?, tries = tries - 1 WHERE active = 1 AND runner = ?";
        let releasing = async {
            let mut tx = self.db.write(Durability::Rebuildable).await?;
            let args = vec![(self.clock.now().0 - 1).into(), (&*self.name).into()];
            tx.conn().execute("releasing a reconciliation", sql, args).await?;
            tx.commit().await
        };
        if let Err(error) = releasing.await {
            tracing::debug!(error = Error::chain(&error), "the run is left when its lease ends");
        }
    }

    async fn change(&self, seq: i64, columns: Vec<(&'static str, Value)>) -> Result<bool> {
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let is_mine = store::change(&mut tx.conn(), seq, &self.name, columns).await?;
        tx.commit().await?;
        Ok(is_mine)
    }

    /// Makes every check and stores what it found; answers whether it is to be repaired at once, unless another process
    /// does the run now.
    async fn reconcile(&self, run: &Run) -> Result<Option<bool>> {
        let Outcome { checks, repairable, errors } = outcome::outcome(self, run).await;
        let differences: u64 = checks.iter().map(|found| found.differences).sum();
        let lagging: u64 = checks.iter().map(|found| found.lagging).sum();
        if !self.store(run, &repairable).await? {
            return Ok(None);
        }
        fail::fail_point!("reconcile-before-end", |_| std::process::abort());
        let is_whole = errors.is_empty();
        let is_small = differences <= self.options.repair_max;
        let repairs = is_whole && run.trigger == Trigger::Schedule && is_small && !repairable.is_empty();
        let repair = match (repairs, repairable.is_empty()) {
            (true, _) => RepairState::Running,
            (false, true) => RepairState::None,
            (false, false) => RepairState::Possible,
        };
        let state = if is_whole { State::Done } else { State::Failed };
        let columns: Vec<(&'static str, Value)> = vec![
            ("active", repairs.then_some(1).into()),
            ("state", state.name().into()),
            ("finished_at", self.clock.now().0.into()),
            ("error", (!is_whole).then(|| errors.join("; ")).into()),
            ("checks", serde_json::to_string(&checks).map_err(Error::json("storing a reconciliation"))?.into()),
            ("differences", i64::try_from(differences).unwrap_or(i64::MAX).into()),
            ("lagging", i64::try_from(lagging).unwrap_or(i64::MAX).into()),
            ("repair_state", repair.name().into()),
        ];
        let mut tx = self.db.write(Durability::Full).await?;
        if !store::change(&mut tx.conn(), run.seq, &self.name, columns).await? {
            return tx.rollback().await.map(|()| None);
        }
        counted::add(&mut tx.conn(), Counted::Reconciliations, state.name(), 1).await?;
        store::forbid_others(&mut tx.conn(), run.seq).await?;
        tx.commit().await?;
        tracing::info!(run = run.id, state = state.name(), differences, lagging, "the reconciliation has ended");
        Ok(Some(repairs))
    }

    /// Stores what is to be repaired, in transactions that others need not wait for; answers whether it is still for
    /// this process to do so.
    async fn store(&self, run: &Run, repairable: &[Repairable]) -> Result<bool> {
        let mut first = 0;
        let mut parts = repairable.chunks(RECONCILE_STORED_ROWS);
        let mut has_cleared = false;
        loop {
            let mut tx = self.db.write(Durability::Rebuildable).await?;
            if !store::hold(&mut tx.conn(), run.seq, &self.name).await? {
                return tx.rollback().await.map(|()| false);
            }
            if !has_cleared {
                has_cleared = !store::remove_some(&mut tx.conn(), Whose::Of(run.seq)).await?;
            } else if let Some(part) = parts.next() {
                store::add_differences(&mut tx.conn(), run.seq, first, part).await?;
                first += i64::try_from(part.len()).unwrap_or(i64::MAX);
            } else {
                return tx.rollback().await.map(|()| true);
            }
            tx.commit().await?;
        }
    }

    async fn remove(&self, whose: Whose) -> Result<()> {
        loop {
            let mut tx = self.db.write(Durability::Rebuildable).await?;
            if !store::remove_some(&mut tx.conn(), whose).await? {
                return tx.rollback().await;
            }
            tx.commit().await?;
        }
    }
}

pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn after(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp(at.0.saturating_add(millis(time)))
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("options", &self.options).finish_non_exhaustive()
    }
}
