//! What the projector's task does with its parking lot. All of it in the task's own transactions.

use std::collections::HashSet;

use tidings_event::{Timestamp, cloudevents};

use super::{OWNED, Owner, State};
use crate::{
    Conn, Error, Result,
    audit::first_bytes,
    db::{Engine, Row, Value},
    limits::{EVENT_TEXT_BYTES_MAX, PARKING_ERROR_CHARS_MAX, PARKING_ROUND_BYTES_MAX},
    log::{Offset, Recorded},
    outbox::MalformedEvent,
};

/// The `source` attribute of events stored in the lot.
const EVENT_SOURCE: &str = "/tidings/parking";

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
            let stored = cloudevents::json::encode(event, EVENT_SOURCE).unwrap_or_else(|error| {
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

/// When a key is due: at its time, or when its time lies so far ahead that the clock must have been
/// set back since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) now: Timestamp,
    /// No key that is retried is made to wait beyond this.
    pub(crate) horizon: Timestamp,
    /// No key that is redriven is made to wait beyond this.
    pub(crate) redrive_horizon: Timestamp,
}

/// Written so that each of its four ranges is one of the index.
const IS_DUE: &str = "((state = 0 AND (next_attempt_at <= ? OR next_attempt_at > ?)) \
     OR (state = 2 AND (next_attempt_at <= ? OR next_attempt_at > ?)))";

impl Due {
    fn args(self) -> [Value; 4] {
        let Self { now, horizon, redrive_horizon } = self;
        [now.0.into(), horizon.0.into(), now.0.into(), redrive_horizon.0.into()]
    }
}

/// Keys whose next try is due, the longest waiting first.
pub(crate) async fn due(conn: &mut Conn<'_>, owner: Owner<'_>, due: Due, limit: usize) -> Result<Vec<String>> {
    let sql = format!("SELECT event_key FROM parked_key WHERE {OWNED} AND {IS_DUE} ORDER BY next_attempt_at LIMIT ?");
    let mut args = owner.args(due.args());
    args.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    conn.fetch("looking for due keys", sql, args).await?.iter().map(|row| row.text(0)).collect()
}

/// What a projector needs to know of its parking lot between two batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lot {
    /// Whether no key is parked.
    pub(crate) is_empty: bool,
    /// When the next try of any key is due that is retried.
    pub(crate) next_retry: Option<Timestamp>,
    /// The same of those that are redriven, which may lie far ahead.
    pub(crate) next_redrive: Option<Timestamp>,
}

impl Lot {
    /// Nothing is parked.
    pub(crate) const EMPTY: Self = Self { is_empty: true, next_retry: None, next_redrive: None };
}

/// Looks at the parking lot of a projector.
pub(crate) async fn lot(conn: &mut Conn<'_>, owner: Owner<'_>) -> Result<Lot> {
    let next = |state: State| {
        format!("(SELECT MIN(next_attempt_at) FROM parked_key WHERE {OWNED} AND state = {})", state.code())
    };
    let sql = format!(
        "SELECT NOT EXISTS (SELECT 1 FROM parked_key WHERE {OWNED}), {}, {}",
        next(State::Retrying),
        next(State::Redriving)
    );
    let args = std::iter::repeat_n(owner.values(), 3).flatten().collect();
    let row = conn.fetch_optional("looking at the parking lot", sql, args).await?;
    row.map_or(Ok(Lot::default()), |row| {
        let next = |column: usize| row.int_or_null(column).map(super::moment);
        Ok(Lot { is_empty: row.int(0)? != 0, next_retry: next(1)?, next_redrive: next(2)? })
    })
}

/// What waits under a key, from its head on.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Whether an operator lets it be tried, or its time has come by itself.
    pub(crate) state: State,
    /// Failed tries of the head.
    pub(crate) attempts: u32,
    /// Events a second, where an operator has said how many.
    pub(crate) pace: Option<u32>,
    /// The first events, in order.
    pub(crate) events: Vec<Recorded>,
    /// Why the event after them cannot be read, if so.
    pub(crate) unreadable: Option<Error>,
}

/// The first events that wait under a key, at most `limit` and some [`PARKING_ROUND_BYTES_MAX`].
/// Nothing when the key is no longer due, or its row is held by somebody else: a former owner who is
/// trying it, an operator. Else this transaction holds the row, so that nobody tries a key twice at a time.
pub(crate) async fn waiting_if_due(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    due: Due,
    limit: usize,
) -> Result<Option<Waiting>> {
    let if_free = conn.engine().for_update_if_free();
    let sql =
        format!("SELECT state, attempts, pace FROM parked_key WHERE {OWNED} AND event_key = ? AND {IS_DUE} {if_free}");
    let mut args = owner.args([key.into()]);
    args.extend(due.args());
    let Some(row) = conn.fetch_optional("reading a parked key", sql, args).await? else {
        return Ok(None);
    };
    let state = State::from_code(row.int(0)?)?;
    let attempts = u32::try_from(row.int(1)?).unwrap_or(u32::MAX);
    let pace = u32::try_from(row.int(2)?).ok().filter(|pace| state == State::Redriving && *pace > 0);
    // At a pace, what is done at once is what a second may have.
    let limit = pace.map_or(limit, |pace| limit.min(usize::try_from(pace).unwrap_or(limit)));
    let sql = format!(
        "SELECT log_offset, event FROM parked_event WHERE {OWNED} AND event_key = ? ORDER BY log_offset LIMIT ?"
    );
    let args = owner.args([key.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()]);
    let mut waiting = Waiting { state, attempts, pace, events: Vec::new(), unreadable: None };
    let mut bytes = 0;
    conn.fetch_while("reading parked events", sql, args, |row| {
        match read_event(row) {
            Ok(recorded) => {
                bytes += recorded.event.payload.get().len();
                waiting.events.push(recorded);
            }
            Err(error) => waiting.unreadable = Some(error),
        }
        Ok(waiting.unreadable.is_none() && bytes < PARKING_ROUND_BYTES_MAX)
    })
    .await?;
    Ok(Some(waiting))
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
    let sql = format!(
        "DELETE FROM parked_key WHERE {OWNED} AND event_key = ? AND NOT EXISTS \
         (SELECT 1 FROM parked_event e WHERE e.projector = parked_key.projector \
         AND e.part = parked_key.part AND e.event_key = parked_key.event_key)"
    );
    Ok(conn.execute("freeing a parked key", sql, owner.args([key.into()])).await? > 0)
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
