//! The outbox tables as their table maps describe them, with what only the database itself can tell.

use std::{collections::HashMap, sync::Arc};

use tidings_binlog::{Charset, ColumnSchema, ColumnType, Decoder};
use tidings_event::row;

use crate::{
    Error, Result,
    relay::{
        Table,
        connection::{Address, Connection},
        definition::{self, Described, Reading},
        options::OutboxTable,
    },
};

/// An outbox table as one of its table maps describes it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) table: Table,
    /// How each column is read.
    pub(super) readings: Vec<Reading>,
    /// Its place in the options.
    pub(super) index: usize,
}

/// The outbox tables of a stream.
#[derive(Debug)]
pub(super) struct Tables {
    address: Address,
    connection: Option<Connection>,
    outboxes: Arc<[OutboxTable]>,
    /// By the table that the decoder has: it keeps one for each definition.
    known: HashMap<u64, (Arc<tidings_binlog::Table>, Arc<Known>)>,
}

impl Tables {
    pub(super) fn new(address: Address, outboxes: Arc<[OutboxTable]>) -> Self {
        Self { address, connection: None, outboxes, known: HashMap::new() }
    }

    /// Makes sure that rows of this table can be read, if it is an outbox; tells the decoder what it
    /// needs for that.
    ///
    /// # Errors
    /// The source cannot be reached, or nobody can tell which column is which.
    pub(super) async fn meet(&mut self, table: &Arc<tidings_binlog::Table>, decoder: &mut Decoder) -> Result<()> {
        let is_it = |outbox: &OutboxTable| outbox.name == **table.name() && outbox.database == **table.schema();
        let Some(index) = self.outboxes.iter().position(is_it) else { return Ok(()) };
        // The decoder gives the very same table as long as the table maps say the same.
        if self.known.get(&table.id()).is_some_and(|(former, _)| Arc::ptr_eq(former, table)) {
            return Ok(());
        }
        let outbox = &self.outboxes[index];
        let now = read_columns(&self.address, &mut self.connection, outbox).await?;
        let columns = align(table, &now).ok_or_else(|| Error::RelayStopped {
            reason: format!(
                "`{}` was altered since its rows were written, and nothing tells which column is which: run \
                 `SET GLOBAL binlog_row_metadata = 'FULL'` before altering an outbox table",
                outbox.full_name()
            ),
        })?;
        let described = describe(table, &columns)?;
        let known = Known {
            table: Table::new(
                row::Table {
                    database: outbox.database.clone(),
                    name: outbox.name.clone(),
                    columns: columns.iter().map(|column| column.column.clone()).collect(),
                },
                &outbox.columns,
            ),
            readings: table.columns().iter().zip(&columns).map(|(told, column)| reading(told, column)).collect(),
            index,
        };
        decoder.describe(described.clone());
        self.known.insert(table.id(), (described, Arc::new(known)));
        Ok(())
    }

    /// The outbox that rows belong to, if it is one.
    pub(super) fn outbox(&self, table: &Arc<tidings_binlog::Table>) -> Option<Arc<Known>> {
        let (_, known) = self.known.get(&table.id()).filter(|(described, _)| Arc::ptr_eq(described, table))?;
        Some(known.clone())
    }
}

/// The columns that the table has now. A connection that broke meanwhile is replaced once.
async fn read_columns(
    address: &Address,
    kept: &mut Option<Connection>,
    outbox: &OutboxTable,
) -> Result<Vec<Described>> {
    if let Some(connection) = kept {
        match definition::read(connection, outbox).await {
            Err(error) if error.is_transient() => *kept = None,
            read => return read,
        }
    }
    let connection = kept.insert(address.connect().await?);
    definition::read(connection, outbox).await
}

/// For each column of the table map what the database says of it now; nothing if that is not certain.
fn align(table: &tidings_binlog::Table, now: &[Described]) -> Option<Vec<Described>> {
    if table.columns().iter().all(|column| column.name.is_some()) {
        let named = table.columns().iter().map(|column| {
            let name = column.name.as_deref().unwrap_or_default();
            let same = |described: &&Described| described.column.name == name && fits(column, described);
            now.iter().find(same).cloned().unwrap_or_else(|| gone(name.to_owned(), column))
        });
        return Some(named.collect());
    }
    let (old, len) = (table.columns(), now.len());
    if old.len() == len {
        return old.iter().zip(now).all(|(column, described)| fits(column, described)).then(|| now.to_vec());
    }
    match old.len() < len {
        // Columns were added since: leave out those, if there is one way alone to do it.
        true => {
            let chosen = only_embedding(old.len(), len, |old_at, new_at| fits(&old[old_at], &now[new_at]))?;
            Some(chosen.into_iter().map(|at| now[at].clone()).collect())
        }
        // Columns were dropped since: those have no name any more.
        false => {
            let chosen = only_embedding(len, old.len(), |new_at, old_at| fits(&old[old_at], &now[new_at]))?;
            let mut kept = chosen.iter().zip(now).peekable();
            let column =
                |(at, column): (usize, &tidings_binlog::Column)| match kept.next_if(|(kept_at, _)| **kept_at == at) {
                    Some((_, described)) => described.clone(),
                    None => gone(format!("@{}", at + 1), column),
                };
            Some(old.iter().enumerate().map(column).collect())
        }
    }
}

/// The only way in which `few` things in order fit some of `many` things in order; nothing if there is
/// none, or more than one.
fn only_embedding(few: usize, many: usize, fits: impl Fn(usize, usize) -> bool) -> Option<Vec<usize>> {
    let mut first = Vec::with_capacity(few);
    let mut at = 0;
    for thing in 0..few {
        at = (at..many).find(|at| fits(thing, *at))?;
        first.push(at);
        at += 1;
    }
    // The one that fits as early as possible is the only one if it also fits as late as possible.
    let mut end = many;
    for thing in (0..few).rev() {
        end = (0..end).rev().find(|at| fits(thing, *at))?;
        if first[thing] != end {
            return None;
        }
    }
    Some(first)
}

/// How the values of a column are read. How its texts were encoded when the rows were written is told by
/// the table map, if it tells.
fn reading(told: &tidings_binlog::Column, described: &Described) -> Reading {
    match (described.reading, told.charset) {
        (Reading::Text(_), Some(charset)) if charset != Charset::Binary => Reading::Text(charset),
        (reading, _) => reading,
    }
}

/// A column that the table does not have any more, as far as the binlog tells of it.
fn gone(name: String, column: &tidings_binlog::Column) -> Described {
    let unsigned = if column.unsigned == Some(true) { " unsigned" } else { "" };
    let data_type = data_types(column.kind).first().copied().unwrap_or("blob");
    let reading = match column.charset {
        Some(charset) if charset != Charset::Binary => Reading::Text(charset),
        _ => Reading::Plain,
    };
    Described {
        column: row::Column::new(name, format!("{data_type}{unsigned}")),
        reading,
        data_type: data_type.to_owned(),
    }
}

/// Whether a column of the binlog can be what the database describes.
fn fits(column: &tidings_binlog::Column, described: &Described) -> bool {
    let is_type = data_types(column.kind).contains(&described.data_type.as_str());
    // A YEAR is unsigned for the binlog, and is never declared so.
    let has_sign = column.kind != ColumnType::Year;
    let is_sign = !has_sign || column.unsigned.is_none_or(|unsigned| unsigned == described.column.is_unsigned());
    is_type && is_sign
}

/// The words that a declared type with this stored form can begin with; its usual one first.
fn data_types(kind: ColumnType) -> &'static [&'static str] {
    match kind {
        ColumnType::TinyInt => &["tinyint"],
        ColumnType::SmallInt => &["smallint"],
        ColumnType::MediumInt => &["mediumint"],
        ColumnType::Int => &["int"],
        ColumnType::BigInt => &["bigint"],
        ColumnType::Float => &["float"],
        ColumnType::Double => &["double"],
        ColumnType::Decimal { .. } => &["decimal"],
        ColumnType::Bit { .. } => &["bit"],
        ColumnType::Year => &["year"],
        ColumnType::Date => &["date"],
        ColumnType::Time { .. } | ColumnType::OldTime => &["time"],
        ColumnType::DateTime { .. } | ColumnType::OldDateTime => &["datetime"],
        ColumnType::Timestamp { .. } | ColumnType::OldTimestamp => &["timestamp"],
        ColumnType::Char { .. } => &["char", "binary", "uuid", "inet6", "inet4"],
        ColumnType::VarChar { .. } | ColumnType::CompressedVarChar { .. } => &["varchar", "varbinary"],
        ColumnType::Blob { .. } | ColumnType::CompressedBlob { .. } => &[
            "blob",
            "text",
            "longtext",
            "longblob",
            "mediumtext",
            "mediumblob",
            "tinytext",
            "tinyblob",
            "json",
            "vector",
        ],
        ColumnType::Enum { .. } => &["enum"],
        ColumnType::Set { .. } => &["set"],
        ColumnType::Json { .. } => &["json"],
        ColumnType::Vector { .. } => &["vector"],
        ColumnType::Geometry { .. } => &[
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geometrycollection",
            "geomcollection",
        ],
        ColumnType::Null => &["null"],
    }
}

/// The table for the decoder, which needs signs alone: all else is done by [`Reading`].
fn describe(table: &tidings_binlog::Table, columns: &[Described]) -> Result<Arc<tidings_binlog::Table>> {
    let schema: Vec<ColumnSchema> = columns
        .iter()
        .map(|described| ColumnSchema {
            name: described.column.name.clone(),
            unsigned: described.column.is_unsigned(),
            ..ColumnSchema::default()
        })
        .collect();
    let described = table.with_schema(&schema, None);
    described.map(Arc::new).map_err(|source| Error::Binlog { place: "a table map".to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::only_embedding;

    fn embedding(few: &str, many: &str) -> Option<Vec<usize>> {
        let (few, many) = (few.as_bytes(), many.as_bytes());
        only_embedding(few.len(), many.len(), |few_at, many_at| few[few_at] == many[many_at])
    }

    #[test]
    fn columns_are_found_again_if_there_is_one_way_alone() {
        assert_eq!(embedding("itb", "itxb"), Some(vec![0, 1, 3]));
        assert_eq!(embedding("itb", "itb"), Some(vec![0, 1, 2]));
        assert_eq!(embedding("itb", "ittb"), None);
        assert_eq!(embedding("itb", "itx"), None);
        assert_eq!(embedding("", "x"), Some(vec![]));
    }
}
