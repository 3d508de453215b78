//! The parking lot: where a key waits after one of its events failed.
//!
//! An event that fails is stored here under its key in the transaction that moves the projector's
//! position past it; later events of the key are appended behind it, so their order is kept and no
//! other key waits. Each failed try makes the gap to the next one grow; when the attempts are
//! spent the key is dead and waits for [`redrive`].

use std::collections::HashSet;

use tidings_event::{Timestamp, cloudevents};

use crate::{
    Conn, Error, Result,
    db::{Row, Value},
    limits::{PARKING_ERROR_CHARS_MAX, PARKING_ROUND_BYTES_MAX},
    log::{Offset, Part, Recorded},
    outbox::MalformedEvent,
};

/// The `source` attribute of events stored in the lot.
const EVENT_SOURCE: &str = "/tidings/parking";

/// In a stored event that is none: why.
const UNREADABLE: &str = "unreadable";

const APPEND: &str = "INSERT INTO parked_event (projector, part, event_key, log_offset, occurred_at, event) VALUES";

/// Whose lot: each projector has one on each part of the log, so that whoever owns the part owns the
/// lot, and the offsets in it are of one sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) projector: &'a str,
    pub(crate) part: &'a Part,
}

impl Owner<'_> {
    fn values(self) -> [Value; 2] {
        [self.projector.into(), self.part.to_string().into()]
    }

    fn args<const N: usize>(self, rest: [Value; N]) -> Vec<Value> {
        self.values().into_iter().chain(rest).collect()
    }
}

/// The rows of one lot.
const OWNED: &str = "projector = ? AND part = ?";

/// Whether a parked key is still tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is tried again when its time has come.
    Retrying,
    /// Its attempts are spent; only a redrive tries it again.
    Dead,
}

impl State {
    fn code(self) -> i64 {
        match self {
            Self::Retrying => 0,
            Self::Dead => 1,
        }
    }

    fn from_code(code: i64) -> Result<Self> {
        match code {
            0 => Ok(Self::Retrying),
            1 => Ok(Self::Dead),
            _ => Err(Error::MalformedRow { table: "parked_key", reason: format!("state is {code}") }),
        }
    }
}

/// A key that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedKey {
    /// The projector whose event failed.
    pub projector: String,
    /// The part of the log that the event is in.
    pub part: Part,
    /// The key that waits.
    pub key: String,
    /// Whether it is still tried.
    pub state: State,
    /// Failed tries of the event at its head.
    pub attempts: u32,
    /// When it is tried next; meaningless for a dead key.
    pub next_attempt_at: Timestamp,
    /// The last error and its causes.
    pub error: String,
    /// When the key was parked.
    pub parked_at: Timestamp,
    /// Events that wait, the failed one included.
    pub waiting: u64,
}

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
    let sql = "INSERT INTO parked_key \
               (projector, part, event_key, state, attempts, next_attempt_at, error, parked_at) \
               VALUES (?,?,?,?,1,?,?,?)";
    let args = owner.args([
        failed.event.key.as_str().into(),
        state.code().into(),
        next_attempt_at.unwrap_or(at).0.into(),
        shorten(error).into(),
        at.0.into(),
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
        "INSERT INTO parked_key (projector, part, event_key, state, attempts, next_attempt_at, error, parked_at) \
         VALUES (?,?,?,1,1,?,?,?) {nothing}"
    );
    let key = row.key.as_str();
    let args = owner.args([key.into(), at.0.into(), shorten(&row.reason).into(), at.0.into()]);
    conn.execute("parking a malformed row", sql, args).await?;
    let event = serde_json::json!({ UNREADABLE: row.reason, "columns": row.columns }).to_string();
    let [projector, part] = owner.values();
    let values = [projector, part, key.into(), row.offset.0.into(), at.0.into(), event.into()];
    conn.execute_rows("parking a malformed row", APPEND, vec![values], "").await.map(drop)
}

/// Appends events behind their parked keys.
pub(crate) async fn append(conn: &mut Conn<'_>, owner: Owner<'_>, events: &[Recorded]) -> Result<()> {
    let rows: Vec<[Value; 6]> = events
        .iter()
        .map(|recorded| {
            let event = &recorded.event;
            let stored = cloudevents::json::encode(event, EVENT_SOURCE).unwrap_or_else(|error| {
                // Such an event cannot come out of `emit`; it is kept all the same, and holds up its key only.
                serde_json::json!({ UNREADABLE: Error::chain(&error), "columns": format!("{event:?}") }).to_string()
            });
            let key = event.key.as_str();
            let [projector, part] = owner.values();
            [projector, part, key.into(), recorded.offset.0.into(), event.occurred_at.0.into(), stored.into()]
        })
        .collect();
    conn.execute_rows("parking events", APPEND, rows, "").await.map(drop)
}

/// When a key is due: at its time, or when its time lies so far ahead that the clock must have been
/// set back since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) now: Timestamp,
    /// No key is made to wait beyond this.
    pub(crate) horizon: Timestamp,
}

const IS_DUE: &str = "state = 0 AND (next_attempt_at <= ? OR next_attempt_at > ?)";

/// Keys whose next try is due, the longest waiting first.
pub(crate) async fn due(conn: &mut Conn<'_>, owner: Owner<'_>, due: Due, limit: usize) -> Result<Vec<String>> {
    let sql = format!("SELECT event_key FROM parked_key WHERE {OWNED} AND {IS_DUE} ORDER BY next_attempt_at LIMIT ?");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let args = owner.args([due.now.0.into(), due.horizon.0.into(), limit.into()]);
    conn.fetch("looking for due keys", sql, args).await?.iter().map(|row| row.text(0)).collect()
}

/// What a projector needs to know of its parking lot between two batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lot {
    /// Whether no key is parked.
    pub(crate) is_empty: bool,
    /// When the next try of any key is due.
    pub(crate) next_due: Option<Timestamp>,
}

impl Lot {
    /// Nothing is parked.
    pub(crate) const EMPTY: Self = Self { is_empty: true, next_due: None };
}

/// Looks at the parking lot of a projector.
pub(crate) async fn lot(conn: &mut Conn<'_>, owner: Owner<'_>) -> Result<Lot> {
    let sql = format!(
        "SELECT NOT EXISTS (SELECT 1 FROM parked_key WHERE {OWNED}), \
         (SELECT MIN(next_attempt_at) FROM parked_key WHERE {OWNED} AND state = 0)"
    );
    let args = owner.args(owner.values());
    let row = conn.fetch_optional("looking at the parking lot", sql, args).await?;
    row.map_or(Ok(Lot::default()), |row| {
        Ok(Lot { is_empty: row.int(0)? != 0, next_due: row.int_or_null(1)?.map(Timestamp) })
    })
}

/// What waits under a key, from its head on.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Failed tries of the head.
    pub(crate) attempts: u32,
    /// The first events, in order.
    pub(crate) events: Vec<Recorded>,
    /// Why the event after them cannot be read, if so.
    pub(crate) unreadable: Option<Error>,
}

/// The first events that wait under a key, at most `limit` and some [`PARKING_ROUND_BYTES_MAX`].
/// Nothing when the key is no longer due: somebody else tried it meanwhile.
pub(crate) async fn waiting_if_due(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    due: Due,
    limit: usize,
) -> Result<Option<Waiting>> {
    let sql = format!("SELECT attempts FROM parked_key WHERE {OWNED} AND event_key = ? AND {IS_DUE}");
    let args = owner.args([key.into(), due.now.0.into(), due.horizon.0.into()]);
    let Some(row) = conn.fetch_optional("reading a parked key", sql, args).await? else {
        return Ok(None);
    };
    let attempts = u32::try_from(row.int(0)?).unwrap_or(u32::MAX);
    let sql = format!(
        "SELECT log_offset, event FROM parked_event WHERE {OWNED} AND event_key = ? ORDER BY log_offset LIMIT ?"
    );
    let args = owner.args([key.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()]);
    let mut waiting = Waiting { attempts, events: Vec::new(), unreadable: None };
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

fn read_event(row: &Row) -> Result<Recorded> {
    let event = cloudevents::json::decode(row.text(1)?.as_bytes()).map_err(Error::Event)?;
    Ok(Recorded { offset: Offset(row.int(0)?), event })
}

/// When the oldest event that waits for a projector occurred.
pub(crate) async fn oldest(conn: &mut Conn<'_>, projector: &str) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(occurred_at) FROM parked_event WHERE projector = ?";
    let row = conn.fetch_optional("reading the oldest parked event", sql, vec![projector.into()]).await?;
    row.map_or(Ok(None), |row| row.int_or_null(0)).map(|at| at.map(Timestamp))
}

/// Removes events of a key up to and including `last`, which have been applied; frees the key if
/// none is left, else lets its next event be tried at once with fresh attempts.
pub(crate) async fn remove_applied(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    last: Offset,
    at: Timestamp,
) -> Result<()> {
    let doing = "freeing a parked key";
    let sql = format!("DELETE FROM parked_event WHERE {OWNED} AND event_key = ? AND log_offset <= ?");
    conn.execute(doing, sql, owner.args([key.into(), last.0.into()])).await?;
    let sql = format!("UPDATE parked_key SET attempts = 0, next_attempt_at = ? WHERE {OWNED} AND event_key = ?");
    let [projector, part] = owner.values();
    conn.execute(doing, sql, vec![at.0.into(), projector, part, key.into()]).await?;
    let sql = format!(
        "DELETE FROM parked_key WHERE {OWNED} AND event_key = ? AND NOT EXISTS \
         (SELECT 1 FROM parked_event e WHERE e.projector = parked_key.projector \
         AND e.part = parked_key.part AND e.event_key = parked_key.event_key)"
    );
    conn.execute(doing, sql, owner.args([key.into()])).await.map(drop)
}

/// Notes another failed try of a key's head; without a next time the key is dead.
pub(crate) async fn note_failure(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    attempts: u32,
    error: &str,
    next_attempt_at: Option<Timestamp>,
) -> Result<()> {
    let state = if next_attempt_at.is_some() { State::Retrying } else { State::Dead };
    let sql = format!(
        "UPDATE parked_key SET state = ?, attempts = ?, error = ?, next_attempt_at = COALESCE(?, next_attempt_at) \
         WHERE {OWNED} AND event_key = ?"
    );
    let [projector, part] = owner.values();
    let args = vec![
        state.code().into(),
        i64::from(attempts).into(),
        shorten(error).into(),
        next_attempt_at.map(|at| at.0).into(),
        projector,
        part,
        key.into(),
    ];
    conn.execute("noting a failed try", sql, args).await.map(drop)
}

/// Lets a parked key be tried again at once, with fresh attempts; its events keep their order.
/// Answers whether the key was parked.
pub async fn redrive(mut conn: Conn<'_>, projector: &str, key: &str, at: Timestamp) -> Result<bool> {
    let sql =
        "UPDATE parked_key SET state = 0, attempts = 0, next_attempt_at = ? WHERE projector = ? AND event_key = ?";
    let args = vec![at.0.into(), projector.into(), key.into()];
    Ok(conn.execute("redriving a key", sql, args).await? > 0)
}

/// Parked keys, the longest parked first, at most `limit`.
pub async fn list(mut conn: Conn<'_>, limit: usize) -> Result<Vec<ParkedKey>> {
    let sql = "SELECT projector, part, event_key, state, attempts, next_attempt_at, error, parked_at, \
               (SELECT COUNT(*) FROM parked_event e \
               WHERE e.projector = k.projector AND e.part = k.part AND e.event_key = k.event_key) \
               FROM parked_key k ORDER BY parked_at, projector, event_key LIMIT ?";
    let args = vec![i64::try_from(limit).unwrap_or(i64::MAX).into()];
    let rows = conn.fetch("listing parked keys", sql, args).await?;
    rows.iter().map(read_key).collect()
}

fn read_key(row: &Row) -> Result<ParkedKey> {
    Ok(ParkedKey {
        projector: row.text(0)?,
        part: Part::read(&row.text(1)?, "parked_key")?,
        key: row.text(2)?,
        state: State::from_code(row.int(3)?)?,
        attempts: u32::try_from(row.int(4)?).unwrap_or(u32::MAX),
        next_attempt_at: Timestamp(row.int(5)?),
        error: row.text(6)?,
        parked_at: Timestamp(row.int(7)?),
        waiting: u64::try_from(row.int(8)?).unwrap_or_default(),
    })
}

/// Events that wait for a projector in one part of the log, ordered by key and then as they came, at
/// most `limit`; `after` is the key and offset of the last one had before. Rows that are no events come as `None`.
pub async fn waiting(
    conn: &mut Conn<'_>,
    projector: &str,
    part: &Part,
    after: Option<(&str, Offset)>,
    limit: usize,
) -> Result<Vec<(String, Offset, Option<Recorded>)>> {
    let sql = "SELECT log_offset, event, event_key FROM parked_event \
               WHERE projector = ? AND part = ? AND (event_key > ? OR (event_key = ? AND log_offset > ?)) \
               ORDER BY event_key, log_offset LIMIT ?";
    // Before every other place: no key is smaller than the empty one, and offsets begin at 0.
    let (key, offset) = after.unwrap_or(("", Offset(-1)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let owner = Owner { projector, part };
    let args = owner.args([key.into(), key.into(), offset.0.into(), limit.into()]);
    let rows = conn.fetch("reading parked events", sql, args).await?;
    rows.iter().map(|row| Ok((row.text(2)?, Offset(row.int(0)?), read_event(row).ok()))).collect()
}

/// How many keys of a projector are retrying and how many are dead.
pub async fn count(mut conn: Conn<'_>, projector: &str) -> Result<(i64, i64)> {
    let sql = "SELECT COUNT(CASE state WHEN 0 THEN 1 END), COUNT(CASE state WHEN 1 THEN 1 END) \
               FROM parked_key WHERE projector = ?";
    let row = conn.fetch_optional("counting parked keys", sql, vec![projector.into()]).await?;
    row.map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
}

fn shorten(error: &str) -> String {
    error.chars().take(PARKING_ERROR_CHARS_MAX).collect()
}
