//! Waiting until what is built has applied all that is in the log.

use std::{collections::BTreeMap, time::Duration};

use super::{
    check,
    foreman::{Foreman, LOOK_GAP},
    store::{self, Rebuild, State},
};
use crate::{
    Durability, Error, Result,
    limits::{GENERATION_LOOK_GAP, REBUILD_SETTLE_TIME_MAX},
    log::{Offset, Part},
    projector::{generation, position},
};

/// Waits until all is applied that is in the log now, or was to be replayed.
pub(super) async fn catch_up(foreman: &Foreman, rebuild: &Rebuild) -> Result<Duration> {
    check_history(foreman, rebuild).await?;
    let (db, log, identity) = (foreman.plan.db(), &foreman.log, rebuild.identity());
    let has_reached = match rebuild.replay_ends()? {
        Some(ends) => {
            let positions = check::positions(db, &identity).await?;
            let is_short = |(part, position): &(Part, Offset)| ends.get(part).is_some_and(|end| position < end);
            let short: Vec<_> = positions.into_iter().filter(is_short).collect();
            short.is_empty() || log.behind(short).await?.iter().all(|behind| behind.events == 0)
        }
        None => {
            let parts = log.parts(foreman.plan.projector().event_types());
            let settled = check::settled(db, log, &identity, &parts);
            let settled = tokio::time::timeout(REBUILD_SETTLE_TIME_MAX, settled);
            tokio::select! {
                settled = settled => settled.map_or(Ok(false), |settled| settled.map(|()| true))?,
                changed = changed(foreman, rebuild) => changed.map(|()| false)?,
            }
        }
    };
    if !has_reached {
        return Ok(LOOK_GAP);
    }
    let tx = db.write(Durability::Rebuildable).await?;
    foreman.commit(tx, rebuild, State::Checking, Vec::new()).await?;
    Ok(Duration::ZERO)
}

/// Returns when somebody has held the rebuild up, given it up, or leads it instead: nobody then waits for it.
async fn changed(foreman: &Foreman, rebuild: &Rebuild) -> Result<()> {
    let is_as_it_was = |now: &Rebuild| {
        let of = |rebuild: &Rebuild| (rebuild.started_at, rebuild.state, rebuild.foreman.clone());
        now.needs_foreman() && of(now) == of(rebuild)
    };
    loop {
        tokio::time::sleep(GENERATION_LOOK_GAP).await;
        let look = store::look(foreman.plan.db(), &rebuild.projector).await?;
        if !look.and_then(|look| look.rebuild).as_ref().is_some_and(is_as_it_was) {
            return Ok(());
        }
        check_history(foreman, rebuild).await?;
    }
}

/// Fails when events are gone from the log that are still to be applied: they never will be.
async fn check_history(foreman: &Foreman, rebuild: &Rebuild) -> Result<()> {
    let (db, projector) = (foreman.plan.db(), &rebuild.projector);
    let parts = foreman.log.parts(foreman.plan.projector().event_types());
    // Looked at first: positions that are read later are further on, and miss no more than is missing.
    let earliest = foreman.log.earliest(&parts).await?;
    // Behind the last event that anybody applied there may be ends of transactions, which nobody misses.
    let wanted: BTreeMap<Part, Offset> = match rebuild.replay_ends()? {
        Some(ends) => ends,
        None => {
            let mut tx = db.glance().await?;
            let live = generation::live(&mut tx.conn(), projector).await?;
            position::of(&mut tx.conn(), &live.identity(projector)).await?.into_iter().collect()
        }
    };
    for (part, at) in check::positions(db, &rebuild.identity()).await? {
        let (needed, earliest) = (at.0 + 1, earliest.get(&part).map_or(0, |earliest| earliest.0));
        if earliest > needed && wanted.get(&part).is_some_and(|wanted| at < *wanted) {
            return Err(Error::HistoryMissing { projector: projector.clone(), needed, earliest });
        }
    }
    Ok(())
}
