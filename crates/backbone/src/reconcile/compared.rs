//! How a feature compares its projection with its facts, and repairs it.

use std::{borrow::Cow, collections::BTreeMap};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Conn, EventIds, Result,
    limits::{RECONCILE_DIFFERENCES_MAX, RECONCILE_EXAMPLES_MAX},
};

/// The live generation, which is to be compared with facts as one that was built is before it is switched to.
pub use crate::projector::rebuild::Check as Comparison;

/// A projection that can be compared with its facts.
#[async_trait]
pub trait Reconciled: Send + Sync + 'static {
    /// The projector that maintains it.
    fn projector(&self) -> &'static str;

    /// The types of events that the projector takes.
    fn event_types(&self) -> &'static [&'static str];

    /// Compares the live generation with the facts: by counts and checksums of shards first, then by the rows of
    /// the shards that differ. Events are written and applied meanwhile: what is only on its way, or parked, is
    /// no difference. One answer for each thing that is compared.
    async fn compare(&self, comparison: &Comparison<'_>) -> Result<Vec<Compared>>;

    /// The key of the event by which [`Reconciled::repair`] would put a difference right; `None` where it emits none.
    /// What the relay holds back is left out of a repair: its events would only wait there too.
    fn key(&self, difference: &Difference) -> Option<String>;

    /// Emits the events that put these differences right, in the transaction of `conn`; answers how many.
    /// The differences are at most [`crate::limits::RECONCILE_REPAIR_BATCH`] of one call of
    /// [`Reconciled::compare`]; some may have been put right since. It decides anew from facts, with the rows
    /// of its keys locked as its commands do, so that the events' order is that of their versions.
    async fn repair(&self, differences: &[Difference], ids: &EventIds, conn: Conn<'_>) -> Result<u64>;
}

/// What one comparison found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// What was compared, such as `relation.mirror`.
    pub check: &'static str,
    /// Shards whose counts and checksums were compared.
    pub shards: u64,
    /// Those that differed, whose rows were compared then.
    pub shards_differing: u64,
    /// Facts that the sums were over.
    pub rows: u64,
    /// Rows that differ only because events are on their way to the projector, are parked, or changed at each look.
    pub lagging: u64,
    /// How many differences of each kind there are.
    pub kinds: BTreeMap<&'static str, u64>,
    /// The differences that [`Reconciled::repair`] can put right, at most
    /// [`crate::limits::RECONCILE_DIFFERENCES_MAX`].
    pub differences: Vec<Difference>,
    /// The first of those that no event can put right; a repair is not told of them.
    pub unrepairable: Vec<Difference>,
    /// What else there is to know: what could not be told, and what is to be done.
    pub note: Option<String>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its kind in some words, as in [`Compared::kinds`]. Between a run and its repair it is stored as text.
    pub kind: Cow<'static, str>,
    /// What it is about, in the words of its feature: a pair `17:42`, a user `17`.
    pub subject: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Compared {
    /// An empty result of one check.
    pub fn of(check: &'static str) -> Self {
        Self { check, ..Self::default() }
    }

    /// Adds a difference: counts it, and keeps it while there is room.
    pub fn push(&mut self, kind: &'static str, difference: impl FnOnce() -> Difference) {
        *self.kinds.entry(kind).or_default() += 1;
        if self.differences.len() < RECONCILE_DIFFERENCES_MAX {
            self.differences.push(difference());
        }
    }

    /// Adds a difference that no event can put right: counts it, and keeps it if it is one of the first.
    pub fn push_unrepairable(&mut self, kind: &'static str, difference: impl FnOnce() -> Difference) {
        *self.kinds.entry(kind).or_default() += 1;
        if self.unrepairable.len() < RECONCILE_EXAMPLES_MAX {
            self.unrepairable.push(difference());
        }
    }

    /// Adds to what else there is to know.
    pub fn note(&mut self, text: &str) {
        let before = self.note.take().map(|before| before + "; ").unwrap_or_default();
        self.note = Some(before + text);
    }

    /// Differences of all kinds.
    pub fn total(&self) -> u64 {
        self.kinds.values().sum()
    }
}
