//! Does runs: one process at a time, which keeps a run by a lease.

use std::{sync::Arc, time::Duration};

use rand::RngExt;
use tidings_event::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    Compared, Comparison, Reconciled, Reconciliations,
    control::give_up,
    lateness, repairing,
    run::{Found, RepairState, Run, State, Trigger},
    sequence, shards,
    store::{self, Repairable},
};
use crate::{
    Clock, Db, Durability, Error, EventIds, Result,
    audit::Actor,
    counted::{self, Counted},
    db::Value,
    limits::{
        RECONCILE_FIRST_TIME, RECONCILE_LEASE_TIME, RECONCILE_LOOK_GAP, RECONCILE_STORED_ROWS, RECONCILE_TRIES_MAX,
    },
    log::Log,
    projector::generation,
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
        }
    }
}

/// Does the runs that are due or asked for.
pub struct Reconciler {
    pub(super) db: Db,
    log: Log,
    pub(super) clock: Clock,
    pub(super) ids: EventIds,
    pub(super) reconciled: Vec<Arc<dyn Reconciled>>,
    options: Options,
    control: Reconciliations,
    /// The name under which this process keeps a run.
    pub(super) name: Arc<str>,
    /// Where no run was ever begun, the first one on schedule is due then.
    first_at: Timestamp,
}

/// What the checks of a run have found.
#[derive(Default)]
struct Outcome {
    checks: Vec<Found>,
    repairable: Vec<Repairable>,
    errors: Vec<String>,
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
        self.control.repair(id, actor).await?;
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
        tokio::select! {
            done = self.work(run) => done?,
            lost = self.keep(run) => lost?,
        }
        Ok(true)
    }

    async fn work(&self, run: &Run) -> Result<()> {
        let is_to_repair = match run.state {
            State::Running => self.reconcile(run).await?,
            State::Done | State::Failed => run.repair.state == RepairState::Running,
        };
        if is_to_repair { repairing::repair(self, run).await } else { Ok(()) }
    }

    /// Keeps the run; returns when it is another process's.
    async fn keep(&self, run: &Run) -> Result<()> {
        loop {
            tokio::time::sleep(self.options.lease / 4).await;
            let until = after(self.clock.now(), self.options.lease);
            match self.change(run.seq, vec![("runner_until", until.0.into())]).await {
                Ok(true) => {}
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

    /// Makes every check and stores what it found; answers whether it is to be repaired at once.
    async fn reconcile(&self, run: &Run) -> Result<bool> {
        let Outcome { checks, repairable, errors } = self.outcome(run).await;
        let differences: u64 = checks.iter().map(|found| found.differences).sum();
        let lagging: u64 = checks.iter().map(|found| found.lagging).sum();
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        store::clear_differences(&mut tx.conn(), run.seq).await?;
        tx.commit().await?;
        let mut first = 0;
        for part in repairable.chunks(RECONCILE_STORED_ROWS) {
            let mut tx = self.db.write(Durability::Rebuildable).await?;
            store::add_differences(&mut tx.conn(), run.seq, first, part).await?;
            tx.commit().await?;
            first += i64::try_from(part.len()).unwrap_or(i64::MAX);
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
        store::forget_others(&mut tx.conn(), run.seq).await?;
        if !store::change(&mut tx.conn(), run.seq, &self.name, columns).await? {
            // Another process does it now.
            return tx.rollback().await.map(|()| false);
        }
        counted::add(&mut tx.conn(), Counted::Reconciliations, state.name(), 1).await?;
        tx.commit().await?;
        tracing::info!(run = run.id, state = state.name(), differences, lagging, "the reconciliation has ended");
        Ok(repairs)
    }

    async fn outcome(&self, run: &Run) -> Outcome {
        let mut outcome = Outcome::default();
        if run.projector.is_none() {
            self.check_path(&mut outcome).await;
        }
        let is_wanted = |of: &&Arc<dyn Reconciled>| run.projector.as_deref().is_none_or(|name| name == of.projector());
        for reconciled in self.reconciled.iter().filter(is_wanted) {
            let projector = reconciled.projector();
            match self.compare(&**reconciled).await {
                Ok(compared) => compared.iter().for_each(|compared| outcome.add(compared, Some(projector), None)),
                Err(error) => outcome.fail(projector, Some(projector), &error),
            }
        }
        outcome
    }

    /// The checks of the path from the outbox to the log.
    async fn check_path(&self, outcome: &mut Outcome) {
        let (now, Options { relay_late, window, event_types, .. }) = (self.clock.now(), &self.options);
        let Log::Kafka(log) = &self.log else {
            match sequence::check(&self.db, before(now, *window)).await {
                Ok(compared) => outcome.add(&compared, None, Some("the outbox is the log".to_owned())),
                Err(error) => outcome.fail("log", None, &error),
            }
            return;
        };
        match lateness::check(log, before(now, *relay_late)).await {
            Ok((compared, note)) => outcome.add(&compared, None, note),
            Err(error) => outcome.fail("relay", None, &error),
        }
        let window = shards::Window { from: before(now, *window), until: before(now, *relay_late) };
        match shards::check(&self.db, &self.log, log, event_types, window).await {
            Ok((compared, note)) => outcome.add(&compared, None, note),
            Err(error) => outcome.fail("log", None, &error),
        }
    }

    async fn compare(&self, reconciled: &dyn Reconciled) -> Result<Vec<Compared>> {
        loop {
            let generation = self.live(reconciled).await?;
            let identity = generation.identity(reconciled.projector());
            let event_types = reconciled.event_types();
            let comparison = Comparison { db: &self.db, log: &self.log, generation, identity: &identity, event_types };
            let compared = reconciled.compare(&comparison).await?;
            // Of one that readers are not given any more nothing is maintained.
            if self.live(reconciled).await? == generation {
                return Ok(compared);
            }
        }
    }

    async fn live(&self, reconciled: &dyn Reconciled) -> Result<generation::Generation> {
        let mut tx = self.db.glance().await?;
        generation::live(&mut tx.conn(), reconciled.projector()).await
    }
}

impl Outcome {
    fn add(&mut self, compared: &Compared, projector: Option<&str>, note: Option<String>) {
        self.checks.push(Found::of(compared, projector, note));
        let Some(projector) = projector else { return };
        self.repairable.extend(compared.differences.iter().map(|difference| Repairable {
            projector: projector.to_owned(),
            check: compared.check.to_owned(),
            difference: difference.clone(),
        }));
    }

    fn fail(&mut self, check: &str, projector: Option<&str>, error: &Error) {
        let error = Error::chain(error);
        tracing::warn!(check, error, "a check of the reconciliation failed");
        self.checks.push(Found::failed(check, projector, &error));
        self.errors.push(format!("{check}: {error}"));
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn after(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp(at.0.saturating_add(millis(time)))
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub(millis(time)))
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("options", &self.options).finish_non_exhaustive()
    }
}
