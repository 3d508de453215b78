//! A row as a dead letter.

use serde_json::{Map, Value as Json, json};
use tidings_event::{canal, row::Value};

use super::columns::{Row, padded};
use crate::relay::{
    Changes, DeadLetter,
    dead_letter::{Source, readable, shortened},
};

/// The letter of a row, with all that can be read of it.
pub(super) fn letter(changes: &Changes<'_>, row: &Row<'_>, key: &str, reason: String) -> DeadLetter {
    let table = &changes.table.definition;
    let columns = row.columns.iter().zip(row.values).filter(|(_, value)| **value != Value::Absent);
    let columns = columns.map(|(column, value)| {
        let json = match value {
            Value::Int(number) if !column.is_unsigned() => json!(number),
            Value::UInt(number) => json!(number),
            Value::Float(number) => json!(number),
            Value::Double(number) => json!(number),
            Value::Bytes(bytes) => readable(&padded(column, bytes)),
            Value::Geometry(bytes) => readable(bytes),
            _ => canal::text(column, value, canal::Zone::default())
                .map_or(Json::Null, |text| shortened(&text).into_owned().into()),
        };
        (column.name.clone(), json)
    });
    DeadLetter {
        reason,
        origin: format!("{}.{}", table.database, table.name),
        key: (!key.is_empty()).then(|| key.to_owned()),
        event_id: row.text(changes.table.places.event_id).map(|id| id.into_owned()),
        source: (!changes.file.is_empty()).then(|| Source {
            gtid: changes.gtid.to_owned(),
            file: changes.file.to_owned(),
            position: changes.position,
            event_seconds: changes.event_seconds,
        }),
        row: columns.collect::<Map<_, _>>(),
    }
}
