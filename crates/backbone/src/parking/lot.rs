//! What the projector's task does with its parking lot. All of it in the task's own transactions.

use std::collections::HashSet;

use tidings_event::{Timestamp, cloudevents};

use super::{OWNED, Owner, State};
use crate::{
    Conn, Error, Result,
    audit::first_bytes,
    db::{Engine, Row, Value},
    limits::{EVENT_TEXT_BYTES_MAX, PARKING_ERROR_CHARS_MAX},
    log::{Offset, Recorded},
    outbox::MalformedEvent,
};

/// In a stored event that is none: why.
const UNREADABLE: &str = "unreadable";

const APPEND: &str = "INSERT INTO parked_event \
     (projector, part, event_key, log_offset, occurred_at, event_type, event_id, event) VALUES";

/// Which of `keys` are parked for a projector.
pub(crate) async fn parked_among(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    keys: impl Iterator<Item = &str>,
) -> Result<HashSet<String>> {
    // Nearly always nothing is parked, and one probe says so.
    let doing = "looking for parked keys";
    let any = format!("SELECT 1 FROM parked_key WHERE {OWNED} LIMIT 1");
    if conn.fetch_optional(doing, any, owner.args([])).await?.is_none() {
        return Ok(HashSet::new());
    }
    let distinct: HashSet<&str> = keys.collect();
    let [projector, part] = owner.values();
    let rows: Vec<[Value; 3]> = distinct.into_iter().map(|key| [projector.clone(), part.clone(), key.into()]).collect();
    let sql =
        |values: &str| format!("SELECT event_key FROM parked_key WHERE (projector, part, event_key) IN ({values})");
    conn.fetch_rows(doing, sql, rows).await?.iter().map(|row| row.text(0)).collect()
}

/// Whether keys behind which this transaction has appended are parked still, now that it holds the position:
/// whoever frees a key takes the position too, so it was either freed before, or sees what was appended.
pub(crate) async fn are_still_parked(conn: &mut Conn<'_>, owner: Owner<'_>, keys: &HashSet<String>) -> Result<bool> {
    match conn.engine() {
        // One writer at a time works.
        Engine::Sqlite => Ok(true),
        Engine::Mysql | Engine::Mariadb => {
            let parked = parked_among(conn, owner, keys.iter().map(String::as_str)).await?;
            Ok(parked.len() == keys.len())
        }
    }
}

/// Parks the key of `failed`, whose first try has just failed.
pub(crate) async fn park(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    failed: &Recorded,
    error: &str,
    at: Timestamp,
    next_attempt_at: Option<Timestamp>,
) -> Result<()> {
    let state = if next_attempt_at.is_some() { State::Retrying } else { State::Dead };
    let died_at = next_attempt_at.is_none().then_some(at.0);
    let sql = "INSERT INTO parked_key \
               (projector, part, event_key, state, attempts, next_attempt_at, error, parked_at, died_at, tell_at) \
               VALUES (?,?,?,?,1,?,?,?,?,?)";
    let args = owner.args([
        failed.event.key.as_str().into(),
        state.code().into(),
        next_attempt_at.unwrap_or(at).0.into(),
        shorten(error).into(),
        at.0.into(),
        died_at.into(),
        died_at.into(),
    ]);
    conn.execute("parking a key", sql, args).await?;
    append(conn, owner, std::slice::from_ref(failed)).await
}

/// Parks a row that is no event. What is wrong with it does not pass by itself, so its key is dead;
/// if the key is parked already, the row waits behind it.
pub(crate) async fn park_malformed(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    row: &MalformedEvent,
    at: Timestamp,
) -> Result<()> {
    let nothing = conn.engine().on_conflict("projector, part, event_key", "attempts = attempts");
    let sql = format!(
        "INSERT INTO parked_key \
         (projector, part, event_key, state, attempts, next_attempt_at, error, parked_at, died_at, tell_at) \
         VALUES (?,?,?,1,1,?,?,?,?,?) {nothing}"
    );
    let key = row.key.as_str();
    let args =
        owner.args([key.into(), at.0.into(), shorten(&row.reason).into(), at.0.into(), at.0.into(), at.0.into()]);
    conn.execute("parking a malformed row", sql, args).await?;
    let event = serde_json::json!({ UNREADABLE: row.reason, "columns": row.columns }).to_string();
    let [projector, part] = owner.values();
    let event_type = first_bytes(&row.event_type, EVENT_TEXT_BYTES_MAX).into();
    let values = [projector, part, key.into(), row.offset.0.into(), at.0.into(), event_type, Value::Null, event.into()];
    conn.execute_rows("parking a malformed row", APPEND, vec![values], "").await.map(drop)
}

/// Appends events behind their parked keys.
pub(crate) async fn append(conn: &mut Conn<'_>, owner: Owner<'_>, events: &[Recorded]) -> Result<()> {
    let rows: Vec<[Value; 8]> = events
        .iter()
        .map(|recorded| {
            let event = &recorded.event;
            let stored = cloudevents::json::encode(event, cloudevents::SOURCE).unwrap_or_else(|error| {
                // Such an event cannot come out of `emit`; it is kept all the same, and holds up its key only.
                serde_json::json!({ UNREADABLE: Error::chain(&error), "columns": format!("{event:?}") }).to_string()
            });
            let [projector, part] = owner.values();
            [
                projector,
                part,
                event.key.as_str().into(),
                recorded.offset.0.into(),
                event.occurred_at.0.into(),
                first_bytes(&event.event_type, EVENT_TEXT_BYTES_MAX).into(),
                event.id.to_string().into(),
                stored.into(),
            ]
        })
        .collect();
    conn.execute_rows("parking events", APPEND, rows, "").await.map(drop)
}

/// Reads the offset and the stored event from a row's first columns.
pub(super) fn read_event(row: &Row) -> Result<Recorded> {
    let event = cloudevents::json::decode(row.text(1)?.as_bytes()).map_err(Error::Event)?;
    Ok(Recorded { offset: Offset(row.int(0)?), event })
}

/// Removes events of a key up to and including `last`, which have been applied; frees the key if
/// none is left, else lets its next event be tried at `next` with fresh attempts.
pub(crate) async fn remove_applied(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    last: Offset,
    next: Timestamp,
) -> Result<()> {
    let doing = "freeing a parked key";
    let sql = format!("DELETE FROM parked_event WHERE {OWNED} AND event_key = ? AND log_offset <= ?");
    conn.execute(doing, sql, owner.args([key.into(), last.0.into()])).await?;
    let sql = format!("UPDATE parked_key SET attempts = 0, next_attempt_at = ? WHERE {OWNED} AND event_key = ?");
    let [projector, part] = owner.values();
    conn.execute(doing, sql, vec![next.0.into(), projector, part, key.into()]).await?;
    free_if_empty(conn, owner, key).await.map(drop)
}

/// Frees a key under which nothing waits any more; answers whether it did. The transaction must hold the
/// position before it commits, and see it where it was before: others append while they move it.
pub(super) async fn free_if_empty(conn: &mut Conn<'_>, owner: Owner<'_>, key: &str) -> Result<bool> {
    let doing = "freeing a parked key";
    let by_key = conn.engine().by_primary_key();
    let sql = format!("SELECT 1 FROM parked_event {by_key} WHERE {OWNED} AND event_key = ? LIMIT 1");
    if conn.fetch_optional(doing, sql, owner.args([key.into()])).await?.is_some() {
        return Ok(false);
    }
    let sql = format!("DELETE FROM parked_key WHERE {OWNED} AND event_key = ?");
    Ok(conn.execute(doing, sql, owner.args([key.into()])).await? > 0)
}

/// Notes another failed try of a key's head; without a next time the key is dead.
pub(crate) async fn note_failure(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    attempts: u32,
    error: &str,
    at: Timestamp,
    next_attempt_at: Option<Timestamp>,
) -> Result<()> {
    let state = if next_attempt_at.is_some() { State::Retrying } else { State::Dead };
    let died_at = next_attempt_at.is_none().then_some(at.0);
    let sql = format!(
        "UPDATE parked_key SET state = ?, attempts = ?, error = ?, next_attempt_at = COALESCE(?, next_attempt_at), \
         died_at = COALESCE(?, died_at), tell_at = ? WHERE {OWNED} AND event_key = ?"
    );
    let [projector, part] = owner.values();
    let args = vec![
        state.code().into(),
        i64::from(attempts).into(),
        shorten(error).into(),
        next_attempt_at.map(|at| at.0).into(),
        died_at.into(),
        died_at.into(),
        projector,
        part,
        key.into(),
    ];
    conn.execute("noting a failed try", sql, args).await.map(drop)
}

fn shorten(error: &str) -> String {
    error.chars().take(PARKING_ERROR_CHARS_MAX).collect()
}
