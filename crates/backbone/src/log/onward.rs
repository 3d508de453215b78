//! Reading on where several writers work.
//!
//! A row of the outbox has its number from its insert and shows with its commit, so a lower number may show
//! after a higher one: whoever goes on after the highest that he has seen would never see it. So nobody
//! goes past a number that is missing while the transaction which took it may still commit. That shows in
//! the row: an insert that is neither committed nor rolled back is locked.

use super::{Offset, Recorded};
use crate::{
    Db, Durability, Result,
    db::Engine,
    limits::{OPEN_INSERT_LOOK_GAP, OPEN_INSERT_LOOKS_MAX},
    outbox,
};

/// Numbers that are missing among those that show, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    from: i64,
    to: i64,
}

/// Reads events after `after`, in order, at most `limit`, and none beyond a number that may still come.
pub(super) async fn read(db: &Db, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
    // What no transaction held at the look before this one.
    let mut free: Vec<Gap> = Vec::new();
    let mut looks_left = OPEN_INSERT_LOOKS_MAX;
    loop {
        let mut events = {
            let mut tx = db.read().await?;
            outbox::read_after(&mut tx.conn(), after, limit).await?
        };
        let gaps = if db.engine() == Engine::Sqlite { Vec::new() } else { gaps(after, &events) };
        if gaps.is_empty() {
            return Ok(events);
        }
        let found = find_free(db, &gaps).await?;
        // Twice, since a number is taken a moment before its row is there to be locked; and since what
        // had just been committed at the first look shows at the second.
        let is_settled = |gap: &&Gap| {
            let holds = |free: &Gap| free.from <= gap.from && gap.to <= free.to;
            free.iter().any(holds) && found.contains(gap)
        };
        let Some(unsettled) = gaps.iter().find(|gap| !is_settled(gap)) else { return Ok(events) };
        looks_left -= 1;
        if looks_left == 0 {
            events.retain(|event| event.offset.0 < unsettled.from);
            return Ok(events);
        }
        free = found;
        tokio::time::sleep(OPEN_INSERT_LOOK_GAP).await;
    }
}

fn gaps(after: Offset, events: &[Recorded]) -> Vec<Gap> {
    let numbers = events.iter().map(|event| event.offset.0);
    let before = std::iter::once(after.0).chain(numbers.clone());
    let gap = |(before, number): (i64, i64)| (before + 1 < number).then(|| Gap { from: before + 1, to: number - 1 });
    before.zip(numbers).filter_map(gap).collect()
}

/// The gaps that no open transaction holds a row of.
async fn find_free(db: &Db, gaps: &[Gap]) -> Result<Vec<Gap>> {
    let mut free = Vec::with_capacity(gaps.len());
    // Each statement sees what is committed when it begins, and locks no gap that nobody wrote to.
    let mut tx = db.write(Durability::Rebuildable).await?;
    for gap in gaps {
        let sql = "SELECT seq FROM outbox WHERE seq BETWEEN ? AND ? FOR UPDATE NOWAIT";
        match tx.conn().fetch("looking for open inserts", sql, vec![gap.from.into(), gap.to.into()]).await {
            Ok(_) => free.push(*gap),
            Err(error) if error.is_locked() => {}
            Err(error) => return Err(error),
        }
    }
    tx.rollback().await?;
    Ok(free)
}
