//! Tables and columns, as table maps describe them.

mod charset;
pub(crate) mod column_type;
mod map;
mod optional;

use std::{borrow::Cow, sync::Arc};

pub use charset::Charset;
pub use column_type::ColumnType;
pub(crate) use map::{bit, table_id};

use crate::Error;

/// A table as its table map describes it: the server writes one before the rows of each statement.
///
/// How much it tells depends on the server's `binlog_row_metadata`. MariaDB's default `NO_LOG` gives
/// types alone; `MINIMAL`, MySQL's default, adds signs and collations; `FULL` adds names, members of
/// ENUM and SET, and the primary key. What is missing is added by [`Table::with_schema`].
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    id: u64,
    schema: Arc<str>,
    name: Arc<str>,
    columns: Box<[Column]>,
    primary_key: Option<Vec<usize>>,
    /// What decoding needs of each column, close together.
    layout: Box<[Slot]>,
}

/// How to decode the values of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    pub(crate) kind: ColumnType,
    pub(crate) unsigned: bool,
}

/// A column as a table map describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its type, with what the type needs to be read.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its name, if known.
    pub name: Option<Arc<str>>,
    /// Whether it holds unsigned numbers; unknown without metadata, and nothing for other types.
    pub unsigned: Option<bool>,
    /// Number of the collation of a text, ENUM or SET, if the table map told it. MySQL's JSON has none.
    pub collation: Option<u16>,
    /// How texts are encoded, if known.
    pub charset: Option<Charset>,
    /// The members of an ENUM or SET in their order.
    pub members: Option<Arc<[Box<str>]>>,
    /// Number of the kind of geometry, 0 for any.
    pub geometry: Option<u32>,
    /// Dimensions of a VECTOR of MySQL.
    pub dimensions: Option<u32>,
    /// Whether `SELECT *` shows it.
    pub visible: Option<bool>,
    /// Bytes that a value has, if all have the same number: BINARY, UUID, INET4, INET6. See
    /// [`Column::pad`].
    pub fixed_bytes: Option<u16>,
}

/// A table that has a column of a type which is not known here. Its rows cannot be read; those of other
/// tables can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableTable {
    /// The server's number for the table.
    pub id: u64,
    /// The database it is in.
    pub schema: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Position of the column, from 0.
    pub column: usize,
    /// The server's code for the column's type.
    pub code: u8,
}

/// What a table map tells.
#[derive(Clone, Debug)]
pub(crate) enum Described {
    Table(Arc<Table>),
    Unreadable(Arc<UnreadableTable>),
}

/// What the database says of a column where the binlog is silent: the source for
/// [`Table::with_schema`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnSchema {
    /// `COLUMN_NAME`.
    pub name: String,
    /// Whether `COLUMN_TYPE` has the word `unsigned`.
    pub unsigned: bool,
    /// `CHARACTER_SET_NAME`, empty where that is NULL.
    pub charset: String,
    /// Whether `DATA_TYPE` is `binary`, `uuid`, `inet4` or `inet6`, so that all values are equally long.
    pub is_fixed_binary: bool,
    /// Members of an ENUM or SET, empty for others or if they do not matter.
    pub members: Vec<String>,
}

impl Described {
    pub(crate) fn id(&self) -> u64 {
        match self {
            Self::Table(table) => table.id(),
            Self::Unreadable(table) => table.id,
        }
    }
}

impl Table {
    /// The server's number for the table, valid until it opens the table anew.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The database it is in.
    pub fn schema(&self) -> &Arc<str> {
        &self.schema
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its columns, in the table's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Positions of the columns of the primary key in the key's order; nothing if that is not known.
    pub fn primary_key(&self) -> Option<&[usize]> {
        self.primary_key.as_deref()
    }

    /// Position of the column of that name, if names are known.
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known.name.as_deref() == Some(column))
    }

    pub(crate) fn layout(&self) -> &[Slot] {
        &self.layout
    }

    /// The same table with what the database says of its columns. What the table map told stays.
    ///
    /// `primary_key` has positions in `schema`, or is nothing if it does not matter. Give the result to
    /// [`Decoder::describe`](crate::Decoder::describe), and later rows of the table are decoded by it.
    /// A table that is changed meanwhile comes with a new id, hence undescribed.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnCount`] if the table had another number of columns when the rows were written.
    pub fn with_schema(&self, schema: &[ColumnSchema], primary_key: Option<Vec<usize>>) -> Result<Self, Error> {
        if schema.len() != self.columns.len() {
            return Err(self.column_count(self.columns.len(), schema.len()));
        }
        let mut table = self.clone();
        for (column, known) in table.columns.iter_mut().zip(schema) {
            column.name.get_or_insert_with(|| known.name.as_str().into());
            if column.kind.is_numeric() {
                column.unsigned.get_or_insert(known.unsigned);
            }
            if column.members.is_none() && !known.members.is_empty() {
                column.members = Some(known.members.iter().map(|member| member.as_str().into()).collect());
            }
            if !known.charset.is_empty() {
                column.charset.get_or_insert(Charset::of_name(&known.charset));
            }
            if let (true, ColumnType::Char { bytes_max }) = (known.is_fixed_binary, column.kind) {
                column.fixed_bytes = Some(bytes_max);
            }
        }
        table.primary_key = table.primary_key.or(primary_key);
        table.layout = layout(&table.columns);
        Ok(table)
    }

    #[cold]
    pub(crate) fn damaged(&self, column: usize, source: Error) -> Error {
        let (schema, table, source) = (self.schema.to_string(), self.name.to_string(), Box::new(source));
        Error::Column { schema, table, column, source }
    }

    pub(crate) fn column_count(&self, expected: usize, found: usize) -> Error {
        Error::ColumnCount { schema: self.schema.to_string(), table: self.name.to_string(), expected, found }
    }
}

impl Column {
    fn new(kind: ColumnType, nullable: bool) -> Self {
        let (name, unsigned, collation, charset, members) = (None, None, None, None, None);
        let (geometry, dimensions, visible, fixed_bytes) = (None, None, None, None);
        Self { kind, nullable, name, unsigned, collation, charset, members, geometry, dimensions, visible, fixed_bytes }
    }

    /// Whether values are bytes and not text: unknown without metadata.
    pub fn is_binary(&self) -> Option<bool> {
        self.charset.map(|charset| charset == Charset::Binary)
    }

    /// The text of a value; nothing if it is bytes, or not a text of the column's character set. Where that
    /// is not known, UTF-8 is tried.
    pub fn text<'v>(&self, value: &'v [u8]) -> Option<Cow<'v, str>> {
        self.charset.unwrap_or(Charset::Utf8).decode(value)
    }

    /// The value with the zero bytes that the server strips from the end of a BINARY(n) or UUID before
    /// it writes the binlog; other values as they are.
    pub fn pad<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
        let length = self.fixed_bytes.map_or(0, usize::from);
        if value.len() >= length {
            return Cow::Borrowed(value);
        }
        let mut padded = Vec::with_capacity(length);
        padded.extend_from_slice(value);
        padded.resize(length, 0);
        Cow::Owned(padded)
    }
}

fn layout(columns: &[Column]) -> Box<[Slot]> {
    columns.iter().map(|column| Slot { kind: column.kind, unsigned: column.unsigned == Some(true) }).collect()
}
