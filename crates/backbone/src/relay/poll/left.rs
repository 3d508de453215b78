//! How far polling relays are with Tidings' own outbox, told by what is still pending.

use tidings_event::Timestamp;

use super::pending::SHARDS;
use crate::{Conn, Result};

/// What is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// How many rows.
    pub(crate) rows: i64,
    /// The lowest of their numbers, and when it occurred.
    pub(crate) first: Option<(i64, Timestamp)>,
}

/// What is pending in the outbox of this database; nothing as long as no polling relay has run.
///
/// # Errors
/// When the database refuses.
pub(crate) async fn left(conn: &mut Conn<'_>) -> Result<Option<Left>> {
    const DOING: &str = "looking for pending events";
    let table = "SELECT COUNT(*) FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'outbox_pending'";
    let has_table = conn.fetch_optional(DOING, table, Vec::new()).await?.map_or(Ok(0), |row| row.int(0))? > 0;
    if !has_table {
        return Ok(None);
    }
    let shards = i64::from(SHARDS);
    let marked = "SELECT COUNT(*) FROM outbox_pending WHERE shard >= ?";
    let is_complete =
        conn.fetch_optional(DOING, marked, vec![shards.into()]).await?.map_or(Ok(0), |row| row.int(0))? > 0;
    if !is_complete {
        return Ok(None);
    }
    let count = "SELECT COUNT(*) FROM outbox_pending WHERE shard < ?";
    let rows = conn.fetch_optional(DOING, count, vec![shards.into()]).await?.map_or(Ok(0), |row| row.int(0))?;
    // The lowest of each shard is the first of its part of the key, so this reads a row for each shard.
    let lowest = "SELECT CAST(MIN(seq) AS SIGNED) FROM outbox_pending WHERE shard < ? GROUP BY shard";
    let mut first: Option<i64> = None;
    for row in conn.fetch(DOING, lowest, vec![shards.into()]).await? {
        let seq = row.int(0)?;
        first = Some(first.map_or(seq, |known| known.min(seq)));
    }
    let Some(first) = first else { return Ok(Some(Left { rows, first: None })) };
    let at = "SELECT occurred_at FROM outbox WHERE seq = ?";
    let at = conn.fetch_optional(DOING, at, vec![first.into()]).await?.map_or(Ok(0), |row| row.int(0))?;
    Ok(Some(Left { rows, first: Some((first, Timestamp(at))) }))
}
