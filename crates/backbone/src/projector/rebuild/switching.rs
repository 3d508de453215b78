//! Giving readers another generation, in one transaction, and never an older state than they have seen.

use std::time::Duration;

use super::{
    check,
    foreman::Foreman,
    store::{Rebuild, State},
};
use crate::{
    Durability, Error, Result, Tx,
    clock::Stopwatch,
    db::Engine,
    limits::REBUILD_SWITCH_TIME_MAX,
    log::{Offset, Part},
    parking,
    projector::{Generation, generation, position},
};

/// How often to look whether the new generation is as far as the old one.
const LOOK_GAP: Duration = Duration::from_millis(10);

/// Tries to give readers the new generation; answers how long to wait before the next step.
pub(super) async fn switch(foreman: &Foreman, rebuild: &Rebuild, report: String) -> Result<Duration> {
    let stopwatch = Stopwatch::start();
    while stopwatch.seconds() < REBUILD_SWITCH_TIME_MAX.as_secs_f64() {
        let mut tx = foreman.plan.db().write(Durability::Full).await?;
        let live = generation::live(&mut tx.conn(), &rebuild.projector).await?;
        if is_as_far(foreman, rebuild, live, &mut tx).await? {
            // Since the check it has applied more, and may have parked what failed.
            let parked = parking::count(tx.conn(), &rebuild.identity()).await?;
            if parked.tried() + parked.dead > 0 && !rebuild.is_forced {
                tx.rollback().await?;
                return Ok(LOOK_GAP);
            }
            let sql = "UPDATE projector_generation SET live = ? WHERE projector = ? AND live = ?";
            let args = vec![rebuild.generation.0.into(), rebuild.projector.as_str().into(), live.0.into()];
            if tx.conn().execute("switching generations", sql, args).await? != 1 {
                return Err(Error::PositionMoved { projector: rebuild.projector.clone() });
            }
            fail::fail_point!("rebuild-before-switch", |_| std::process::abort());
            let columns = vec![("removes", live.0.into()), ("report", report.into())];
            foreman.commit(tx, rebuild, State::Removing, columns).await?;
            fail::fail_point!("rebuild-after-switch", |_| std::process::abort());
            return Ok(Duration::ZERO);
        }
        tx.rollback().await?;
        tokio::time::sleep(LOOK_GAP).await;
    }
    // It fell behind; the step after the next check tries again.
    Ok(LOOK_GAP)
}

/// Whether the new generation has dealt with all that the old one has, and the old one gets no further before
/// the transaction ends: where one writer at a time works, that is so; elsewhere its positions are kept, and the
/// new one is given some time to reach them.
async fn is_as_far(foreman: &Foreman, rebuild: &Rebuild, live: Generation, tx: &mut Tx) -> Result<bool> {
    let (old, new) = (live.identity(&rebuild.projector), rebuild.identity());
    let behind = |old: &[(Part, Offset)], new: &[(Part, Offset)]| {
        let reached = |(part, at): &(Part, Offset)| new.iter().any(|(other, new)| other == part && new >= at);
        !old.iter().all(reached)
    };
    if tx.conn().engine() == Engine::Sqlite {
        let (old, new) = (position::of(&mut tx.conn(), &old).await?, position::reached(&mut tx.conn(), &new).await?);
        return Ok(!behind(&old, &new));
    }
    let old = position::of_to_write(&mut tx.conn(), &old).await?;
    let stopwatch = Stopwatch::start();
    while behind(&old, &check::positions(foreman.plan.db(), &new).await?) {
        if stopwatch.seconds() > KEEP_TIME_MAX.as_secs_f64() {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_GAP).await;
    }
    Ok(true)
}

/// How long the old generation is held up at most.
const KEEP_TIME_MAX: Duration = Duration::from_secs(1);
