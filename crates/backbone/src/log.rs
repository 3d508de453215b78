//! Committed events in order, to be read again from any offset the log still holds.
//!
//! Embedded, the log is the outbox itself: nothing is copied. Distributed, the relay appends what is
//! committed to Kafka, and projectors read it there; who only looks at events (a person, an admin
//! route) reads the outbox all the same, since it has what was committed whether or not it was relayed.

mod kafka;
mod onward;
mod part;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tidings_event::{Event, EventId, Timestamp};
use tokio::sync::watch;

pub(crate) use kafka::Noted;
pub use kafka::{KafkaLog, Relayed};
pub use part::{InvalidPart, Part};

pub(crate) use crate::kafka::find::{Found, Since, Wanted};
#[cfg(doc)]
use crate::limits::{OPEN_INSERT_LOOK_GAP, OPEN_INSERT_LOOKS_MAX};
use crate::{Db, Result, db::Engine, limits::STEADY_HEAD_EVENTS, outbox};

/// Position of an event in a part of the log. In the outbox the first event has offset 1, in a
/// partition of Kafka 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Offset(pub i64);

/// An event and where it stands in its part of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Where the event stands.
    pub offset: Offset,
    /// What happened.
    pub event: Event,
}

/// The first and last offset the outbox holds.
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
    /// Topics of Kafka, filled by a relay.
    Kafka(KafkaLog),
}

/// How far a reader of one part is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The part.
    pub part: Part,
    /// Events after the reader's position. On Kafka a few more may be told, where transactions ended
    /// between them; none is told when there is none.
    pub events: i64,
    /// When the first of them occurred.
    pub oldest: Option<Timestamp>,
}

impl Log {
    /// The database that the outbox is in.
    fn db(&self) -> &Db {
        match self {
            Self::Embedded(db) => db,
            Self::Kafka(log) => log.db(),
        }
    }

    /// Reads events of the outbox after `after`, in order, at most `limit`, as they show now. With
    /// several writers, as on MySQL, an event may be committed after another with a greater offset:
    /// who reads on from the last one and must not miss any takes [`Log::read_on`].
    pub async fn read(&self, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
        let mut tx = self.db().read().await?;
        outbox::read_after(&mut tx.conn(), after, limit).await
    }

    /// Reads events of the outbox after `after`, in order, at most `limit`, for somebody who goes on
    /// after the last of them: it ends in front of a number whose transaction may still commit, having
    /// waited for it for some [`OPEN_INSERT_LOOKS_MAX`] × [`OPEN_INSERT_LOOK_GAP`].
    pub async fn read_on(&self, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
        onward::read(self.db(), after, limit).await
    }

    /// Where to read on from to see what is committed from now on, and to miss nothing: the last event
    /// before which none may still come.
    pub async fn steady_head(&self) -> Result<Offset> {
        let head = self.extent().await?.head;
        if self.db().engine() == Engine::Sqlite {
            return Ok(head);
        }
        let before = i64::try_from(STEADY_HEAD_EVENTS).unwrap_or(i64::MAX);
        let after = Offset(head.0.saturating_sub(before).max(0));
        Ok(self.read_on(after, STEADY_HEAD_EVENTS).await?.last().map_or(after, |last| last.offset))
    }

    /// The last `limit` events of the outbox, in order.
    pub async fn tail(&self, limit: usize) -> Result<Vec<Recorded>> {
        let head = self.extent().await?.head;
        let before = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(Offset(head.0.saturating_sub(before).max(0)), limit).await
    }

    /// The event with this id, if the outbox still holds it.
    pub async fn find(&self, id: EventId) -> Result<Option<Recorded>> {
        let mut tx = self.db().read().await?;
        outbox::find(&mut tx.conn(), id).await
    }

    /// What the outbox holds now.
    pub async fn extent(&self) -> Result<Extent> {
        let mut tx = self.db().read().await?;
        extent(&mut tx.conn()).await
    }

    /// The parts in which events of these types are.
    pub fn parts(&self, event_types: &[&str]) -> Vec<Part> {
        match self {
            Self::Embedded(_) => vec![Part::outbox()],
            Self::Kafka(log) => log.parts(event_types),
        }
    }

    /// The position of a reader that has read nothing yet.
    pub fn before_first(&self) -> Offset {
        match self {
            Self::Embedded(_) => Offset(0),
            Self::Kafka(_) => Offset(-1),
        }
    }

    /// How far readers at these positions are behind, measured at the log: true also while they are dead.
    pub async fn behind(&self, positions: Vec<(Part, Offset)>) -> Result<Vec<Behind>> {
        match self {
            Self::Embedded(db) => {
                let mut tx = db.read().await?;
                let head = extent(&mut tx.conn()).await?.head;
                let mut behind = Vec::with_capacity(positions.len());
                for (part, after) in positions {
                    let sql = "SELECT occurred_at FROM outbox WHERE seq > ? ORDER BY seq LIMIT 1";
                    let row = tx.conn().fetch_optional("reading the oldest event", sql, vec![after.0.into()]).await?;
                    let oldest = row.map(|row| row.int(0).map(Timestamp)).transpose()?;
                    behind.push(Behind { part, events: (head.0 - after.0).max(0), oldest });
                }
                Ok(behind)
            }
            Self::Kafka(log) => log.behind(positions).await,
        }
    }

    /// When the oldest event occurred that was committed and not in the log when that was last measured.
    pub(crate) fn unrelayed_since(&self) -> Option<Timestamp> {
        match self {
            Self::Embedded(_) => None,
            Self::Kafka(log) => log.unrelayed_since(),
        }
    }

    /// Returns when all that was committed before the call is in the log.
    pub(crate) async fn relayed(&self) -> Result<()> {
        match self {
            // What is committed is in it.
            Self::Embedded(_) => Ok(()),
            Self::Kafka(log) => log.wait_relayed().await,
        }
    }

    /// The last offset of each part now, once whoever reads can see all that is before it.
    pub(crate) async fn ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        match self {
            Self::Embedded(_) => {
                let head = self.extent().await?.head;
                Ok(parts.into_iter().map(|part| (part, head)).collect())
            }
            Self::Kafka(log) => log.ends(parts).await,
        }
    }

    /// The first offset that each part still holds.
    pub(crate) async fn earliest(&self, parts: &[Part]) -> Result<BTreeMap<Part, Offset>> {
        match self {
            Self::Embedded(_) => {
                let earliest = self.extent().await?.earliest;
                Ok(parts.iter().map(|part| (part.clone(), earliest)).collect())
            }
            Self::Kafka(log) => log.earliest(parts.to_vec()).await,
        }
    }

    /// The last offset before the first event that was committed at `at` or later, in each part. On Kafka the
    /// moment is the one at which it was appended.
    pub(crate) async fn before(&self, parts: &[Part], at: Timestamp) -> Result<BTreeMap<Part, Offset>> {
        match self {
            Self::Embedded(db) => {
                // There is no index on the time: from some minutes before it on events are read.
                let from = outbox::first_since(db, at).await?;
                let mut tx = db.read().await?;
                let sql = "SELECT seq FROM outbox WHERE seq >= ? AND occurred_at >= ? ORDER BY seq LIMIT 1";
                let args = vec![from.into(), at.0.into()];
                let row = tx.conn().fetch_optional("looking for a moment", sql, args).await?;
                let first = row.map(|row| row.int(0)).transpose()?;
                let head = extent(&mut tx.conn()).await?.head;
                let before = first.map_or(head, |first| Offset(first - 1));
                Ok(parts.iter().map(|part| (part.clone(), before)).collect())
            }
            Self::Kafka(log) => log.before(parts.to_vec(), at).await,
        }
    }

    /// A receiver that changes when there may be more in the outbox; commits of other processes show
    /// only where [`Db::watch_other_processes`] runs.
    pub fn appended(&self) -> watch::Receiver<u64> {
        self.db().commits()
    }
}

/// Reads events after `after`, in order, at most `limit`, as seen by the snapshot behind `conn`.
pub async fn read_after(conn: &mut crate::Conn<'_>, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
    outbox::read_after(conn, after, limit).await
}

/// The extent of the outbox, as seen by the snapshot behind `conn`.
pub async fn extent(conn: &mut crate::Conn<'_>) -> Result<Extent> {
    let head = match conn.engine() {
        Engine::Sqlite => "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'",
        // How far a server has counted is not told in a snapshot; nobody reads on from here there.
        Engine::Mysql | Engine::Mariadb => "SELECT MAX(seq) FROM outbox",
    };
    let sql = format!("SELECT COALESCE(({head}), 0), (SELECT MIN(seq) FROM outbox)");
    let rows = conn.fetch("reading the extent of the outbox", sql, Vec::new()).await?;
    let Some(row) = rows.first() else {
        return Ok(Extent { earliest: Offset(1), head: Offset(0) });
    };
    let head = row.int(0)?;
    let earliest = row.int_or_null(1)?.unwrap_or(head + 1);
    Ok(Extent { earliest: Offset(earliest), head: Offset(head) })
}
