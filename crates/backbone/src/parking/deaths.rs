//! Deaths of keys that nobody was told of yet.
//!
//! A death is written in the transaction that kills the key, and stays to be told until it was. Whoever tells it
//! first takes it for a while, so that several processes do not tell it twice; after a crash the while ends. A
//! key that an operator revives before is no news any more.

mod crowd;

use tidings_event::Timestamp;

use self::crowd::{ranges, take};
use super::{Filter, ParkedKey, State, list};
use crate::{Db, Result};

pub(crate) use self::crowd::{Dead, note_crowd_told, take_crowd};

/// A key that died.
#[derive(Clone, Debug)]
pub(crate) struct Death {
    /// The key as it is.
    pub(crate) key: ParkedKey,
    /// When it died.
    pub(crate) died_at: Timestamp,
}

/// Takes the death that has waited longest to be told, until `until`; what lies beyond `horizon` was written
/// by a clock that was set back since.
pub(crate) async fn take_untold(
    db: &Db,
    now: Timestamp,
    until: Timestamp,
    horizon: Timestamp,
) -> Result<Option<Death>> {
    for (range, bound) in ranges(now, horizon) {
        let Some(Dead { projector, part, key, .. }) = take(db, range, bound, until, 1).await?.pop() else { continue };
        // Writers need not wait while the key is read with what waits under it. If it is revived before, there is
        // nothing to tell; after a crash here it is taken again.
        let found = list(db.read().await?.conn(), &Filter::one(&projector, &key), None, 100).await?;
        let death = found.into_iter().find(|found| found.part == part && found.state == State::Dead);
        return Ok(death.map(|key| Death { died_at: key.died_at.unwrap_or(key.parked_at), key }));
    }
    Ok(None)
}

/// Notes that a death was told, or with a time that it is to be told then. A later death of the same key is
/// another one.
pub(crate) async fn note_told(db: &Db, death: &Death, again_at: Option<Timestamp>) -> Result<()> {
    let ParkedKey { projector, part, key, .. } = death.key.clone();
    note_crowd_told(db, &[Dead { projector, part, key, died_at: death.died_at }], again_at).await
}
