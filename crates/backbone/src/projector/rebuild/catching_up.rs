//! Waiting until what is built has applied all that is in the log.

use std::{collections::BTreeMap, time::Duration};

use super::{
    check,
    foreman::{Foreman, LOOK_GAP},
    store::{self, Rebuild, State},
};
use crate::{
    Durability, Result,
    limits::{GENERATION_LOOK_GAP, REBUILD_SETTLE_TIME_MAX},
    log::{Offset, Part},
};

/// Waits until all is applied that is in the log now, or was to be replayed.
pub(super) async fn catch_up(foreman: &Foreman, rebuild: &Rebuild) -> Result<Duration> {
    let (db, log, identity) = (foreman.plan.db(), &foreman.log, rebuild.identity());
    let has_reached = match rebuild.replay_ends()? {
        Some(ends) => {
            let positions = check::positions(db, &identity).await?;
            let is_short = |(part, position): &(Part, Offset)| ends.get(part).is_some_and(|end| position < end);
            let short: Vec<_> = positions.into_iter().filter(is_short).collect();
            short.is_empty() || log.behind(short).await?.iter().all(|behind| behind.events == 0)
        }
        None => {
            let settled = tokio::time::timeout(REBUILD_SETTLE_TIME_MAX, check::settled(db, log, &identity));
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
    }
}
