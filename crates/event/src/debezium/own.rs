//! Events of Tidings as rows of an outbox with Debezium's columns.

use std::sync::LazyLock;

use crate::{
    Event,
    row::{Change, Column, Operation, Table, Value},
};

use super::{Record, Routed, Router};
use crate::Error;

/// An event as the row that an outbox made for Debezium would have held.
///
/// | column | holds |
/// |---|---|
/// | `id` | [`Event::id`] as the text of a UUID |
/// | `aggregatetype` | [`Event::family`], by which topics are named |
/// | `aggregateid` | [`Event::key`], the unit of order |
/// | `type` | [`Event::event_type`] |
/// | `payload` | [`Event::payload`], byte for byte |
/// | `timestamp` | [`Event::occurred_at`] in milliseconds |
/// | `aggregate_id`, `aggregate_type`, `version`, `schema_version`, `metadata` | the fields of these names |
///
/// The first five are what the router needs without any option; the others can be placed.
#[derive(Clone, Debug)]
pub struct OwnRow<'a>(Vec<Value<'a>>);

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let columns = [
        ("id", "char(36)"),
        ("aggregatetype", "varchar(255)"),
        ("aggregateid", "varchar(255)"),
        ("type", "varchar(255)"),
        ("payload", "longtext"),
        ("timestamp", "bigint"),
        ("aggregate_type", "varchar(255)"),
        ("aggregate_id", "varchar(255)"),
        ("version", "bigint unsigned"),
        ("schema_version", "int"),
        ("metadata", "longtext"),
    ];
    let columns = columns.map(|(name, mysql_type)| Column::new(name, mysql_type).not_null());
    Table { database: "tidings".to_owned(), name: "outbox".to_owned(), columns: columns.into() }
});

impl<'a> OwnRow<'a> {
    /// The row of an event.
    pub fn new(event: &'a Event) -> Self {
        let text = |text: &'a str| Value::Text(text.into());
        Self(vec![
            Value::Text(event.id.to_string().into()),
            text(event.family()),
            text(&event.key),
            text(&event.event_type),
            text(event.payload.get()),
            Value::Int(event.occurred_at.0),
            text(&event.aggregate_type),
            text(&event.aggregate_id),
            Value::UInt(event.version),
            Value::Int(i64::from(event.schema_version)),
            Value::Text(event.metadata.to_json().into()),
        ])
    }

    /// The table of such rows.
    pub fn table() -> &'static Table {
        &TABLE
    }

    /// The values, in the order of the table's columns.
    pub fn values(&self) -> &[Value<'a>] {
        &self.0
    }
}

impl Router {
    /// Turns an event of Tidings into a record; [`OwnRow`] has the columns.
    ///
    /// # Errors
    ///
    /// [`Error::Column`] where the options speak of columns that [`OwnRow`] does not have.
    pub fn route_event(&self, event: &Event, now_millis: i64) -> Result<Record, Error> {
        let row = OwnRow::new(event);
        match self.route(OwnRow::table(), Operation::Insert, &Change::insert(row.values()), now_millis)? {
            Routed::Record(record) => Ok(record),
            // An insert is neither.
            Routed::Deleted | Routed::Updated(_) => Err(Error::Updated),
        }
    }
}
