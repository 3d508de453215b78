//! Rows into records, each format with an event of our own and with a stranger's row.

mod canal;
mod cloudevents;
mod debezium;
mod pages;
mod refused;
mod routes;

use tidings_backbone::{
    Clock,
    relay::{Changes, ColumnNames, DeadLetter, Formatter, Parked, Record, Route, Table},
};
use tidings_event::{
    Event, EventId, Metadata, Timestamp,
    row::{self, Change, Column, Operation, Value},
};

const NOW: Timestamp = Timestamp(1_795_965_977_500);

/// A formatter and what it has made.
struct Press {
    formatter: Formatter,
    parked: Parked,
    records: Vec<Record>,
    dead: Vec<DeadLetter>,
}

impl Press {
    fn new(routes: &str) -> Self {
        let routes: Vec<Route> = serde_json::from_str(routes).unwrap();
        let formatter = Formatter::new(&routes, "tidings", Clock::manual(NOW), 4_000).unwrap();
        Self { formatter, parked: Parked::default(), records: Vec::new(), dead: Vec::new() }
    }

    fn push(&mut self, table: &Table, operation: Operation, rows: &[Change<'_>]) {
        self.try_push(table, operation, rows).unwrap();
    }

    fn try_push(&mut self, table: &Table, operation: Operation, rows: &[Change<'_>]) -> tidings_backbone::Result<()> {
        let changes = Changes {
            table,
            operation,
            rows,
            event_seconds: 1_795_965_977,
            gtid: "0-1-7",
            file: "binlog.000001",
            position: 1_234,
            server_id: 1,
        };
        self.formatter.push(&changes, &mut self.parked, &mut self.records, &mut self.dead)
    }

    fn insert(&mut self, table: &Table, rows: &[Vec<Value<'_>>]) {
        let rows: Vec<Change<'_>> = rows.iter().map(|row| Change::insert(row)).collect();
        self.push(table, Operation::Insert, &rows);
    }

    fn ids(&self) -> Vec<&str> {
        self.records.iter().map(|record| &*record.event_id).collect()
    }
}

/// Tidings' own outbox, as MariaDB prints its columns.
fn own_table() -> Table {
    let columns = [
        Column::new("seq", "bigint(20)").key(),
        Column::new("event_id", "binary(16)"),
        Column::new("event_type", "varchar(255)"),
        Column::new("schema_version", "bigint(20)"),
        Column::new("aggregate_type", "varchar(255)"),
        Column::new("aggregate_id", "varchar(255)"),
        Column::new("event_key", "varchar(255)"),
        Column::new("version", "bigint(20)"),
        Column::new("occurred_at", "bigint(20)"),
        Column::new("payload", "longtext"),
        Column::new("metadata", "longtext"),
    ];
    table("tidings", "outbox", columns.into(), &ColumnNames::default())
}

fn table(database: &str, name: &str, columns: Vec<Column>, names: &ColumnNames) -> Table {
    Table::new(row::Table { database: database.to_owned(), name: name.to_owned(), columns }, names)
}

/// The event with this number of this key.
fn event(key: &str, number: u8) -> Event {
    Event {
        id: EventId::from_parts(Timestamp(1_795_965_977_123), &[number; 10]),
        event_type: "thing.made".to_owned(),
        schema_version: 1,
        aggregate_type: "thing".to_owned(),
        aggregate_id: format!("{key}:{number}"),
        key: key.to_owned(),
        version: 3,
        occurred_at: Timestamp(1_795_965_977_123),
        payload: serde_json::value::RawValue::from_string(r#"{"text": "naïve \ud83d\ude00 😀", "n": 1.50}"#.to_owned())
            .unwrap(),
        metadata: Metadata { request_id: Some("r-1".to_owned()), ..Metadata::default() },
    }
}

/// The row of an event in our own outbox; the binlog leaves out zeros at the end of its id.
fn own_row(event: &Event) -> Vec<Value<'static>> {
    let text = |text: &str| Value::Text(text.to_owned().into());
    let mut id = event.id.as_bytes().to_vec();
    while id.last() == Some(&0) {
        id.pop();
    }
    vec![
        Value::Int(7),
        Value::Bytes(id.into()),
        text(&event.event_type),
        Value::Int(i64::from(event.schema_version)),
        text(&event.aggregate_type),
        text(&event.aggregate_id),
        text(&event.key),
        Value::Int(i64::try_from(event.version).unwrap()),
        Value::Int(event.occurred_at.0),
        text(event.payload.get()),
        text(&event.metadata.to_json()),
    ]
}

/// The columns of a stranger's outbox.
fn shop_names() -> ColumnNames {
    ColumnNames {
        seq: "id".to_owned(),
        event_id: "id".to_owned(),
        event_type: "type".to_owned(),
        aggregate_type: "aggregatetype".to_owned(),
        aggregate_id: "aggregateid".to_owned(),
        event_key: "aggregateid".to_owned(),
        occurred_at: "created_at".to_owned(),
        ..ColumnNames::default()
    }
}

fn shop_table() -> Table {
    let columns = [
        Column::new("id", "bigint(20) unsigned").key(),
        Column::new("aggregatetype", "varchar(255)"),
        Column::new("aggregateid", "varchar(255)"),
        Column::new("type", "varchar(255)"),
        Column::new("payload", "json"),
        Column::new("created_at", "datetime(6)"),
        Column::new("tenant", "int(11)"),
    ];
    table("shop", "outbox", columns.into(), &shop_names())
}

fn shop_row(id: u64, key: &str, payload: Option<&str>) -> Vec<Value<'static>> {
    let text = |text: &str| Value::Text(text.to_owned().into());
    vec![
        Value::UInt(id),
        text("Order"),
        text(key),
        text("OrderPlaced"),
        payload.map_or(Value::Null, |payload| Value::Json(payload.to_owned().into())),
        Value::DateTime(row::DateTime {
            date: row::Date { year: 2026, month: 11, day: 29 },
            hours: 15,
            minutes: 26,
            seconds: 17,
            micros: 123_456,
        }),
        Value::Int(-5),
    ]
}

fn value(record: &Record) -> &str {
    std::str::from_utf8(record.value.as_ref().unwrap()).unwrap()
}
