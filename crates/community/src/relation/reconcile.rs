//! Reconciliation of the follow graph: mirror, counters and what Redis keeps against the facts, and their repair.
//!
//! Facts and mirror are summed in shards; the rows of shards that differ are compared. Counters are compared user by
//! user with the mirror of the same snapshot, which changes with them in one transaction; what is wrong in the mirror
//! is put right in the sum first, so that a right counter is not blamed for it, nor a wrong one excused.
//!
//! **What is on its way is no difference.** Whatever differs is looked at again, when all that was committed before has
//! been applied; only what then differs just as it did at the look before is wrong. What is parked, what changes from
//! look to look, and what events wait for while the projector is behind and not at work, is lagging.
//!
//! **Repair is an event.** A pair is stated anew (`relation.restated`): the fact stays as it is but for its version,
//! which rises above that of the mirror, so that to the projector it is simply the newest state. Of a mirror row
//! without a fact an ended one is made. Then both users' counters are counted from the mirror, since nobody knows
//! whether they had counted the row. Counters alone are counted anew for a `relation.recount_requested`. What is kept
//! in Redis is no projection and needs no event: it is dropped, and read anew when it is next asked for.
//!
//! Not repaired so: rows whose version is above [`limits::RESTATED_VERSION_MAX`](crate::limits::RESTATED_VERSION_MAX),
//! and rows of what can be no user (a negative id). They are told apart, and are gone with a rebuild.
//!
//! In reading order: `first` looks at everything, `look` once more at what differed; `looks` does both, and `repair`
//! what is to be done; `cache` is of what Redis keeps.

mod cache;
mod first;
mod look;
mod looks;
mod repair;

use async_trait::async_trait;
use tidings_backbone::{
    Clock, Conn, EventIds, Result,
    reconcile::{Compared, Comparison, Difference, Reconciled},
};

use super::{EVENT_TYPES, hot::Hot, projection};

/// Compares and repairs what the projector "relation" maintains.
#[derive(Debug)]
pub struct RelationReconciled {
    clock: Clock,
    hot: Option<Hot>,
}

impl RelationReconciled {
    /// Repairs are of the moments that `clock` tells.
    pub fn new(clock: Clock) -> Self {
        Self { clock, hot: None }
    }

    /// The same, where lists and counters are kept in `hot`: a sample of them is compared as well.
    #[must_use]
    pub fn with_cache(self, hot: Hot) -> Self {
        Self { hot: Some(hot), ..self }
    }
}

#[async_trait]
impl Reconciled for RelationReconciled {
    fn projector(&self) -> &'static str {
        projection::NAME
    }

    fn event_types(&self) -> &'static [&'static str] {
        EVENT_TYPES
    }

    async fn compare(&self, comparison: &Comparison<'_>) -> Result<Vec<Compared>> {
        let (mirror, counters, doubtful) = looks::compare(comparison).await?;
        let mut compared = vec![mirror, counters];
        if let Some(hot) = &self.hot {
            compared.push(cache::compare(hot, comparison, &doubtful).await?);
        }
        Ok(compared)
    }

    fn key(&self, difference: &Difference) -> Option<String> {
        repair::key(difference)
    }

    async fn repair(&self, differences: &[Difference], ids: &EventIds, conn: Conn<'_>) -> Result<u64> {
        if let Some(hot) = &self.hot {
            cache::drop_kept(hot, differences).await;
        }
        repair::repair(differences, self.clock.now(), ids, conn).await
    }
}
