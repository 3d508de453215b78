//! Runs the generations of one projector: the live one always, the next one while it is built, and leads the
//! rebuild if no other process does. What is to run is read from the database, once in a while.

use std::{collections::BTreeMap, sync::Arc};

use rand::RngExt;
use tidings_event::Timestamp;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    Generation,
    feed::{Feed, OutboxFeed},
    generation::{self, Lineage},
    group::Group,
    pace::Pace,
    rebuild::{self, Foreman, Look, Rebuild},
    status::Tasks,
    task::Plan,
};
use crate::{
    Durability, Error, Result,
    limits::{GENERATION_LOOK_GAP, PROJECTOR_BACKOFF_MAX, PROJECTOR_BACKOFF_MIN, REBUILD_LEAD_TIME},
    log::Log,
};

/// Runs the generations of one projector.
pub(super) struct Supervisor {
    plan: Plan,
    log: Log,
    tasks: Tasks,
    /// The name under which this process leads a rebuild.
    name: Arc<str>,
    running: BTreeMap<String, Running>,
    /// What was started and has not ended.
    set: JoinSet<()>,
    leading: Option<(CancellationToken, JoinHandle<()>)>,
}

/// A generation whose tasks run here.
struct Running {
    lineage: Lineage,
    pace: Pace,
    shutdown: CancellationToken,
    /// When the rebuild was asked for that it was started for: a replay is called as the one before it was.
    started_at: Option<Timestamp>,
}

impl Supervisor {
    pub(super) fn new(plan: Plan, log: Log, tasks: Tasks) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a name that no other process has; nothing repeats it")]
        let number: u128 = rand::rng().random();
        let name = format!("{number:032x}").into();
        Self { plan, log, tasks, name, running: BTreeMap::new(), set: JoinSet::new(), leading: None }
    }

    /// Runs until `shutdown`; all tasks then finish their transactions.
    ///
    /// # Errors
    /// When a task ended by a fault of this crate; the others are ended in order first.
    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Result<()> {
        let mut backoff = PROJECTOR_BACKOFF_MIN;
        let mut outcome = Ok(());
        while !shutdown.is_cancelled() {
            let pause = match self.look_after(&shutdown).await {
                Ok(()) => {
                    backoff = PROJECTOR_BACKOFF_MIN;
                    GENERATION_LOOK_GAP
                }
                Err(error) => {
                    // Whatever runs goes on: it says itself what it lacks.
                    if self.running.is_empty() {
                        self.plan.back_off(&error, backoff);
                    }
                    backoff = (backoff * 2).min(PROJECTOR_BACKOFF_MAX);
                    backoff
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shutdown.cancelled() => {}
                Some(ended) = self.set.join_next() => if let Err(error) = ended {
                    outcome = Err(Error::Invariant { message: format!("a projector's task ended: {error}") });
                    break;
                }
            }
        }
        self.running.values().for_each(|running| running.shutdown.cancel());
        self.stop_leading();
        while self.set.join_next().await.is_some() {}
        outcome
    }

    /// Starts and stops what is to be, as the database says now.
    async fn look_after(&mut self, shutdown: &CancellationToken) -> Result<()> {
        let look = match rebuild::look(self.plan.db(), self.plan.name()).await? {
            Some(look) => look,
            None => {
                let mut tx = self.plan.db().write(Durability::Full).await?;
                generation::ensure(&mut tx.conn(), self.plan.name()).await?;
                tx.commit().await?;
                Look { live: Generation::FIRST, rebuild: None }
            }
        };
        self.run_generations(&look, shutdown)?;
        self.lead(look.rebuild.as_ref().filter(|rebuild| rebuild.needs_foreman())).await
    }

    fn run_generations(&mut self, look: &Look, shutdown: &CancellationToken) -> Result<()> {
        let live = look.live.identity(self.plan.name());
        let building = look.rebuild.as_ref().filter(|rebuild| rebuild.state.applies());
        let building = building.filter(|rebuild| rebuild.identity() != live);
        let built = building.map(|rebuild| (rebuild.identity(), Some(rebuild.started_at)));
        let is_built = |running: &str, at| built.as_ref().is_some_and(|built| (&*built.0, built.1) == (running, at));
        self.running.retain(|running, Running { shutdown, started_at, .. }| {
            let is_wanted = *running == live || is_built(running, *started_at);
            if !is_wanted {
                shutdown.cancel();
            }
            is_wanted
        });
        // Before any of its tasks is known: whoever measures meanwhile tells it as what it is.
        self.tasks.set_live(&live);
        if !self.running.contains_key(&live) {
            let lineage = Lineage::new(self.plan.name(), look.live, true);
            self.begin(lineage, None, shutdown)?;
        }
        if let Some(rebuild) = building.filter(|rebuild| !self.running.contains_key(&rebuild.identity())) {
            let lineage = Lineage::new(self.plan.name(), rebuild.generation, false);
            let lineage = if rebuild.wish.in_place { lineage.called(&rebuild.identity()) } else { lineage };
            self.begin(lineage, Some(rebuild), shutdown)?;
        }
        for (name, Running { lineage, pace, .. }) in &self.running {
            lineage.set_live(*name == live);
            match building.filter(|_| *name != live) {
                Some(rebuild) if rebuild.is_paused => pace.halt(),
                Some(Rebuild { events_per_second: 0, .. }) | None => pace.free(),
                Some(rebuild) => pace.limit(rebuild.events_per_second, rebuild.parts().len()),
            }
        }
        Ok(())
    }

    fn begin(&mut self, lineage: Lineage, rebuild: Option<&Rebuild>, shutdown: &CancellationToken) -> Result<()> {
        let (pace, shutdown) = (Pace::default(), shutdown.child_token());
        let identity = lineage.identity.to_string();
        let plan = self.plan.on(lineage.clone(), pace.clone(), self.tasks.of(&identity));
        let plan = match rebuild.map(Rebuild::replay_ends).transpose()?.flatten() {
            Some(ends) => plan.until(ends),
            None => plan,
        };
        match &self.log {
            Log::Embedded(db) => {
                let feed = OutboxFeed::new(db, plan.identity(), plan.batch_events_max());
                self.set.spawn(plan.task(Feed::Outbox(feed)).run(shutdown.clone()));
            }
            Log::Kafka(log) => {
                self.set.spawn(Group::new(plan, log.clone()).run(shutdown.clone()));
            }
        }
        let started_at = rebuild.map(|rebuild| rebuild.started_at);
        self.running.insert(identity, Running { lineage, pace, shutdown, started_at });
        Ok(())
    }

    /// Leads the rebuild, as long as no other process does.
    async fn lead(&mut self, rebuild: Option<&Rebuild>) -> Result<()> {
        let Some(rebuild) = rebuild else {
            // A foreman who has nothing more to do ends by himself.
            if self.leading.as_ref().is_some_and(|(_, task)| task.is_finished()) {
                self.leading = None;
            }
            return Ok(());
        };
        let now = self.plan.clock().now();
        let lead_ms = i64::try_from(REBUILD_LEAD_TIME.as_millis()).unwrap_or(i64::MAX);
        let mut tx = self.plan.db().write(Durability::Rebuildable).await?;
        let until = Timestamp(now.0.saturating_add(lead_ms));
        let leads = rebuild::take_lead(&mut tx.conn(), &rebuild.projector, &self.name, now, until).await?;
        tx.commit().await?;
        if !leads {
            self.stop_leading();
        } else if self.leading.as_ref().is_none_or(|(_, task)| task.is_finished()) {
            let foreman = Foreman::new(self.plan.clone(), self.log.clone(), Arc::clone(&self.name));
            let ending = CancellationToken::new();
            let task = tokio::spawn(foreman.lead(ending.clone()));
            self.leading = Some((ending, task));
        }
        Ok(())
    }

    fn stop_leading(&mut self) {
        if let Some((ending, _)) = self.leading.take() {
            ending.cancel();
        }
    }
}
