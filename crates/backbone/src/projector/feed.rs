//! Where the events of one projector's task come from: the outbox, or a partition of Kafka.

mod lease;
mod outbox;
mod partition;

use std::time::Duration;

use tokio::sync::watch;

pub(super) use partition::{PartitionFeed, Queue};

use self::{lease::Lease, outbox::Reader};
use crate::{
    Conn, Db, Result,
    limits::PARKING_LOOK_GAP,
    log::{self, Offset, Part},
    outbox::Batch,
};

/// A source of events that is this task's own for the time being.
pub(super) enum Feed {
    /// The embedded log, read by whichever process holds the lease.
    Outbox(OutboxFeed),
    /// A partition that Kafka has assigned to this process.
    Partition(PartitionFeed),
}

/// The embedded log and the right to it.
#[derive(Debug)]
pub(super) struct OutboxFeed {
    part: Part,
    lease: Lease,
    reader: Reader,
    appended: watch::Receiver<u64>,
}

impl OutboxFeed {
    pub(super) fn new(db: &Db, projector: &str, batch_events_max: usize) -> Self {
        Self {
            part: Part::outbox(),
            lease: Lease::new(db, projector),
            reader: Reader::new(db.clone(), batch_events_max),
            appended: db.commits(),
        }
    }
}

impl Feed {
    pub(super) fn part(&self) -> &Part {
        match self {
            Self::Outbox(feed) => &feed.part,
            Self::Partition(feed) => feed.part(),
        }
    }

    /// Whether the offsets follow each other without a gap, so that a gap means that events are gone.
    pub(super) fn is_dense(&self) -> bool {
        matches!(self, Self::Outbox(_))
    }

    /// Before anything is looked at: whatever is committed from now on ends [`Feed::grown`].
    pub(super) fn begin_round(&mut self) {
        match self {
            Self::Outbox(feed) => feed.appended.mark_unchanged(),
            // The queue tells of itself.
            Self::Partition(_) => {}
        }
    }

    /// Pause before asking again for what another process holds.
    pub(super) const LEASE_GAP: Duration = Lease::RETRY_GAP;

    /// Whether this task may read; if not, another process does.
    pub(super) fn is_mine(&mut self) -> Result<bool> {
        match self {
            Self::Outbox(feed) => Ok(feed.lease.is_held() || feed.lease.try_take()?),
            Self::Partition(_) => Ok(true),
        }
    }

    /// The first offset that can still be read, as seen by the transaction behind `conn` where the
    /// log is in the same database.
    pub(super) async fn earliest(&mut self, conn: &mut Conn<'_>) -> Result<Offset> {
        match self {
            Self::Outbox(_) => Ok(log::extent(conn).await?.earliest),
            Self::Partition(feed) => feed.earliest().await,
        }
    }

    /// Makes [`Feed::read`] begin after `position`.
    pub(super) async fn seek(&mut self, position: Offset) -> Result<()> {
        match self {
            // It is told with each read.
            Self::Outbox(_) => Ok(()),
            Self::Partition(feed) => feed.seek(position).await,
        }
    }

    /// What comes after `after`, at most so many events; none when there is nothing yet.
    pub(super) async fn read(&mut self, after: Offset, events_max: usize) -> Result<Batch> {
        match self {
            Self::Outbox(feed) => feed.reader.read(after).await,
            Self::Partition(feed) => feed.read(after, events_max).await,
        }
    }

    /// Waits until there may be more than [`Feed::read`] found.
    pub(super) async fn grown(&mut self) {
        match self {
            // The sender lives in the database's handle, so the channel is open.
            Self::Outbox(feed) => drop(feed.appended.changed().await),
            Self::Partition(feed) => feed.grown().await,
        }
    }

    /// How long to be idle at most: where no commit wakes the task, an operator's redrive is looked for.
    pub(super) fn longest_idle(&self) -> Option<Duration> {
        match self {
            Self::Outbox(_) => None,
            Self::Partition(_) => Some(PARKING_LOOK_GAP),
        }
    }

    /// Tells the log how far the reader is: a hint for tools, never what it continues from.
    pub(super) fn hint(&mut self, position: Offset) {
        match self {
            Self::Outbox(_) => {}
            Self::Partition(feed) => feed.hint(position),
        }
    }
}
