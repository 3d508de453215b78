//! Deaths that are told together, because there are too many to be told one by one.

use tidings_event::Timestamp;

use crate::{
    Conn, Db, Durability, Result,
    db::Value,
    limits::{ALERT_CROWD_CHUNK, ALERT_CROWD_MAX},
    log::Part,
    parking::{OWNED, Owner},
};

/// A key that died, without what waits under it.
#[derive(Clone, Debug)]
pub(crate) struct Dead {
    pub(crate) projector: String,
    pub(crate) part: Part,
    pub(crate) key: String,
    pub(crate) died_at: Timestamp,
}

/// Takes the deaths that have waited longest to be told, at most [`ALERT_CROWD_MAX`], until `until`; what lies beyond
/// `horizon` was written by a clock that was set back since. In small transactions: where the database has one writer,
/// others wait for it.
pub(crate) async fn take_crowd(db: &Db, now: Timestamp, until: Timestamp, horizon: Timestamp) -> Result<Vec<Dead>> {
    let mut taken = Vec::new();
    for (range, bound) in ranges(now, horizon) {
        while taken.len() < ALERT_CROWD_MAX {
            let mut chunk = take(db, range, bound, until, ALERT_CROWD_CHUNK).await?;
            if chunk.is_empty() {
                break;
            }
            taken.append(&mut chunk);
        }
    }
    Ok(taken)
}

/// What is to be told by now. Each range by itself, so that each is one of the index.
pub(super) fn ranges(now: Timestamp, horizon: Timestamp) -> [(&'static str, Timestamp); 2] {
    [("tell_at <= ?", now), ("tell_at > ?", horizon)]
}

/// Takes at most `limit` deaths of a range, in one transaction.
pub(super) async fn take(db: &Db, range: &str, bound: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<Dead>> {
    let look = format!(
        "SELECT projector, part, event_key, died_at FROM parked_key WHERE state = 1 AND {range} \
         ORDER BY tell_at LIMIT ?"
    );
    // Nearly always there is none, and a look that takes no turn at writing says so.
    let one = vec![bound.0.into(), 1.into()];
    if db.glance().await?.conn().fetch_optional(LOOKING, look.clone(), one).await?.is_none() {
        return Ok(Vec::new());
    }
    let mut tx = db.write(Durability::Full).await?;
    let sql = format!("{look} {}", tx.conn().engine().for_update_if_free());
    let args = vec![bound.0.into(), (limit as i64).into()];
    let mut chunk = Vec::new();
    for row in tx.conn().fetch(LOOKING, sql, args).await? {
        let (projector, part) = (row.text(0)?, Part::read(&row.text(1)?, "parked_key")?);
        let died_at = Timestamp(row.int_or_null(3)?.unwrap_or_default());
        chunk.push(Dead { projector, part, key: row.text(2)?, died_at });
    }
    note(&mut tx.conn(), &chunk, Some(until)).await?;
    tx.commit().await?;
    Ok(chunk)
}

/// Notes that these deaths were told, or with a time that they are to be told then. A later death of the same key is
/// another one.
pub(crate) async fn note_crowd_told(db: &Db, crowd: &[Dead], again_at: Option<Timestamp>) -> Result<()> {
    for chunk in crowd.chunks(ALERT_CROWD_CHUNK) {
        let mut tx = db.write(Durability::Full).await?;
        note(&mut tx.conn(), chunk, again_at).await?;
        tx.commit().await?;
    }
    Ok(())
}

const LOOKING: &str = "looking for deaths to tell";

async fn note(conn: &mut Conn<'_>, deaths: &[Dead], tell_at: Option<Timestamp>) -> Result<()> {
    let sql = format!(
        "UPDATE parked_key SET tell_at = ? WHERE {OWNED} AND event_key = ? AND state = 1 AND COALESCE(died_at, 0) = ?"
    );
    for Dead { projector, part, key, died_at } in deaths {
        let mut args: Vec<Value> = vec![tell_at.map(|at| at.0).into()];
        args.extend(Owner { projector, part }.args([key.as_str().into(), died_at.0.into()]));
        conn.execute("noting that deaths are told", sql.clone(), args).await?;
    }
    Ok(())
}
