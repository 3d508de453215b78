//! Whether the outbox lacks an event, where it is the log itself: its numbers have no gaps, since one writer commits
//! at a time and a number that is rolled back is given again.

use tidings_event::Timestamp;

use super::{Compared, Difference};
use crate::{Db, Result, limits::RECONCILE_PAGE_ROWS, log, outbox};

/// Counts the events of each range of numbers since `from`, and looks for what is missing where some are.
pub(super) async fn check(db: &Db, from: Timestamp) -> Result<Compared> {
    let mut compared = Compared::of("log");
    compared.note("the outbox is the log");
    let first = outbox::first_since(db, from).await?;
    let head = {
        let mut tx = db.read().await?;
        log::extent(&mut tx.conn()).await?.head.0
    };
    let mut start = first;
    while start <= head {
        let end = (start + RECONCILE_PAGE_ROWS - 1).min(head);
        let (count, earliest) = {
            let mut tx = db.read().await?;
            let sql = "SELECT COUNT(*) FROM outbox WHERE seq BETWEEN ? AND ?";
            let row = tx.conn().fetch_optional("counting events", sql, vec![start.into(), end.into()]).await?;
            (row.map_or(Ok(0), |row| row.int(0))?, log::extent(&mut tx.conn()).await?.earliest.0)
        };
        compared.shards += 1;
        compared.rows += count.unsigned_abs();
        // What retention has removed meanwhile nobody misses.
        let wanted = (end + 1 - start.max(earliest)).max(0);
        if count < wanted {
            compared.shards_differing += 1;
            look(db, start.max(earliest), end, &mut compared).await?;
        }
        start = end + 1;
    }
    Ok(compared)
}

async fn look(db: &Db, start: i64, end: i64, compared: &mut Compared) -> Result<()> {
    let rows = {
        let mut tx = db.read().await?;
        let sql = "SELECT seq FROM outbox WHERE seq BETWEEN ? AND ? ORDER BY seq";
        tx.conn().fetch("looking for missing events", sql, vec![start.into(), end.into()]).await?
    };
    let mut next = start;
    let seqs = rows.iter().map(|row| row.int(0)).chain([Ok(end + 1)]);
    for seq in seqs {
        let seq = seq?;
        for missing in next..seq {
            compared.push("event missing", || Difference {
                kind: "event missing".into(),
                subject: format!("offset {missing}"),
                expected: "an event: later ones are there".to_owned(),
                found: "none".to_owned(),
            });
        }
        next = seq + 1;
    }
    Ok(())
}
