//! What the source says of an outbox table's columns now, and what their values are to be read as.

use tidings_binlog::Charset;
use tidings_event::row::Column;

use super::{connection::Connection, options::OutboxTable, server::quoted};
use crate::{
    Error, Result,
    limits::{RELAY_DEFINITION_LOOK_GAP, RELAY_DEFINITION_LOOKS_MAX},
};

/// A column as `information_schema` describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Described {
    pub(super) column: Column,
    pub(super) reading: Reading,
    /// The word the declared type begins with, in lower case.
    pub(super) data_type: String,
}

/// What is done with the stored bytes of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// They are taken as they are: numbers, times, bytes.
    Plain,
    /// BINARY: the zero bytes that the server strips are put back, up to this many bytes.
    Padded(usize),
    /// Text, encoded like this.
    Text(Charset),
    /// MariaDB's UUID, of which the stored bytes are in another order.
    Uuid,
    /// MariaDB's INET6.
    Inet6,
    /// MariaDB's INET4.
    Inet4,
}

impl Reading {
    fn of(data_type: &str, charset: Option<&str>, column: &Column) -> Self {
        match (data_type, charset) {
            ("uuid", _) => Self::Uuid,
            ("inet6", _) => Self::Inet6,
            ("inet4", _) => Self::Inet4,
            (_, Some(charset)) if charset != "binary" => Self::Text(Charset::of_name(charset)),
            _ => column.binary_length().map_or(Self::Plain, Self::Padded),
        }
    }
}

const COLUMNS: &str = "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, COLUMN_KEY, CHARACTER_SET_NAME \
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";

/// The columns that a table has now, in their order. MariaDB may tell none while somebody else changes the table,
/// as another relay does that makes its trigger, so it is asked again.
///
/// # Errors
/// When the source cannot be reached, or there is no such table.
pub(super) async fn read(connection: &mut Connection, table: &OutboxTable) -> Result<Vec<Described>> {
    for look in 0..RELAY_DEFINITION_LOOKS_MAX {
        if look > 0 {
            tokio::time::sleep(RELAY_DEFINITION_LOOK_GAP).await;
        }
        let rows =
            connection.rows("reading the columns of an outbox table", COLUMNS, (&table.database, &table.name)).await?;
        let described: Option<Vec<_>> = rows.into_iter().map(describe).collect();
        if let Some(columns) = described.filter(|columns| !columns.is_empty()) {
            return Ok(columns);
        }
    }
    Err(Error::RelayStopped {
        reason: format!("the columns of `{}` cannot be read: is the table gone?", table.full_name()),
    })
}

/// What is wrong with the column that tells rows apart and orders them, where the table has it: a number that rises
/// is what lets rows be found again, and read on from one of them.
pub(super) fn wrong_seq(table: &OutboxTable, columns: &[Described]) -> Option<String> {
    const INTEGERS: [&str; 5] = ["tinyint", "smallint", "mediumint", "int", "bigint"];
    let seq = columns.iter().find(|described| described.column.name == table.columns.seq)?;
    if INTEGERS.contains(&seq.data_type.as_str()) {
        return None;
    }
    let (name, column, declared) = (table.full_name(), &seq.column.name, &seq.column.mysql_type);
    Some(format!(
        "the column `{column}` of `{name}`, which is its `seq`, is no integer but `{declared}`: name an integer column \
         that rises with each insert as `seq`, or add one, as in `ALTER TABLE {} ADD COLUMN relay_seq BIGINT NOT NULL \
         AUTO_INCREMENT UNIQUE`",
        quoted(&table.database, &table.name)
    ))
}

fn describe(mut row: mysql_async::Row) -> Option<Described> {
    let mut text = |column: usize| row.take::<Option<String>, usize>(column).flatten();
    let (name, mysql_type, data_type) = (text(0)?, text(1)?, text(2)?.to_ascii_lowercase());
    let (is_nullable, key, charset) = (text(3)?, text(4)?, text(5));
    let mut column = Column::new(name, mysql_type);
    if key == "PRI" {
        column = column.key();
    } else if is_nullable == "NO" {
        column = column.not_null();
    }
    let reading = Reading::of(&data_type, charset.as_deref(), &column);
    Some(Described { column, reading, data_type })
}
