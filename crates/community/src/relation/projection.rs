//! The projector "relation": keeps the mirror and the counters of followers and followings.
//!
//! A batch is folded in memory and written at once. What makes each effect happen once:
//!
//! - **The version is the memory.** The mirror keeps one version for each pair, also of an ended
//!   follow. An event whose version is not newer than its pair's has no effect, however late it
//!   comes: dedup is bounded by the number of pairs and unbounded in time.
//! - **Counters follow the mirror, not the events.** Only a row of the mirror that turns from
//!   inactive to active, or back, moves a counter; so a repeated event cannot count twice.
//! - **A repair counts anew.** Where a pair is stated anew ([`super::reconcile`]), the row was wrong, and whether
//!   the counters had counted it nobody knows: both users are counted from the mirror, as is whoever a recount is
//!   requested for.
//!
//! **A gap** (the version of a follow or unfollow is two or more past its pair's) is applied, counted in
//! `tidings_relation_version_gaps_total` and logged. Parking the key would be worse: payloads are
//! self-contained, so the newer state is right whatever is missing before it, and a key parked for
//! a gap could never be freed by a retry. A gap arises where history was given up on purpose: a
//! discarded event, or a start past purged history.

pub(super) mod fold;

use async_trait::async_trait;
use tidings_backbone::{
    Conn,
    log::Recorded,
    projector::{ApplyError, Generation, Projector, Target, rebuild::Generations},
};

use self::fold::{Folded, Step};
use super::{
    EVENT_TYPES, counters,
    hot::{Hot, RefreshingProjector},
    mirror,
    rebuild::RelationGenerations,
};
use crate::telemetry;

/// Name of the projector; its position is stored under it.
pub const NAME: &str = "relation";

/// Keeps the mirror and the counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelationProjector;

#[async_trait]
impl Projector for RelationProjector {
    fn name(&self) -> &'static str {
        NAME
    }

    fn event_types(&self) -> &'static [&'static str] {
        EVENT_TYPES
    }

    async fn apply(&self, batch: &[Recorded], target: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        let folded = mirror_batch(batch, target.generation, &mut conn).await?;
        counters::add(&mut conn, target.generation, &folded.deltas, &folded.recounts).await?;
        Ok(())
    }

    fn generations(&self) -> Option<&dyn Generations> {
        Some(&RelationGenerations)
    }

    fn is_replayable(&self) -> bool {
        true
    }
}

impl RelationProjector {
    /// The same, and what `hot` keeps is brought up to date after each commit.
    pub fn with_cache(self, hot: Hot) -> RefreshingProjector {
        RefreshingProjector::new(hot)
    }
}

/// Brings the mirror up to date; what the batch comes to is to be counted yet.
pub(super) async fn mirror_batch(
    batch: &[Recorded],
    generation: Generation,
    conn: &mut Conn<'_>,
) -> Result<Folded, ApplyError> {
    // All events are read before anything is written: an event at fault costs no work.
    let steps = batch.iter().map(Step::read).collect::<Result<Vec<_>, _>>()?;
    let stored = mirror::read_to_write(conn, generation, &steps.iter().filter_map(Step::pair).collect()).await?;
    let folded = fold::fold(&steps, &stored);
    mirror::write(conn, generation, &folded.rows, &stored).await?;
    telemetry::relation_version_gap(folded.gaps);
    telemetry::relation_stale_event(folded.stale);
    Ok(folded)
}
