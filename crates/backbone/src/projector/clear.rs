//! Up to where the log of Kafka holds no event behind a position.
//!
//! Behind the last event of a partition stand ends of transactions, which have offsets and are never handed out. When
//! retention has removed that event and its transaction's end, the partition begins behind the next offset that the
//! projector would read, and nobody can tell any more whether an event was between. So it is looked at while it is
//! still there, and noted beside the position. It is a fact of the log and not of the projector: whoever notes it, for
//! whichever position, may be killed or have been replaced, and what is noted stays true.

use std::collections::BTreeMap;

use super::{position, task::Plan};
use crate::{
    Durability, Error, Result,
    limits::{CLEAR_LAST_TIME_MAX, CLEAR_LOOK_GAP},
    log::{KafkaLog, Offset, Part},
};

/// Notes it at once and then again and again; never returns.
pub(super) async fn keep(plan: &Plan, log: &KafkaLog) {
    loop {
        try_to_note(plan, log).await;
        tokio::time::sleep(CLEAR_LOOK_GAP).await;
    }
}

/// Notes it once more, for whoever stands still from now on; gives up when it takes long.
pub(super) async fn note_at_the_end(plan: &Plan, log: &KafkaLog) {
    if tokio::time::timeout(CLEAR_LAST_TIME_MAX, try_to_note(plan, log)).await.is_err() {
        tracing::debug!(projector = plan.identity(), "there was no time to note up to where the log is clear");
    }
}

async fn try_to_note(plan: &Plan, log: &KafkaLog) {
    if let Err(error) = note(plan, log).await {
        // Whoever needs Kafka or the database says so itself; this is looked at again in a while.
        let (projector, error) = (plan.identity(), Error::chain(&error));
        tracing::debug!(projector, error, "up to where the log is clear was not noted");
    }
}

async fn note(plan: &Plan, log: &KafkaLog) -> Result<()> {
    let places = {
        let mut look = plan.db().glance().await?;
        position::places(&mut look.conn(), plan.identity()).await?
    };
    let reached = places.iter().map(|place| (place.part.clone(), place.reached())).collect();
    let clear: BTreeMap<Part, Offset> = log.clear(reached).await?;
    for place in places {
        let Some(clear) = clear.get(&place.part) else { continue };
        // Each by itself: a transaction that moves several positions takes them in another order.
        let mut tx = plan.db().write(Durability::Rebuildable).await?;
        position::note_clear(&mut tx.conn(), plan.identity(), &place, *clear).await?;
        tx.commit().await?;
    }
    Ok(())
}
