//! What can be looked at: keys, the events that wait under one, and counts.

use serde::{Deserialize, Serialize};
use tidings_event::{Timestamp, cloudevents};

use super::{Filter, Owner, State, lot::read_event, moment};
use crate::{
    Conn, Result,
    db::{Engine, Row, Value},
    limits::PARKING_LOOK_BYTES_MAX,
    log::{Offset, Part, Recorded},
    projector::generation,
};

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
    /// When it last died, if it did.
    pub died_at: Option<Timestamp>,
    /// The id of the event at its head, unless that is none.
    pub event_id: Option<String>,
    /// The type of the event at its head; empty if that is none.
    pub event_type: String,
    /// Events that wait, the failed one included.
    pub waiting: u64,
}

/// Where a list of keys goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When the last key had was parked.
    pub parked_at: Timestamp,
    /// Its projector.
    pub projector: String,
    /// Its part of the log.
    pub part: Part,
    /// The key itself.
    pub key: String,
}

impl ParkedKey {
    /// The mark of a list that ends with this key.
    pub fn mark(&self) -> Mark {
        let Self { parked_at, projector, part, key, .. } = self.clone();
        Mark { parked_at, projector, part, key }
    }
}

/// How many events wait under `parked_key k`.
pub(super) fn count_waiting(engine: Engine) -> String {
    // Without a look at the events themselves, which may be large.
    let by_key = engine.by_index("parked_event_key");
    format!(
        "(SELECT COUNT(*) FROM parked_event e {by_key} \
         WHERE e.projector = k.projector AND e.part = k.part AND e.event_key = k.event_key)"
    )
}

/// Keys `k` with their heads `h`, for this filter.
pub(super) fn keys(engine: Engine, filter: &Filter) -> String {
    let by_key = engine.by_primary_key();
    let by_name = if filter.names_one() { engine.by_index("parked_key_key") } else { String::new() };
    format!(
        "parked_key k {by_name} LEFT JOIN parked_event h {by_key} \
         ON h.projector = k.projector AND h.part = k.part AND h.event_key = k.event_key AND h.log_offset = \
         (SELECT MIN(e.log_offset) FROM parked_event e {by_key} \
         WHERE e.projector = k.projector AND e.part = k.part AND e.event_key = k.event_key)"
    )
}

/// The order of every list of keys: the longest parked first.
pub(super) const ORDER: &str = "k.parked_at, k.projector, k.part, k.event_key";

/// Parked keys that a filter chooses, the longest parked first, at most `limit`; `after` is the mark of the
/// last one had before.
pub async fn list(mut conn: Conn<'_>, filter: &Filter, after: Option<&Mark>, limit: usize) -> Result<Vec<ParkedKey>> {
    let (mut condition, mut args) = filter.meant(&mut conn).await?.condition();
    if let Some(Mark { parked_at, projector, part, key }) = after {
        condition.push_str(
            " AND k.parked_at >= ? AND (k.parked_at > ? OR k.projector > ? OR (k.projector = ? AND \
             (k.part > ? OR (k.part = ? AND k.event_key > ?))))",
        );
        let (at, part) = (Value::from(parked_at.0), Value::from(part.to_string()));
        let projector = Value::from(projector.as_str());
        args.extend([at.clone(), at, projector.clone(), projector, part.clone(), part, key.as_str().into()]);
    }
    let (keys, count_waiting) = (keys(conn.engine(), filter), count_waiting(conn.engine()));
    let sql = format!(
        "SELECT k.projector, k.part, k.event_key, k.state, k.attempts, k.next_attempt_at, k.error, k.parked_at, \
         k.died_at, h.event_id, h.event_type, {count_waiting} FROM {keys} WHERE {condition} ORDER BY {ORDER} LIMIT ?"
    );
    args.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
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
        died_at: row.int_or_null(8).map(moment)?,
        event_id: row.text_or_null(9)?,
        event_type: row.text_or_null(10)?.unwrap_or_default(),
        waiting: u64::try_from(row.int(11)?).unwrap_or_default(),
    })
}

/// An event that waits under a parked key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingEvent {
    /// The part of the log it is in.
    pub part: Part,
    /// Where it stands there.
    pub offset: Offset,
    /// Its id, unless it is no event.
    pub event_id: Option<String>,
    /// Its type; empty if it is none that could be told.
    pub event_type: String,
    /// When it occurred; of what is no event, when it was parked.
    pub occurred_at: Timestamp,
    /// The event whole, as CloudEvents JSON. Of what is no event, an object that says why (`unreadable`) and
    /// what could be read of it (`columns`).
    pub event: String,
}

impl WaitingEvent {
    /// Whether it is an event, and not a row that could not be read as one.
    pub fn is_event(&self) -> bool {
        cloudevents::json::decode(self.event.as_bytes()).is_ok()
    }
}

pub(super) const EVENT_COLUMNS: &str = "part, log_offset, event_id, event_type, occurred_at, event";

/// The events that wait under a key, as they will be applied, at most `limit` and some
/// [`PARKING_LOOK_BYTES_MAX`]; `after` is the place of the last one had before. Answers too whether there are more.
pub async fn events(
    mut conn: Conn<'_>,
    projector: &str,
    key: &str,
    after: Option<(&Part, Offset)>,
    limit: usize,
) -> Result<(Vec<WaitingEvent>, bool)> {
    let projector = generation::meant(&mut conn, projector).await?;
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM parked_event {} WHERE projector = ? AND event_key = ? \
         AND part >= ? AND (part > ? OR log_offset > ?) ORDER BY part, log_offset LIMIT ?",
        conn.engine().by_index("parked_event_key")
    );
    let (part, offset) = after.map_or((String::new(), -1), |(part, offset)| (part.to_string(), offset.0));
    let rows_max = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let args = vec![projector.into(), key.into(), part.as_str().into(), part.into(), offset.into(), rows_max.into()];
    let (mut found, mut bytes, mut more) = (Vec::new(), 0, false);
    conn.fetch_while("reading parked events", sql, args, |row| {
        more = found.len() == limit || bytes >= PARKING_LOOK_BYTES_MAX;
        if !more {
            let event = read_waiting(row)?;
            bytes += event.event.len();
            found.push(event);
        }
        Ok(!more)
    })
    .await?;
    Ok((found, more))
}

pub(super) fn read_waiting(row: &Row) -> Result<WaitingEvent> {
    Ok(WaitingEvent {
        part: Part::read(&row.text(0)?, "parked_event")?,
        offset: Offset(row.int(1)?),
        event_id: row.text_or_null(2)?,
        event_type: row.text(3)?,
        occurred_at: Timestamp(row.int(4)?),
        event: row.text(5)?,
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

/// When the oldest event that waits for a projector occurred.
pub(crate) async fn oldest(conn: &mut Conn<'_>, projector: &str) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(occurred_at) FROM parked_event WHERE projector = ?";
    let row = conn.fetch_optional("reading the oldest parked event", sql, vec![projector.into()]).await?;
    row.map_or(Ok(None), |row| row.int_or_null(0)).map(moment)
}

/// How many keys of a projector are parked, by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that are tried again by themselves.
    pub retrying: i64,
    /// Those that are tried because they were redriven.
    pub redriving: i64,
    /// Those that wait for an operator.
    pub dead: i64,
}

impl Counts {
    /// Those that are tried again, by whosever wish.
    pub fn tried(self) -> i64 {
        self.retrying + self.redriving
    }
}

/// Counts the parked keys of a projector.
pub async fn count(mut conn: Conn<'_>, projector: &str) -> Result<Counts> {
    let sql = "SELECT COUNT(CASE WHEN state = 0 THEN 1 END), COUNT(CASE WHEN state = 2 THEN 1 END), \
               COUNT(CASE WHEN state = 1 THEN 1 END) FROM parked_key WHERE projector = ?";
    let row = conn.fetch_optional("counting parked keys", sql, vec![projector.into()]).await?;
    row.map_or(Ok(Counts::default()), |row| {
        Ok(Counts { retrying: row.int(0)?, redriving: row.int(1)?, dead: row.int(2)? })
    })
}
