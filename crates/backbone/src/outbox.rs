//! Events, written in the transaction of their fact.
//!
//! An event exists if and only if its fact committed, since both are rows of one transaction.

use serde_json::value::RawValue;
use tidings_event::{Event, EventId, Metadata, Timestamp};

use crate::{
    Conn, Error, Result,
    db::{Row, Value},
    limits::EVENT_PAYLOAD_BYTES_MAX,
    log::{Offset, Recorded},
    telemetry,
};

const INSERT: &str = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, \
     aggregate_id, event_key, version, occurred_at, payload, metadata) VALUES";

/// The columns [`read_row`] expects, in its order.
pub(crate) const COLUMNS: &str = "seq, event_id, event_type, schema_version, aggregate_type, \
     aggregate_id, event_key, version, occurred_at, payload, metadata";

/// Writes events to the outbox, in the order given, on the transaction that changes their facts.
///
/// # Errors
/// When a payload exceeds [`EVENT_PAYLOAD_BYTES_MAX`] or the database refuses. The caller's
/// transaction must then not commit: dropping it rolls the facts back as well.
pub async fn emit(mut conn: Conn<'_>, events: Vec<Event>) -> Result<()> {
    if let Some(event) = events.iter().find(|event| event.payload.get().len() > EVENT_PAYLOAD_BYTES_MAX) {
        tracing::error!(event_type = event.event_type, "an event's payload is too large");
        return Err(Error::LimitExceeded { what: "payload bytes", limit: EVENT_PAYLOAD_BYTES_MAX });
    }
    let count = events.len();
    let rows = events.into_iter().map(write_row).collect();
    conn.execute_rows("writing to the outbox", INSERT, rows, "").await?;
    telemetry::events_emitted(count);
    Ok(())
}

fn write_row(event: Event) -> [Value; 10] {
    let version = i64::try_from(event.version).unwrap_or(i64::MAX);
    [
        event.id.as_bytes().to_vec().into(),
        event.event_type.into(),
        i64::from(event.schema_version).into(),
        event.aggregate_type.into(),
        event.aggregate_id.into(),
        event.key.into(),
        version.into(),
        event.occurred_at.0.into(),
        String::from(Box::<str>::from(event.payload)).into(),
        event.metadata.to_json().into(),
    ]
}

/// Reads events after `after`, in commit order, at most `limit`.
pub(crate) async fn read_after(conn: &mut Conn<'_>, after: Offset, limit: usize) -> Result<Vec<Recorded>> {
    let sql = format!("SELECT {COLUMNS} FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?");
    let args = vec![after.0.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
    conn.fetch("reading the outbox", sql, args).await?.iter().map(read_row).collect()
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
    Ok(Recorded {
        offset: Offset(row.int(0)?),
        event: Event {
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
        },
    })
}

fn malformed(reason: String) -> Error {
    Error::MalformedRow { table: "outbox", reason }
}
