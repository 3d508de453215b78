//! The repair of what a run found: by events alone, a batch at a time.

use std::collections::BTreeSet;

use super::{
    Reconciled,
    run::{RepairState, Run},
    runner::Reconciler,
    store::{self, Repairable},
};
use crate::{
    Durability, Error, Result,
    audit::{self, Actor, Entry},
    counted::{self, Counted},
    db::Value,
    limits::{PROJECTOR_BACKOFF_MIN, RECONCILE_REPAIR_TRIES_MAX},
    log::Log,
};

/// Who repairs what an operator did not ask for.
const NOBODY: &str = "tidings:reconcile";

/// Repairs all that is left of what a run found.
pub(super) async fn repair(reconciler: &Reconciler, run: &Run) -> Result<()> {
    let mut tries_left = RECONCILE_REPAIR_TRIES_MAX;
    let mut backoff = PROJECTOR_BACKOFF_MIN;
    let failed = loop {
        match repair_batch(reconciler, run).await {
            Ok(Batch::Repaired) => tries_left = RECONCILE_REPAIR_TRIES_MAX,
            Ok(Batch::NoneLeft) => break None,
            Ok(Batch::NotMine) => return Ok(()),
            // Another one held a row that both want, or the database was away: nothing of the batch is there.
            Err(error) if (error.is_transient() || error.is_lost_race()) && tries_left > 1 => {
                tries_left -= 1;
                tokio::time::sleep(backoff).await;
                backoff *= 2;
            }
            Err(error) => break Some(Error::chain(&error)),
        }
    };
    let state = if failed.is_none() { RepairState::Done } else { RepairState::Failed };
    let columns: Vec<(&'static str, Value)> = vec![
        ("active", None::<i64>.into()),
        ("repair_state", state.name().into()),
        ("repaired_at", reconciler.clock.now().0.into()),
        ("repair_error", failed.clone().into()),
    ];
    let mut tx = reconciler.db.write(Durability::Full).await?;
    if !store::change(&mut tx.conn(), run.seq, &reconciler.name, columns).await? {
        return tx.rollback().await;
    }
    tx.commit().await?;
    match failed {
        None => tracing::info!(run = run.id, "the repair has ended"),
        Some(error) => tracing::error!(run = run.id, error, "the repair failed"),
    }
    Ok(())
}

enum Batch {
    Repaired,
    NoneLeft,
    NotMine,
}

/// Repairs the next differences: events, the line in the audit, and that they are repaired, in one transaction. Left
/// out are those whose events would come behind a dead letter, and never into the log.
async fn repair_batch(reconciler: &Reconciler, run: &Run) -> Result<Batch> {
    let held_back = match &reconciler.log {
        Log::Kafka(log) => log.keys_set_aside().await?,
        Log::Embedded(_) => BTreeSet::new(),
    };
    let mut tx = reconciler.db.write(Durability::Full).await?;
    let Some((batch, last)) = store::next_differences(&mut tx.conn(), run.seq).await? else {
        return tx.rollback().await.map(|()| Batch::NoneLeft);
    };
    let Some(Repairable { projector, check, .. }) = batch.first().cloned() else {
        return tx.rollback().await.map(|()| Batch::NoneLeft);
    };
    let known = reconciler.reconciled.iter().find(|reconciled| reconciled.projector() == projector);
    let unknown = || Error::Invariant { message: format!("nothing here can repair what `{projector}` maintains") };
    let reconciled: &dyn Reconciled = &**known.ok_or_else(unknown)?;
    let (mut differences, mut left_out) = (Vec::with_capacity(batch.len()), Vec::new());
    for Repairable { difference, .. } in batch {
        match reconciled.key(&difference).filter(|key| held_back.contains(key)) {
            Some(key) => left_out.push(key),
            None => differences.push(difference),
        }
    }
    let events = match differences.is_empty() {
        true => 0,
        false => reconciled.repair(&differences, &reconciler.ids, tx.conn()).await?,
    };
    store::remove_differences(&mut tx.conn(), run.seq, last).await?;
    // By now an operator may have asked for it, and not only the schedule.
    let asked = store::find(&mut tx.conn(), &run.id).await?;
    let (repaired, actor, mut checks) =
        asked.map_or((0, None, Vec::new()), |run| (run.repair.events, run.repair.actor, run.checks));
    let now = reconciler.clock.now();
    let details = serde_json::json!({
        "run": run.id, "check": check, "differences": differences.len(), "events": events, "left_out": left_out.len(),
    });
    let entry = Entry {
        actor: &Actor::new(actor.as_deref().unwrap_or(NOBODY)),
        action: "reconcile.repaired",
        projector: Some(&projector),
        key: None,
        event_id: None,
        reason: None,
        details: details.to_string(),
    };
    audit::write(&mut tx.conn(), &entry, now).await?;
    let total = i64::try_from(repaired.saturating_add(events)).unwrap_or(i64::MAX);
    let mut columns: Vec<(&'static str, Value)> =
        vec![("repaired_events", total.into()), ("repaired_at", now.0.into())];
    if !left_out.is_empty() {
        tracing::warn!(
            run = run.id,
            check,
            count = left_out.len(),
            "a repair leaves out keys that the relay holds back"
        );
        checks.iter_mut().filter(|found| found.check == check).for_each(|found| found.leave_out(left_out.clone()));
        let checks = serde_json::to_string(&checks).map_err(Error::json("storing a reconciliation"))?;
        columns.push(("checks", checks.into()));
    }
    if !store::change(&mut tx.conn(), run.seq, &reconciler.name, columns).await? {
        return tx.rollback().await.map(|()| Batch::NotMine);
    }
    counted::add(&mut tx.conn(), Counted::RepairedEvents, "", events).await?;
    fail::fail_point!("reconcile-before-repair-commit", |_| std::process::abort());
    tx.commit().await?;
    Ok(Batch::Repaired)
}
