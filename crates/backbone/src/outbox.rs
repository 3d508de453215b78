//! Events, written in the transaction of their fact.
//!
//! An event exists if and only if its fact committed, since both are rows of one transaction.

use std::collections::HashSet;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::value::RawValue;
use tidings_event::{Event, EventId, Metadata, Timestamp, cloudevents};

use crate::{
    Conn, Db, Error, Result,
    audit::first_bytes,
    db::{Row, Value},
    limits::{
        EVENT_METADATA_BYTES_MAX, EVENT_PAYLOAD_BYTES_MAX, EVENT_TEXT_BYTES_MAX, PROJECTOR_BATCH_BYTES_MAX,
        RECONCILE_DIFFERENCES_MAX, RECONCILE_EXAMPLES_MAX, RECONCILE_WINDOW_MARGIN, STATEMENT_ROWS_MAX,
    },
    log::{Extent, Offset, Recorded},
    telemetry, trace,
};

const INSERT: &str = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, \
     aggregate_id, event_key, version, occurred_at, payload, metadata) VALUES";

/// The columns [`read_row`] expects, in its order.
pub(crate) const COLUMNS: &str = "seq, event_id, event_type, schema_version, aggregate_type, \
     aggregate_id, event_key, version, occurred_at, payload, metadata";

/// Writes events to the outbox, in the order given, on the transaction that changes their facts.
///
/// # Errors
/// When an event is one that a reader could not take: a text that is empty, too long or holds a
/// control character, a number or time out of range, a payload or metadata over its limit (see
/// [`crate::limits`]); or when the database refuses. The caller's transaction must then not
/// commit: dropping it rolls the facts back as well.
pub async fn emit(mut conn: Conn<'_>, events: Vec<Event>) -> Result<()> {
    let count = events.len();
    let carried = trace::carried(&events);
    let rows = events.into_iter().map(write_row).collect::<Result<_>>()?;
    conn.execute_rows("writing to the outbox", INSERT, rows, "").await?;
    telemetry::events_emitted(count);
    trace::emitted(carried);
    Ok(())
}

fn write_row(event: Event) -> Result<[Value; 10]> {
    cloudevents::check(&event).map_err(Error::Event)?;
    for text in [&event.event_type, &event.aggregate_type, &event.aggregate_id, &event.key] {
        check_limit("bytes of an event's text", text.len(), EVENT_TEXT_BYTES_MAX)?;
    }
    let metadata = event.metadata.to_json();
    check_limit("bytes of metadata", metadata.len(), EVENT_METADATA_BYTES_MAX)?;
    check_limit("bytes of payload", event.payload.get().len(), EVENT_PAYLOAD_BYTES_MAX)?;
    let version = i64::try_from(event.version)
        .map_err(|_| Error::LimitExceeded { what: "the version of an event", limit: i64::MAX as usize })?;
    Ok([
        event.id.as_bytes().to_vec().into(),
        event.event_type.into(),
        i64::from(event.schema_version).into(),
        event.aggregate_type.into(),
        event.aggregate_id.into(),
        event.key.into(),
        version.into(),
        event.occurred_at.0.into(),
        String::from(Box::<str>::from(event.payload)).into(),
        metadata.into(),
    ])
}

fn check_limit(what: &'static str, found: usize, limit: usize) -> Result<()> {
    if found > limit { Err(Error::LimitExceeded { what, limit }) } else { Ok(()) }
}

/// What a projector reads at once.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Events in order; none where the log ends.
    Events(Vec<Recorded>),
    /// The next row is not an event that was written here.
    Malformed(MalformedEvent),
}

/// A row of the outbox that cannot be read as an event, as far as it can be read.
#[derive(Clone, Debug)]
pub(crate) struct MalformedEvent {
    pub(crate) offset: Offset,
    pub(crate) event_type: String,
    /// Its key as far as it fits, see [`key_that_fits`].
    pub(crate) key: String,
    /// Its columns as JSON texts, for whoever repairs it.
    pub(crate) columns: String,
    pub(crate) reason: String,
}

/// Fails for a key that is longer than any that is emitted: the parking lot would have no room for it.
pub(crate) fn check_key(key: &str) -> Result<()> {
    check_limit("bytes of an event's key", key.len(), EVENT_TEXT_BYTES_MAX)
}

/// The key under which what is no event is parked: its own, or if that is too long its first bytes and a digest, so
/// that different keys stay different.
pub(crate) fn key_that_fits(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    if text.len() <= EVENT_TEXT_BYTES_MAX {
        return text.into_owned();
    }
    let digest = digest(&SHA256, key);
    let digest: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}~{digest}", first_bytes(&text, EVENT_TEXT_BYTES_MAX - 1 - digest.len()))
}

/// Reads events after `after`, in order, at most `limit` and some [`PROJECTOR_BATCH_BYTES_MAX`]. It
/// ends before a malformed row, which is then read alone.
pub(crate) async fn read_batch(conn: &mut Conn<'_>, after: Offset, limit: usize) -> Result<Batch> {
    let sql = format!("SELECT {COLUMNS} FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?");
    let args = vec![after.0.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
    let (mut events, mut malformed, mut bytes) = (Vec::new(), None, 0);
    conn.fetch_while("reading the outbox", sql, args, |row| {
        match read_row(row) {
            Ok(recorded) => {
                bytes += recorded.event.payload.get().len();
                events.push(recorded);
            }
            Err(error) if events.is_empty() => malformed = Some(read_malformed(row, &error)?),
            Err(_) => return Ok(false),
        }
        Ok(malformed.is_none() && bytes < PROJECTOR_BATCH_BYTES_MAX)
    })
    .await?;
    Ok(malformed.map_or(Batch::Events(events), Batch::Malformed))
}

fn read_malformed(row: &Row, error: &Error) -> Result<MalformedEvent> {
    let text = |column: usize| row.bytes(column).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let texts: Vec<Option<String>> = (1..COLUMNS.split(',').count()).map(|column| text(column).ok()).collect();
    Ok(MalformedEvent {
        offset: Offset(row.int(0)?),
        event_type: text(2).unwrap_or_default(),
        key: key_that_fits(&row.bytes(6).unwrap_or_default()),
        columns: serde_json::to_string(&texts).map_err(Error::json("keeping a malformed row"))?,
        reason: Error::chain(error),
    })
}

/// Reads events after `after`, in commit order, at most `limit`; none only where the log ends. Rows
/// that are no events are passed over: whoever applies events parks them, with what is wrong.
pub(crate) async fn read_after(conn: &mut Conn<'_>, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
    let sql = format!("SELECT {COLUMNS} FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?");
    let rows_max = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut events, mut after) = (Vec::new(), after);
    while events.len() < limit {
        let rows = conn.fetch("reading the outbox", sql.clone(), vec![after.0.into(), rows_max.into()]).await?;
        let Some(last) = rows.last() else { break };
        after = Offset(last.int(0)?);
        let is_end = rows.len() < limit;
        events.extend(rows.iter().filter_map(|row| read_row(row).ok()));
        if is_end {
            break;
        }
    }
    events.truncate(limit);
    Ok(events)
}

/// Reads the event with this id, if it is still there.
pub(crate) async fn find(conn: &mut Conn<'_>, id: EventId) -> Result<Option<Recorded>> {
    let sql = format!("SELECT {COLUMNS} FROM outbox WHERE event_id = ?");
    let row = conn.fetch_optional("looking for an event", sql, vec![id.as_bytes().to_vec().into()]).await?;
    row.map(|row| read_row(&row)).transpose()
}

/// Reads one row of [`COLUMNS`].
pub(crate) fn read_row(row: &Row) -> Result<Recorded> {
    let id: [u8; 16] = row.bytes(1)?.try_into().map_err(|_| malformed("event_id is not 16 bytes".to_owned()))?;
    let payload = RawValue::from_string(row.text(9)?).map_err(Error::json("reading a payload"))?;
    let number = |column: usize| -> Result<u64> {
        u64::try_from(row.int(column)?).map_err(|_| malformed(format!("column {column} is negative")))
    };
    let event = Event {
        id: EventId::from_bytes(id),
        event_type: row.text(2)?,
        schema_version: u32::try_from(number(3)?)
            .map_err(|_| malformed("schema_version is out of range".to_owned()))?,
        aggregate_type: row.text(4)?,
        aggregate_id: row.text(5)?,
        key: row.text(6)?,
        version: number(7)?,
        occurred_at: Timestamp(row.int(8)?),
        payload,
        metadata: Metadata::from_json(&row.text(10)?).map_err(Error::Event)?,
    };
    cloudevents::check(&event).map_err(Error::Event)?;
    check_key(&event.key)?;
    Ok(Recorded { offset: Offset(row.int(0)?), event })
}

fn malformed(reason: String) -> Error {
    Error::MalformedRow { table: "outbox", reason }
}

/// Where to read on from to see every event that occurred at `at` or later, and not all before them: times rise with
/// the numbers, but for some minutes. Found by halving, since there is no index on the time.
pub(crate) async fn first_since(db: &Db, at: Timestamp) -> Result<i64> {
    let margin = i64::try_from(RECONCILE_WINDOW_MARGIN.as_millis()).unwrap_or(i64::MAX);
    let at = at.0.saturating_sub(margin);
    let mut tx = db.glance().await?;
    let Extent { earliest, head } = crate::log::extent(&mut tx.conn()).await?;
    let (mut low, mut high) = (earliest.0, head.0 + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let sql = "SELECT occurred_at FROM outbox WHERE seq >= ? ORDER BY seq LIMIT 1";
        let row = tx.conn().fetch_optional("looking for a moment", sql, vec![middle.into()]).await?;
        let is_later = row.map_or(Ok(true), |row| row.int(0).map(|occurred| occurred >= at))?;
        if is_later { high = middle } else { low = middle }
    }
    Ok(low)
}

/// Events that occurred before a time and are not in the log: how many, and the first of them.
#[derive(Debug, Default)]
pub(crate) struct Old {
    pub(crate) count: i64,
    pub(crate) first: Vec<(String, Timestamp)>,
}

/// Looks for events after `after` that occurred before `late`, as far as counting them is cheap.
pub(crate) async fn old_after(conn: &mut Conn<'_>, after: Offset, late: Timestamp) -> Result<Old> {
    let rows_max = i64::try_from(RECONCILE_DIFFERENCES_MAX).unwrap_or(i64::MAX);
    let examples_max = i64::try_from(RECONCILE_EXAMPLES_MAX).unwrap_or(i64::MAX);
    let doing = "counting old events";
    let sql = "SELECT COUNT(*) FROM (SELECT seq, occurred_at FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?) AS first \
               WHERE occurred_at < ?";
    let row = conn.fetch_optional(doing, sql, vec![after.0.into(), rows_max.into(), late.0.into()]).await?;
    let count = row.map_or(Ok(0), |row| row.int(0))?;
    let sql = "SELECT event_id, occurred_at FROM outbox WHERE seq > ? AND occurred_at < ? ORDER BY seq LIMIT ?";
    let args = vec![after.0.into(), late.0.into(), examples_max.into()];
    let rows = if count > 0 { conn.fetch(doing, sql, args).await? } else { Vec::new() };
    Ok(Old { count, first: old(&rows)? })
}

/// Reads rows of an event's id and its time.
pub(crate) fn old(rows: &[Row]) -> Result<Vec<(String, Timestamp)>> {
    rows.iter().map(|row| Ok((id_text(&row.bytes(0)?), Timestamp(row.int(1)?)))).collect()
}

/// An event's id as people write it; other bytes as they are.
pub(crate) fn id_text(bytes: &[u8]) -> String {
    let id: Result<[u8; 16], _> = bytes.try_into();
    id.map_or_else(|_| format!("{bytes:02x?}"), |id| EventId::from_bytes(id).to_string())
}

/// Which of these ids are of events that the outbox holds.
pub(crate) async fn having(db: &Db, ids: Vec<Vec<u8>>) -> Result<HashSet<Vec<u8>>> {
    let mut found = HashSet::new();
    let mut tx = db.glance().await?;
    for part in ids.chunks(STATEMENT_ROWS_MAX) {
        let places = vec!["?"; part.len()].join(",");
        let sql = format!("SELECT event_id FROM outbox WHERE event_id IN ({places})");
        let args = part.iter().map(|id| id.clone().into()).collect();
        for row in tx.conn().fetch("looking for events", sql, args).await? {
            found.insert(row.bytes(0)?);
        }
    }
    Ok(found)
}

/// Number and time of the first event that the outbox holds.
pub(crate) async fn first(db: &Db) -> Result<Option<(Offset, Timestamp)>> {
    let mut tx = db.glance().await?;
    let sql = "SELECT seq, occurred_at FROM outbox ORDER BY seq LIMIT 1";
    let row = tx.conn().fetch_optional("reading the first event", sql, Vec::new()).await?;
    row.map(|row| Ok((Offset(row.int(0)?), Timestamp(row.int(1)?)))).transpose()
}
