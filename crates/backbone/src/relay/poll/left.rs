//! How far polling relays are with Tidings' own outbox, told by what is still pending.

use std::collections::BTreeSet;

use tidings_event::Timestamp;

use super::pending::{MARK_NOTED, MARK_TRIGGER, SHARDS};
use crate::{
    Conn, Result,
    db::Value,
    limits::{RECONCILE_DIFFERENCES_MAX, RECONCILE_EXAMPLES_MAX},
    log::Offset,
    outbox::{self, Old},
};

/// What is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// How many rows.
    pub(crate) rows: i64,
    /// The lowest of their numbers, and when it occurred.
    pub(crate) first: Option<(i64, Timestamp)>,
}

const DOING: &str = "looking for pending events";

/// What is pending in the outbox of this database; nothing as long as no polling relay has run.
///
/// # Errors
/// When the database refuses.
pub(crate) async fn left(conn: &mut Conn<'_>) -> Result<Option<Left>> {
    let Some(noted) = noted(conn).await? else { return Ok(None) };
    let mut left = pending(conn, noted).await?;
    if noted < i64::MAX {
        left.rows += number(conn, "SELECT COUNT(*) FROM outbox WHERE seq > ?", &[noted]).await?.unwrap_or(0);
        if left.first.is_none() {
            let next = number(conn, "SELECT MIN(seq) FROM outbox WHERE seq > ?", &[noted]).await?;
            left.first = first(conn, next).await?;
        }
    }
    Ok(Some(left))
}

/// Events that are pending and occurred before `late`, as far as counting them is cheap.
///
/// # Errors
/// When the database refuses.
pub(crate) async fn left_before(conn: &mut Conn<'_>, late: Timestamp) -> Result<Old> {
    let Some(noted) = noted(conn).await? else { return outbox::old_after(conn, Offset(0), late).await };
    let from = "FROM (SELECT seq FROM outbox_pending WHERE shard < ? AND seq <= ? LIMIT ?) AS pending \
                STRAIGHT_JOIN outbox ON outbox.seq = pending.seq WHERE outbox.occurred_at < ?";
    let rows_max = i64::try_from(RECONCILE_DIFFERENCES_MAX).unwrap_or(i64::MAX);
    let args: Vec<Value> = vec![i64::from(SHARDS).into(), noted.into(), rows_max.into(), late.0.into()];
    let row = conn.fetch_optional(DOING, format!("SELECT COUNT(*) {from}"), args.clone()).await?;
    let count = row.map_or(Ok(0), |row| row.int(0))?;
    let examples_max = i64::try_from(RECONCILE_EXAMPLES_MAX).unwrap_or(i64::MAX);
    let sql = format!("SELECT outbox.event_id, outbox.occurred_at {from} ORDER BY outbox.seq LIMIT ?");
    let mut old =
        Old { count, first: outbox::old(&conn.fetch(DOING, sql, [args, vec![examples_max.into()]].concat()).await?)? };
    if noted < i64::MAX {
        let more = outbox::old_after(conn, Offset(noted), late).await?;
        old.count += more.count;
        old.first.extend(more.first);
        old.first.truncate(RECONCILE_EXAMPLES_MAX);
    }
    Ok(old)
}

/// The rows up to `until` that are pending, and up to which number all others are in the log: nothing as long as no
/// polling relay has run. Of more rows than can be kept, those are told of that come first.
///
/// # Errors
/// When the database refuses.
pub(crate) async fn pending_up_to(conn: &mut Conn<'_>, until: Offset) -> Result<Option<(Offset, BTreeSet<i64>)>> {
    let Some(noted) = noted(conn).await? else { return Ok(None) };
    let mut up_to = noted.min(until.0);
    let rows_max = i64::try_from(RECONCILE_DIFFERENCES_MAX).unwrap_or(i64::MAX);
    let sql = "SELECT CAST(seq AS SIGNED) FROM outbox_pending WHERE shard < ? AND seq <= ? ORDER BY seq LIMIT ?";
    let args = vec![i64::from(SHARDS).into(), up_to.into(), rows_max.into()];
    let rows = conn.fetch(DOING, sql, args).await?;
    let pending = rows.iter().map(|row| row.int(0)).collect::<Result<BTreeSet<_>>>()?;
    if pending.len() >= RECONCILE_DIFFERENCES_MAX {
        up_to = pending.last().copied().unwrap_or(up_to);
    }
    Ok(Some((Offset(up_to), pending)))
}

/// The number up to which each row that is not in the log is noted as pending; of all, where nobody has dropped or
/// made the trigger since.
async fn noted(conn: &mut Conn<'_>) -> Result<Option<i64>> {
    let table = "SELECT COUNT(*) FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_pending'";
    if number(conn, table, &[]).await?.unwrap_or(0) == 0 {
        return Ok(None);
    }
    let mark = "SELECT CAST(MAX(seq) AS SIGNED) FROM outbox_pending WHERE shard = ?";
    let Some(noted) = number(conn, mark, &[i64::from(MARK_NOTED)]).await? else { return Ok(None) };
    let trigger = "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() \
                   AND TRIGGER_NAME = 'outbox_pending_insert' AND EVENT_OBJECT_TABLE = 'outbox' \
                   AND CAST(COALESCE(UNIX_TIMESTAMP(CREATED), 0) * 100 AS UNSIGNED) = \
                   (SELECT MAX(seq) FROM outbox_pending WHERE shard = ?)";
    if number(conn, trigger, &[i64::from(MARK_TRIGGER)]).await?.unwrap_or(0) > 0 {
        return Ok(Some(i64::MAX));
    }
    // Nobody has noted the rows above, so none of them is known to be in the log. In a table that was made
    // anew that is all of them.
    let head = number(conn, "SELECT MAX(seq) FROM outbox", &[]).await?.unwrap_or(0);
    Ok(Some(if head < noted { 0 } else { noted }))
}

/// What is noted up to a number.
async fn pending(conn: &mut Conn<'_>, up_to: i64) -> Result<Left> {
    let shards = i64::from(SHARDS);
    let count = "SELECT COUNT(*) FROM outbox_pending WHERE shard < ? AND seq <= ?";
    let rows = number(conn, count, &[shards, up_to]).await?.unwrap_or(0);
    // The lowest of each shard is the first of its part of the key, so this reads a row for each shard.
    let lowest = "SELECT CAST(MIN(seq) AS SIGNED) FROM outbox_pending WHERE shard < ? GROUP BY shard";
    let mut next: Option<i64> = None;
    for row in conn.fetch(DOING, lowest, vec![shards.into()]).await? {
        let seq = row.int(0)?;
        next = Some(next.map_or(seq, |known| known.min(seq)));
    }
    let next = next.filter(|next| *next <= up_to);
    Ok(Left { rows, first: first(conn, next).await? })
}

async fn first(conn: &mut Conn<'_>, seq: Option<i64>) -> Result<Option<(i64, Timestamp)>> {
    let Some(seq) = seq else { return Ok(None) };
    let at = number(conn, "SELECT occurred_at FROM outbox WHERE seq = ?", &[seq]).await?;
    Ok(Some((seq, Timestamp(at.unwrap_or(0)))))
}

async fn number(conn: &mut Conn<'_>, sql: &'static str, arguments: &[i64]) -> Result<Option<i64>> {
    let arguments = arguments.iter().map(|number| (*number).into()).collect();
    let row = conn.fetch_optional(DOING, sql, arguments).await?;
    row.map_or(Ok(None), |row| row.int_or_null(0))
}
