//! The flat message itself.

use std::{borrow::Cow, collections::HashSet};

use serde::{Deserialize, Serialize};

use super::{
    Fields,
    text::{Zone, sql_type, text},
};
use crate::{
    Error,
    row::{Change, Column, Operation, Table, Value},
};

/// What Canal says of the rows of one event, or of one statement. [The module](super) has the members.
///
/// Built from rows it borrows names and texts from them; read from JSON it owns them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlatMessage<'a> {
    // The order of the fields is that of the JSON.
    /// The rows; none for a statement.
    pub data: Option<Vec<Fields<'a, Option<Cow<'a, str>>>>>,
    /// The schema; empty where a statement has none.
    pub database: Cow<'a, str>,
    /// Event time in milliseconds since the Unix epoch.
    pub es: i64,
    /// The GTID. Canal before 1.1.7 did not write it; it is then absent and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid: Option<Cow<'a, str>>,
    /// The number of the batch.
    pub id: i64,
    /// Whether it is a change of definition.
    pub is_ddl: bool,
    /// Column to declared type.
    pub mysql_type: Option<Fields<'a, Cow<'a, str>>>,
    /// Of each row of an UPDATE the columns that changed, as they were.
    pub old: Option<Vec<Fields<'a, Option<Cow<'a, str>>>>>,
    /// The columns of the primary key.
    pub pk_names: Option<Vec<Cow<'a, str>>>,
    /// The text of the statement; empty for rows.
    pub sql: Cow<'a, str>,
    /// Column to number of `java.sql.Types`.
    pub sql_type: Option<Fields<'a, i32>>,
    /// The table.
    pub table: Cow<'a, str>,
    /// When the message was made, in milliseconds since the Unix epoch.
    pub ts: i64,
    /// The [`EventType`] in Canal's words.
    #[serde(rename = "type")]
    pub event_type: Cow<'a, str>,
}

/// What a message tells of its event beyond rows and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The number of the batch. Canal's rises within one run of its server and starts again in the next.
    pub id: i64,
    /// The timestamp in the header of the binlog event, in seconds since the Unix epoch.
    pub event_seconds: u32,
    /// Now, in milliseconds since the Unix epoch.
    pub now_millis: i64,
    /// The GTID as the server prints it, empty where there is none.
    pub gtid: &'a str,
}

/// What happened, in Canal's words (`EntryProtocol.proto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Rows are new.
    Insert,
    /// Rows changed.
    Update,
    /// Rows are gone.
    Delete,
    /// CREATE TABLE.
    Create,
    /// ALTER TABLE.
    Alter,
    /// DROP TABLE.
    Erase,
    /// TRUNCATE TABLE.
    Truncate,
    /// RENAME TABLE.
    Rename,
    /// CREATE INDEX.
    CreateIndex,
    /// DROP INDEX.
    DropIndex,
    /// Any other statement, such as an INSERT that was logged as its text.
    Query,
}

impl EventType {
    /// The word that `type` of the message holds.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Erase => "ERASE",
            Self::Truncate => "TRUNCATE",
            Self::Rename => "RENAME",
            Self::CreateIndex => "CINDEX",
            Self::DropIndex => "DINDEX",
            Self::Query => "QUERY",
        }
    }

    fn is_ddl(self) -> bool {
        !matches!(self, Self::Insert | Self::Update | Self::Delete | Self::Query)
    }
}

impl From<Operation> for EventType {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Insert => Self::Insert,
            Operation::Update => Self::Update,
            Operation::Delete => Self::Delete,
        }
    }
}

impl<'a> FlatMessage<'a> {
    /// The message of one row event.
    ///
    /// Columns that an image does not have are left out, as Canal does. A column counts as changed from
    /// the first row of the event on in which its text differs, in all later rows of the event too: that
    /// is Canal's way (`MQMessageUtils.messageConverter`), and a consumer sees it in `old`. Where rows
    /// differ in the type of a column, `sqlType` has that of the last row.
    pub fn of_rows(
        table: &'a Table,
        operation: Operation,
        changes: &'a [Change<'a>],
        stamp: Stamp<'a>,
        zone: Zone,
    ) -> Self {
        let mut message = Self::bare(&table.database, &table.name, operation.into(), stamp);
        let mut rows = Rows { columns: &table.columns, zone, changed: HashSet::new(), last: Vec::new() };
        let data: Vec<_> = changes.iter().map(|change| rows.row(operation, change)).collect();
        if operation == Operation::Update && !data.is_empty() {
            message.old = Some(changes.iter().map(|change| rows.old(change)).collect());
        }
        let keys = || rows.present().filter(|(column, _)| column.is_key).map(|(column, _)| Cow::from(&column.name));
        let keys: Vec<_> = keys().collect();
        message.pk_names = (!keys.is_empty()).then_some(keys);
        message.mysql_type = fields(rows.present().map(|(column, _)| (&column.name, Cow::from(&column.mysql_type))));
        message.sql_type = fields(rows.present().map(|(column, number)| (&column.name, number)));
        message.data = (!data.is_empty()).then_some(data);
        message
    }

    /// The message of a statement: a change of definition, or one that was logged as its text.
    pub fn of_statement(
        database: &'a str,
        table: &'a str,
        event_type: EventType,
        sql: &'a str,
        stamp: Stamp<'a>,
    ) -> Self {
        Self { sql: sql.into(), ..Self::bare(database, table, event_type, stamp) }
    }

    fn bare(database: &'a str, table: &'a str, event_type: EventType, stamp: Stamp<'a>) -> Self {
        Self {
            data: None,
            database: database.into(),
            es: i64::from(stamp.event_seconds) * 1000,
            gtid: Some(stamp.gtid.into()),
            id: stamp.id,
            is_ddl: event_type.is_ddl(),
            mysql_type: None,
            old: None,
            pk_names: None,
            sql: Cow::Borrowed(""),
            sql_type: None,
            table: table.into(),
            ts: stamp.now_millis,
            event_type: event_type.as_str().into(),
        }
    }

    /// The message as JSON without a line end, the value of the record.
    pub fn to_json(&self) -> Vec<u8> {
        // Most messages have one row, and most outbox rows fit; growing step by step costs a tenth.
        let mut json = Vec::with_capacity(1024);
        #[expect(clippy::expect_used, reason = "texts and numbers under text keys are always JSON")]
        serde_json::to_writer(&mut json, self).expect("a flat message is JSON");
        json
    }

    /// Reads a message. Never panics, whatever the bytes are.
    ///
    /// # Errors
    ///
    /// [`Error::Json`] where the bytes are not a flat message.
    pub fn from_json(bytes: &[u8]) -> Result<FlatMessage<'static>, Error> {
        serde_json::from_slice(bytes).map_err(|source| Error::Json { source })
    }
}

fn fields<'a, T>(entries: impl Iterator<Item = (&'a String, T)>) -> Option<Fields<'a, T>> {
    let entries: Vec<_> = entries.map(|(name, value)| (Cow::from(name), value)).collect();
    (!entries.is_empty()).then_some(Fields(entries))
}

/// The rows of one event as they are turned into texts.
struct Rows<'a> {
    columns: &'a [Column],
    zone: Zone,
    /// The columns that have changed so far.
    changed: HashSet<usize>,
    /// For each column the type of its last value; nothing before there was one.
    last: Vec<Option<i32>>,
}

impl<'a> Rows<'a> {
    fn row(&mut self, operation: Operation, change: &Change<'a>) -> Fields<'a, Option<Cow<'a, str>>> {
        let image = if operation == Operation::Delete { change.before } else { change.after };
        self.last.resize(self.columns.len(), None);
        let mut row = Vec::with_capacity(self.columns.len());
        for ((column, value), last) in self.columns.iter().zip(image).zip(&mut self.last) {
            if *value != Value::Absent {
                *last = Some(sql_type(column, value));
                row.push((Cow::from(&column.name), text(column, value, self.zone)));
            }
        }
        Fields(row)
    }

    /// The columns of a row that changed, as they were before. A column that the image before does not
    /// have counts as changed, and has nothing to show.
    fn old(&mut self, change: &Change<'a>) -> Fields<'a, Option<Cow<'a, str>>> {
        let mut row = Vec::new();
        for (place, (column, after)) in self.columns.iter().zip(change.after).enumerate() {
            let before = change.before.get(place).unwrap_or(&Value::Absent);
            let has_changed = || *before == Value::Absent || !self.is_same_text(column, before, after);
            if *after != Value::Absent && has_changed() {
                self.changed.insert(place);
            }
        }
        for (place, (column, before)) in self.columns.iter().zip(change.before).enumerate() {
            if *before != Value::Absent && self.changed.contains(&place) {
                row.push((Cow::from(&column.name), text(column, before, self.zone)));
            }
        }
        Fields(row)
    }

    fn is_same_text(&self, column: &Column, before: &Value<'_>, after: &Value<'_>) -> bool {
        // Equal values have equal texts, except zeros of different sign; most columns of an update are equal.
        let has_zeros = matches!(after, Value::Float(_) | Value::Double(_));
        (!has_zeros && before == after) || text(column, before, self.zone) == text(column, after, self.zone)
    }

    fn present(&self) -> impl Iterator<Item = (&'a Column, i32)> {
        self.columns.iter().zip(&self.last).filter_map(|(column, last)| Some((column, (*last)?)))
    }
}
