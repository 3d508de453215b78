//! What a projector says of how it can be rebuilt.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;

use crate::{
    Conn, Db, Error, Result,
    limits::OTHER_PROCESS_POLL_GAP,
    log::{Log, Offset, Part},
    projector::{Generation, position},
};

/// A projection whose tables hold several generations side by side: the first column of their keys is the
/// number of the generation.
#[async_trait]
pub trait Generations: Send + Sync {
    /// Removes at most so many rows of a generation that nobody reads; answers how many went: fewer when none
    /// is left. It is called again after a crash.
    async fn remove(&self, generation: Generation, limit: usize, conn: Conn<'_>) -> Result<u64>;

    /// Whether the projection can be made from facts, by [`Generations::seed`]. Needed once the log no longer
    /// reaches back to its beginning.
    fn has_facts(&self) -> bool {
        false
    }

    /// Rows of facts there are, roughly: to tell how long it takes.
    async fn facts(&self, conn: Conn<'_>) -> Result<Option<u64>> {
        let _ = conn;
        Ok(None)
    }

    /// Copies some `limit` facts that come after `after`, as they are now, into a generation that nobody reads
    /// and nobody else writes; in one transaction with the cursor that it answers. Events that are in the facts
    /// already come once more afterwards, and must have no effect then.
    async fn seed(&self, generation: Generation, after: Option<&str>, limit: usize, conn: Conn<'_>) -> Result<Seeded> {
        let _ = (generation, after, limit, conn);
        Err(Error::Invariant { message: "this projection is not made from facts".to_owned() })
    }

    /// Whether [`Generations::check`] finds what is missing: what begins in the middle of the log would be found wrong
    /// at the end, and is refused at the start.
    fn is_checked_against_facts(&self) -> bool {
        false
    }

    /// Compares a generation that has caught up with facts. Events are applied meanwhile.
    async fn check(&self, check: &Check<'_>) -> Result<Checked> {
        let _ = check;
        Ok(Checked::default())
    }
}

/// What a call of [`Generations::seed`] has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Facts that were copied.
    pub rows: u64,
    /// Where the next call begins, at most 1,024 bytes; `None` when all is copied.
    pub next: Option<String>,
}

/// What [`Generations::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Differences from facts that are not only lag.
    pub differences: u64,
    /// What could not be told, since it changed at each look.
    pub in_flight: u64,
    /// What was found, in some lines for an operator.
    pub report: String,
}

/// What is to be compared with facts.
#[derive(Debug)]
pub struct Check<'a> {
    /// The database.
    pub db: &'a Db,
    /// The log.
    pub log: &'a Log,
    /// The generation.
    pub generation: Generation,
    /// The name under which its positions and its parking lot are stored.
    pub identity: &'a str,
    /// The types of events that its projector takes: those are in parts of the log that it must have dealt with.
    pub event_types: &'static [&'static str],
    /// How long [`Check::settle`] waits.
    pub patience: Duration,
}

impl Check<'_> {
    /// Waits until the generation has dealt with all that is committed now; false when that takes too long, as it
    /// does while the projector or the relay is down. Where it has no position yet, it has dealt with nothing.
    pub async fn settle(&self) -> Result<bool> {
        let settled = async {
            self.log.relayed().await?;
            settled(self.db, self.log, self.identity, &self.log.parts(self.event_types)).await
        };
        tokio::time::timeout(self.patience, settled).await.map_or(Ok(false), |settled| settled.map(|()| true))
    }

    /// Up to where the generation needs nothing of the log any more, in each part where its events are.
    pub(crate) async fn reached(&self) -> Result<BTreeMap<Part, Offset>> {
        reached(self.db, self.log, self.identity, &self.log.parts(self.event_types)).await
    }
}

/// Waits until an identity has dealt with all that is in these parts of the log now.
pub(super) async fn settled(db: &Db, log: &Log, identity: &str, parts: &[Part]) -> Result<()> {
    let ends = log.ends(parts.iter().cloned().collect()).await?;
    loop {
        let is_short = |(part, position): &(Part, Offset)| ends.get(part).is_some_and(|end| position < end);
        let short: Vec<(Part, Offset)> =
            reached(db, log, identity, parts).await?.into_iter().filter(is_short).collect();
        // Behind the last record of a topic there may be ends of transactions, which nobody reads.
        if short.is_empty() || log.behind(short).await?.iter().all(|behind| behind.events == 0) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_GAP.max(OTHER_PROCESS_POLL_GAP)).await;
    }
}

const LOOK_GAP: Duration = Duration::from_millis(50);

/// The same in these parts: where it has yet to begin, it stands before the first event.
async fn reached(db: &Db, log: &Log, identity: &str, parts: &[Part]) -> Result<BTreeMap<Part, Offset>> {
    let stored: BTreeMap<Part, Offset> = positions(db, identity).await?.into_iter().collect();
    let position = |part: &Part| stored.get(part).copied().unwrap_or(log.before_first());
    Ok(parts.iter().map(|part| (part.clone(), position(part))).collect())
}

/// Up to where an identity needs nothing of the log any more.
pub(super) async fn positions(db: &Db, identity: &str) -> Result<Vec<(Part, Offset)>> {
    let mut tx = db.glance().await?;
    position::reached(&mut tx.conn(), identity).await
}
