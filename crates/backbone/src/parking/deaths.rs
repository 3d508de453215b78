//! Deaths of keys that nobody was told of yet.
//!
//! A death is written in the transaction that kills the key, and stays to be told until it was. Whoever tells it
//! first takes it for a while, so that several processes do not tell it twice; after a crash the while ends. A
//! key that an operator revives before is no news any more.

mod crowd;

use tidings_event::Timestamp;

use super::{Filter, OWNED, Owner, ParkedKey, State, list};
use crate::{Db, Durability, Result, log::Part};

pub(crate) use crowd::{Dead, note_crowd_told, take_crowd};

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
    // Each range by itself, so that each is one of the index. Nearly always there is none, and a look that takes no
    // turn at writing says so.
    for (range, bound) in [("tell_at <= ?", now), ("tell_at > ?", horizon)] {
        let look = format!(
            "SELECT projector, part, event_key FROM parked_key WHERE state = 1 AND {range} ORDER BY tell_at LIMIT 1"
        );
        let args = vec![bound.0.into()];
        if db.glance().await?.conn().fetch_optional(LOOKING, look.clone(), args.clone()).await?.is_none() {
            continue;
        }
        let mut tx = db.write(Durability::Full).await?;
        let sql = format!("{look} {}", tx.conn().engine().for_update_if_free());
        let Some(row) = tx.conn().fetch_optional(LOOKING, sql, args).await? else {
            tx.rollback().await?;
            continue;
        };
        let (projector, part, key) = (row.text(0)?, Part::read(&row.text(1)?, "parked_key")?, row.text(2)?);
        let sql = format!("UPDATE parked_key SET tell_at = ? WHERE {OWNED} AND event_key = ?");
        let mut args = vec![until.0.into()];
        args.extend(Owner { projector: &projector, part: &part }.args([key.as_str().into()]));
        tx.conn().execute("taking a death to tell", sql, args).await?;
        tx.commit().await?;
        // Writers need not wait while the key is read with what waits under it. If it is revived before, there is
        // nothing to tell; after a crash here it is taken again.
        let found = list(db.read().await?.conn(), &Filter::one(&projector, &key), None, 100).await?;
        let death = found.into_iter().find(|found| found.part == part && found.state == State::Dead);
        return Ok(death.map(|key| Death { died_at: key.died_at.unwrap_or(key.parked_at), key }));
    }
    Ok(None)
}

const LOOKING: &str = "looking for deaths to tell";

/// Notes that a death was told, or with a time that it is to be told then. A later death of the same key is
/// another one.
pub(crate) async fn note_told(db: &Db, death: &Death, again_at: Option<Timestamp>) -> Result<()> {
    let ParkedKey { projector, part, key, .. } = &death.key;
    let mut tx = db.write(Durability::Full).await?;
    let sql =
        format!("UPDATE parked_key SET tell_at = ? WHERE {OWNED} AND event_key = ? AND state = 1 AND died_at = ?");
    let mut args = vec![again_at.map(|at| at.0).into()];
    args.extend(Owner { projector, part }.args([key.as_str().into(), death.died_at.0.into()]));
    tx.conn().execute("noting that a death was told", sql, args).await?;
    tx.commit().await
}
