//! What an operator may ask for: the command line and the admin API ask here alike.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tidings_event::Timestamp;

use super::{
    Reconciled,
    run::{RepairState, Run, State, Trigger},
    store,
};
use crate::{
    Clock, Conn, Db, Durability, Error, EventIds, Result,
    audit::{self, Actor, Entry},
    counted::{self, Counted},
    idempotency::{IdempotencyKey, KeyReused, once},
    limits::RECONCILE_REPAIR_AGE_MAX,
    telemetry,
};

/// Begins, shows and repairs runs, whichever process does them. Cheap to clone.
#[derive(Clone)]
pub struct Reconciliations {
    db: Db,
    clock: Clock,
    ids: EventIds,
    projectors: Arc<[&'static str]>,
}

/// Why an operator's wish is not followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No feature compares the projection of this projector.
    #[error("no projection of a projector of this name is compared")]
    UnknownProjector,
    /// There is no such run.
    #[error("there is no such run")]
    UnknownRun,
    /// Another one is being done or repaired.
    #[error("another one is under way ({id})")]
    UnderWay {
        /// Which one.
        id: String,
    },
    /// It found nothing that events can put right, or a later run looked again.
    #[error("there is nothing to repair of this run")]
    NothingToRepair,
    /// What it found may be otherwise by now.
    #[error("this run is too old; run another one first")]
    TooOld,
    /// The idempotency key belongs to another request.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
}

impl From<KeyReused> for Refusal {
    fn from(KeyReused: KeyReused) -> Self {
        Self::KeyReused
    }
}

impl Reconciliations {
    /// For the projections that are compared here. Ids of runs are made by `ids`.
    pub fn new(db: Db, clock: Clock, ids: EventIds, reconciled: &[Arc<dyn Reconciled>]) -> Self {
        let projectors = reconciled.iter().map(|reconciled| reconciled.projector()).collect();
        Self { db, clock, ids, projectors }
    }

    /// The runs before `before`, the newest first.
    pub async fn list(&self, before: Option<i64>, limit: usize) -> Result<Vec<Run>> {
        let mut tx = self.db.read().await?;
        store::list(&mut tx.conn(), before, limit).await
    }

    /// A run.
    pub async fn find(&self, id: &str) -> Result<Option<Run>> {
        let mut tx = self.db.read().await?;
        store::find(&mut tx.conn(), id).await
    }

    /// Asks for a run, in the name of `actor`, of one projector alone if one is named. A process that runs projectors
    /// does it within some seconds. The same `key` once more is answered with the run that it began.
    ///
    /// # Errors
    /// [`Error::Reconcile`] when another one is under way.
    pub async fn start(&self, projector: Option<&str>, actor: &Actor, key: Option<&IdempotencyKey>) -> Result<Run> {
        let begun = once::attempt(&self.db, key, || self.try_start(projector, actor, key)).await?;
        self.run(begun).await
    }

    async fn try_start(
        &self,
        projector: Option<&str>,
        actor: &Actor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Result<String, Refusal>> {
        let now = self.clock.now();
        let mut tx = self.db.write(Durability::Full).await?;
        if let Some(answered) = once::answered(&mut tx.conn(), key).await? {
            return tx.rollback().await.map(|()| answered);
        }
        let begun = match projector.is_some_and(|projector| !self.projectors.contains(&projector)) {
            true => Err(Refusal::UnknownProjector),
            false => self.begin(&mut tx.conn(), Trigger::Operator, Some(actor), projector).await?,
        };
        let run = match begun {
            Ok(run) => run,
            Err(refusal) => return once::refused(tx, key, refusal, now).await,
        };
        once::done(tx, key, &run.id, now).await?;
        Ok(Ok(run.id))
    }

    /// The run that was begun or is to be repaired, as it is now.
    async fn run(&self, id: Result<String, Refusal>) -> Result<Run> {
        let id = id.map_err(Error::Reconcile)?;
        self.find(&id).await?.ok_or(Error::Reconcile(Refusal::UnknownRun))
    }

    /// Begins a run if the last one of everything began so long ago; answers it.
    pub(super) async fn start_if_due(&self, every: Duration, first_at: Timestamp) -> Result<Option<Run>> {
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        let now = self.clock.now();
        let is_due = |last: Option<&Run>| match last {
            // A run of a clock that was ahead says nothing.
            Some(last) => now.0.saturating_sub(last.started_at.0) >= every || last.started_at.0 > now.0 + every,
            None => now >= first_at,
        };
        {
            let mut tx = self.db.glance().await?;
            if !is_due(store::last_of_all_before(&mut tx.conn(), i64::MAX).await?.as_ref()) {
                return Ok(None);
            }
        }
        let mut tx = self.db.write(Durability::Full).await?;
        let run = match self.begin(&mut tx.conn(), Trigger::Schedule, None, None).await {
            Ok(Ok(run)) => run,
            Ok(Err(_under_way)) => return tx.rollback().await.map(|()| None),
            Err(error) if error.is_lost_race() => return tx.rollback().await.map(|()| None),
            Err(error) => return Err(error),
        };
        // Once ours is stored nobody else stores one: now it is seen whether somebody had just done so.
        if !is_due(store::last_of_all_before(&mut tx.conn(), run.seq).await?.as_ref()) {
            return tx.rollback().await.map(|()| None);
        }
        tx.commit().await?;
        Ok(Some(run))
    }

    /// # Errors
    /// [`Error::is_lost_race`] when somebody else has begun one just now.
    async fn begin(
        &self,
        conn: &mut Conn<'_>,
        trigger: Trigger,
        actor: Option<&Actor>,
        projector: Option<&str>,
    ) -> Result<Result<Run, Refusal>> {
        let now = self.clock.now();
        if let Err(refusal) = make_room(conn, now).await? {
            return Ok(Err(refusal));
        }
        let id = self.ids.next(now).to_string();
        store::insert(conn, &id, trigger, actor.map(Actor::as_str), projector, now).await?;
        let run = store::find(conn, &id).await?;
        let run = run.ok_or_else(|| Error::Invariant { message: "a run went while it was begun".to_owned() })?;
        store::remove_old(conn, run.seq).await?;
        Ok(Ok(run))
    }

    /// Asks for the repair of what a run found, in the name of `actor`: by events, within some seconds. The same `key`
    /// once more is answered with the run, and repairs nothing.
    ///
    /// # Errors
    /// [`Error::Reconcile`] when there is nothing to repair, the run is too old, or another one is under way.
    pub async fn repair(&self, id: &str, actor: &Actor, key: Option<&IdempotencyKey>) -> Result<Run> {
        let asked = once::attempt(&self.db, key, || self.try_repair(id, actor, key)).await?;
        self.run(asked).await
    }

    /// What [`Reconciliations::repair`] would put right.
    ///
    /// # Errors
    /// As [`Reconciliations::repair`].
    pub async fn would_repair(&self, id: &str) -> Result<Run> {
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let run = repairable(&mut tx.conn(), id, self.clock.now()).await?;
        tx.rollback().await?;
        run.map_err(Error::Reconcile)
    }

    async fn try_repair(
        &self,
        id: &str,
        actor: &Actor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Result<String, Refusal>> {
        let now = self.clock.now();
        let mut tx = self.db.write(Durability::Full).await?;
        if let Some(answered) = once::answered(&mut tx.conn(), key).await? {
            return tx.rollback().await.map(|()| answered);
        }
        let run = match repairable(&mut tx.conn(), id, now).await? {
            Ok(run) => run,
            Err(refusal) => return once::refused(tx, key, refusal, now).await,
        };
        let sql = "UPDATE reconciliation SET active = 1, repair_state = 'running', repair_actor = ?, \
                   repair_error = NULL, runner = '', runner_until = ?, tries = 0 WHERE seq = ?";
        let args = vec![actor.as_str().into(), (now.0 - 1).into(), run.seq.into()];
        tx.conn().execute("asking for a repair", sql, args).await?;
        let details = serde_json::json!({ "run": run.id, "differences": run.differences });
        let entry = Entry {
            actor,
            action: "reconcile.repair",
            projector: None,
            key: None,
            event_id: None,
            reason: None,
            details: details.to_string(),
        };
        audit::write(&mut tx.conn(), &entry, now).await?;
        once::done(tx, key, &run.id, now).await?;
        Ok(Ok(run.id))
    }

    /// Publishes what the last run found and how old it is, whichever process did it; called when metrics are scraped.
    pub async fn publish_gauges(&self) -> Result<()> {
        let (whole, first) = {
            let mut tx = self.db.read().await?;
            (store::last_whole(&mut tx.conn()).await?, store::first(&mut tx.conn()).await?)
        };
        // Where none was ever done, it is as old as the first try.
        let since = whole.as_ref().and_then(|run| run.finished_at).or(first.map(|run| run.started_at));
        if let Some(since) = since {
            telemetry::reconciliation_age((self.clock.now().0 - since.0).max(0) as f64 / 1_000.0);
        }
        for found in whole.iter().flat_map(|run| &run.checks) {
            telemetry::reconciliation_found(&found.check, found.differences, found.lagging);
        }
        Ok(())
    }
}

/// The run, if it can be repaired; kept for this transaction.
async fn repairable(conn: &mut Conn<'_>, id: &str, now: Timestamp) -> Result<Result<Run, Refusal>> {
    if let Err(refusal) = make_room(conn, now).await? {
        return Ok(Err(refusal));
    }
    let Some(run) = store::find_to_write(conn, id).await? else { return Ok(Err(Refusal::UnknownRun)) };
    if run.state == State::Running || !matches!(run.repair.state, RepairState::Possible | RepairState::Failed) {
        return Ok(Err(Refusal::NothingToRepair));
    }
    let age_max = i64::try_from(RECONCILE_REPAIR_AGE_MAX.as_millis()).unwrap_or(i64::MAX);
    let is_too_old = run.finished_at.is_none_or(|at| now.0 - at.0 > age_max);
    Ok(if is_too_old { Err(Refusal::TooOld) } else { Ok(run) })
}

/// Gives up the run that is under way if nobody does it any more; else refuses.
async fn make_room(conn: &mut Conn<'_>, now: Timestamp) -> Result<Result<(), Refusal>> {
    let Some(run) = store::active_to_write(conn).await? else { return Ok(Ok(())) };
    if !run.is_abandoned(now) {
        return Ok(Err(Refusal::UnderWay { id: run.id }));
    }
    give_up(conn, &run, now, "nobody did it: a process with projectors must run").await.map(Ok)
}

/// Ends what is under way of a run, as failed, unless somebody has begun to do it since.
pub(super) async fn give_up(conn: &mut Conn<'_>, run: &Run, now: Timestamp, why: &str) -> Result<()> {
    let columns = match run.state {
        State::Running => "state = 'failed', error = ?, finished_at = ?",
        State::Done | State::Failed => "repair_state = 'failed', repair_error = ?, repaired_at = ?",
    };
    let sql = format!(
        "UPDATE reconciliation SET active = NULL, {columns} WHERE seq = ? AND active = 1 AND runner = ? AND tries = ?"
    );
    let args = vec![why.into(), now.0.into(), run.seq.into(), run.runner.as_str().into(), run.tries.into()];
    let given_up = conn.execute("giving a reconciliation up", sql, args).await?;
    if given_up > 0 && run.state == State::Running {
        counted::add(conn, Counted::Reconciliations, State::Failed.name(), 1).await?;
    }
    Ok(())
}

impl fmt::Debug for Reconciliations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciliations").field("projectors", &self.projectors).finish_non_exhaustive()
    }
}
