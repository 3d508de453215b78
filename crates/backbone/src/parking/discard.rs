//! Taking one waiting event out, for good: the rest of its key goes on. The event is kept whole in the audit.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidings_event::Timestamp;

use super::{
    OWNED, Owner, Refusal, State, WaitingEvent,
    look::{EVENT_COLUMNS, read_waiting},
    lot::free_if_empty,
};
use crate::{
    Conn, Db, Durability, Error, Result,
    audit::{self, Actor, Entry, Reason},
    counted::{self, Counted},
    db::Value,
    idempotency::{IdempotencyKey, once},
    log::{Offset, Part},
    projector::{Generation, generation, hold_position},
};

/// Which of a key's events is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with this id.
    Id(String),
    /// The one at this offset, in this part of the log if the key waits in several.
    At(Option<Part>, Offset),
}

/// What is to be discarded.
#[derive(Clone, Debug)]
pub struct Discard {
    /// The projector for which it waits: the generation that readers are given, or another one (`orders@3`).
    /// Others are not touched.
    pub projector: String,
    /// The key under which it waits.
    pub key: String,
    /// Which of the key's events.
    pub which: Which,
    /// Why.
    pub reason: Reason,
}

/// What was discarded, and what became of its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// The event.
    pub event: WaitingEvent,
    /// Whether it was the one that failed. The next one then is tried at once, with fresh attempts.
    pub was_head: bool,
    /// Whether nothing waits any more, so that the key is free.
    pub freed: bool,
}

impl Discard {
    /// The same with the projector as the lot knows it: by the identity of its live generation.
    async fn meant(&self, conn: &mut Conn<'_>) -> Result<Self> {
        Ok(Self { projector: generation::meant(conn, &self.projector).await?, ..self.clone() })
    }
}

/// What the audit keeps of a discarded event, which is nowhere else then.
#[derive(Debug, Serialize)]
struct Details<'a> {
    part: String,
    offset: i64,
    was_head: bool,
    freed: bool,
    event: &'a RawValue,
}

/// Finds what would be discarded; changes nothing.
///
/// # Errors
/// When the database fails. A refusal is the inner error.
pub async fn find(mut conn: Conn<'_>, wanted: &Discard) -> Result<Result<WaitingEvent, Refusal>> {
    let wanted = wanted.meant(&mut conn).await?;
    find_event(&mut conn, &wanted).await
}

/// Discards an event: it is not applied for this projector then, unless the log is applied again by a rebuild. Who
/// did it, why, and the event itself are written in the same transaction. The same `key` once more is answered
/// as it was the first time, and discards nothing.
///
/// # Errors
/// When the database fails; nothing was changed then. A refusal is the inner error.
pub async fn discard(
    db: &Db,
    wanted: &Discard,
    actor: &Actor,
    key: Option<&IdempotencyKey>,
    at: Timestamp,
) -> Result<Result<Discarded, Refusal>> {
    once::attempt(db, key, || try_discard(db, wanted, actor, key, at)).await
}

async fn try_discard(
    db: &Db,
    wanted: &Discard,
    actor: &Actor,
    key: Option<&IdempotencyKey>,
    at: Timestamp,
) -> Result<Result<Discarded, Refusal>> {
    let mut tx = db.write(Durability::Full).await?;
    let mut conn = tx.conn();
    if let Some(answered) = once::answered(&mut conn, key).await? {
        return tx.rollback().await.map(|()| answered);
    }
    let wanted = &wanted.meant(&mut conn).await?;
    let kept = keep(&mut conn, wanted).await?;
    if kept.is_empty() {
        return once::refused(tx, key, Refusal::NoneParked, at).await;
    }
    let event = match find_event(&mut conn, wanted).await? {
        Ok(event) if kept.contains(&event.part) => event,
        // It was parked there just now: whoever asks again is not told so for ever.
        Ok(_) => return tx.rollback().await.map(|()| Err(Refusal::NoSuchEvent)),
        Err(refusal) => return once::refused(tx, key, refusal, at).await,
    };
    let owner = Owner { projector: &wanted.projector, part: &event.part };
    let (was_head, freed) = take_out(&mut conn, owner, &wanted.key, event.offset, at).await?;
    let details = Details {
        part: event.part.to_string(),
        offset: event.offset.0,
        was_head,
        freed,
        event: serde_json::from_str(&event.event).map_err(Error::json("reading a parked event"))?,
    };
    let entry = Entry {
        actor,
        action: "parking.discard",
        projector: Some(&wanted.projector),
        key: Some(&wanted.key),
        event_id: event.event_id.as_deref(),
        reason: Some(&wanted.reason),
        details: serde_json::to_string(&details).map_err(Error::json("writing the audit"))?,
    };
    audit::write(&mut conn, &entry, at).await?;
    // Without the number, of which each rebuild makes another one.
    counted::add(&mut conn, Counted::DiscardedEvents, Generation::of(&wanted.projector).0, 1).await?;
    let discarded = Discarded { event, was_head, freed };
    once::done(tx, key, &discarded, at).await?;
    Ok(Ok(discarded))
}

/// Keeps the rows of the key for this transaction, in whatever parts of the log; answers in which. They are looked for
/// by an index and kept by the primary key, as everybody keeps them: two who go different ways may wait for each other.
async fn keep(conn: &mut Conn<'_>, wanted: &Discard) -> Result<Vec<Part>> {
    let doing = "keeping a parked key";
    let by_key = conn.engine().by_index("parked_key_key");
    let sql = format!("SELECT part FROM parked_key {by_key} WHERE projector = ? AND event_key = ? ORDER BY part");
    let args = vec![wanted.projector.as_str().into(), wanted.key.as_str().into()];
    let found = conn.fetch(doing, sql, args).await?;
    let (by_key, for_update) = (conn.engine().by_primary_key(), conn.engine().for_update());
    let sql = format!("SELECT 1 FROM parked_key {by_key} WHERE {OWNED} AND event_key = ? {for_update}");
    let mut kept = Vec::with_capacity(found.len());
    for row in found {
        let part = Part::read(&row.text(0)?, "parked_key")?;
        let args = Owner { projector: &wanted.projector, part: &part }.args([wanted.key.as_str().into()]);
        if conn.fetch_optional(doing, sql.clone(), args).await?.is_some() {
            kept.push(part);
        }
    }
    Ok(kept)
}

async fn find_event(conn: &mut Conn<'_>, wanted: &Discard) -> Result<Result<WaitingEvent, Refusal>> {
    let (condition, values): (&str, Vec<Value>) = match &wanted.which {
        Which::Id(id) => ("event_id = ?", vec![id.as_str().into()]),
        Which::At(None, offset) => ("log_offset = ?", vec![offset.0.into()]),
        Which::At(Some(part), offset) => {
            ("log_offset = ? AND part = ?", vec![offset.0.into(), part.to_string().into()])
        }
    };
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM parked_event {} WHERE projector = ? AND event_key = ? AND {condition} \
         ORDER BY part, log_offset LIMIT 10",
        conn.engine().by_index(match &wanted.which {
            Which::Id(_) => "parked_event_id",
            Which::At(..) => "parked_event_key",
        })
    );
    let mut args: Vec<Value> = vec![wanted.projector.as_str().into(), wanted.key.as_str().into()];
    args.extend(values);
    let rows = conn.fetch("finding a parked event", sql, args).await?;
    let mut found = rows.iter().map(read_waiting).collect::<Result<Vec<_>>>()?;
    Ok(match (found.pop(), found.is_empty()) {
        (None, _) => Err(Refusal::NoSuchEvent),
        (Some(event), true) => Ok(event),
        (Some(last), false) => {
            found.push(last);
            Err(Refusal::SeveralEvents { at: found.into_iter().map(|event| (event.part, event.offset)).collect() })
        }
    })
}

/// Removes the event; lets a key whose head it was be tried again. Answers whether it was the head, and whether
/// the key is free.
async fn take_out(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    offset: Offset,
    at: Timestamp,
) -> Result<(bool, bool)> {
    let doing = "discarding an event";
    let sql = format!("SELECT MIN(log_offset) FROM parked_event WHERE {OWNED} AND event_key = ?");
    let head = conn.fetch_optional(doing, sql, owner.args([key.into()])).await?;
    let was_head = head.map_or(Ok(None), |row| row.int_or_null(0))? == Some(offset.0);
    let sql = format!("DELETE FROM parked_event WHERE {OWNED} AND event_key = ? AND log_offset = ?");
    conn.execute(doing, sql, owner.args([key.into(), offset.0.into()])).await?;
    // Who is appending just now holds the position: he is waited for, and what he appended is seen.
    hold_position(conn, owner.projector, owner.part).await?;
    let freed = free_if_empty(conn, owner, key).await?;
    if was_head && !freed {
        // What was dead is tried as any other key is; what is being redriven goes on being so.
        let sql = format!(
            "UPDATE parked_key SET state = CASE state WHEN {dead} THEN {retrying} ELSE state END, attempts = 0, \
             next_attempt_at = ?, tell_at = NULL WHERE {OWNED} AND event_key = ?",
            dead = State::Dead.code(),
            retrying = State::Retrying.code(),
        );
        let [projector, part] = owner.values();
        conn.execute(doing, sql, vec![at.0.into(), projector, part, key.into()]).await?;
    }
    Ok((was_head, freed))
}
