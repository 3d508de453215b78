//! How far polling relays are with Tidings' own outbox, told by what is still pending.

use tidings_event::Timestamp;

use super::pending::{MARK_NOTED, MARK_TRIGGER, SHARDS};
use crate::{Conn, Result};

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
        return pending(conn, i64::MAX).await.map(Some);
    }
    // Nobody has noted the rows above, so none of them is known to be in the log. In a table that was made
    // anew that is all of them.
    let head = number(conn, "SELECT MAX(seq) FROM outbox", &[]).await?.unwrap_or(0);
    let noted = if head < noted { 0 } else { noted };
    let mut left = pending(conn, noted).await?;
    left.rows += number(conn, "SELECT COUNT(*) FROM outbox WHERE seq > ?", &[noted]).await?.unwrap_or(0);
    if left.first.is_none() {
        let next = number(conn, "SELECT MIN(seq) FROM outbox WHERE seq > ?", &[noted]).await?;
        left.first = first(conn, next).await?;
    }
    Ok(Some(left))
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
