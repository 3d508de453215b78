//! Committed events in order, to be read again from any offset the log still holds.
//!
//! Embedded, the log is the outbox itself: nothing is copied. Kafka takes its place beside it.

use tidings_event::{Event, EventId, Timestamp};
use tokio::sync::watch;

use crate::{Db, Result, outbox};

/// Position of an event in the log; the first event has offset 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

/// An event and where it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Where the event stands.
    pub offset: Offset,
    /// What happened.
    pub event: Event,
}

/// The first and last offset a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first event still held; one past `head` when none is held.
    pub earliest: Offset,
    /// Offset of the last event ever appended; 0 before the first.
    pub head: Offset,
}

/// The log, chosen by configuration. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Log {
    /// The outbox of an embedded database.
    Embedded(Db),
}

impl Log {
    /// Reads events after `after`, in order, at most `limit`.
    pub async fn read(&self, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
        let Self::Embedded(db) = self;
        let mut tx = db.read().await?;
        outbox::read_after(&mut tx.conn(), after, limit).await
    }

    /// Reads what a projector is to apply next.
    pub(crate) async fn read_batch(&self, after: Offset, limit: usize) -> Result<outbox::Batch> {
        let Self::Embedded(db) = self;
        let mut tx = db.glance().await?;
        outbox::read_batch(&mut tx.conn(), after, limit).await
    }

    /// The last `limit` events, in order.
    pub async fn tail(&self, limit: usize) -> Result<Vec<Recorded>> {
        let head = self.extent().await?.head;
        let before = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(Offset(head.0.saturating_sub(before).max(0)), limit).await
    }

    /// The event with this id, if the log still holds it.
    pub async fn find(&self, id: EventId) -> Result<Option<Recorded>> {
        let Self::Embedded(db) = self;
        let mut tx = db.read().await?;
        outbox::find(&mut tx.conn(), id).await
    }

    /// What the log holds now.
    pub async fn extent(&self) -> Result<Extent> {
        let Self::Embedded(db) = self;
        let mut tx = db.read().await?;
        extent(&mut tx.conn()).await
    }

    /// When the first event after `after` occurred, if there is one: the age of the oldest event
    /// not yet read, true also while its projector is dead.
    pub async fn oldest_after(&self, after: Offset) -> Result<Option<Timestamp>> {
        let Self::Embedded(db) = self;
        let mut tx = db.read().await?;
        let sql = "SELECT occurred_at FROM outbox WHERE seq > ? ORDER BY seq LIMIT 1";
        let row = tx.conn().fetch_optional("reading the oldest event", sql, vec![after.0.into()]).await?;
        row.map(|row| row.int(0).map(Timestamp)).transpose()
    }

    /// A receiver that changes when there may be more to read.
    pub fn appended(&self) -> watch::Receiver<u64> {
        let Self::Embedded(db) = self;
        db.commits()
    }
}

/// Reads events after `after`, in order, at most `limit`, as seen by the snapshot behind `conn`.
pub async fn read_after(conn: &mut crate::Conn<'_>, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
    outbox::read_after(conn, after, limit).await
}

/// The extent of the embedded log, as seen by the snapshot behind `conn`.
pub async fn extent(conn: &mut crate::Conn<'_>) -> Result<Extent> {
    let sql = "SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0), \
               (SELECT MIN(seq) FROM outbox)";
    let rows = conn.fetch("reading the extent of the log", sql, Vec::new()).await?;
    let Some(row) = rows.first() else {
        return Ok(Extent { earliest: Offset(1), head: Offset(0) });
    };
    let head = row.int(0)?;
    let earliest = row.int_or_null(1)?.unwrap_or(head + 1);
    Ok(Extent { earliest: Offset(earliest), head: Offset(head) })
}
