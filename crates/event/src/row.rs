//! A database row, as neutral as a binlog shows it: what [`canal`](crate::canal) and
//! [`debezium`](crate::debezium) write their records from.
//!
//! The outbox table may be anyone's, so nothing here knows a column by its name. Whoever decodes the
//! binlog (or polls the table) builds one [`Table`] for each version of the table and one slice of
//! [`Value`] for each row image, in the order of the columns. Texts and bytes are borrowed where they
//! can be, so that a row costs no copy until it is written.

mod declared;

use std::borrow::Cow;

pub use declared::Column;
pub(crate) use declared::Type;

/// A table as one version of its definition has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The schema the table is in.
    pub database: String,
    /// The name of the table.
    pub name: String,
    /// All columns, in the order of the definition.
    pub columns: Vec<Column>,
}

impl Table {
    /// The place of a column, found by its exact name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// What a row event does to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Rows are new: they have an image after the change only.
    Insert,
    /// Rows changed: they have an image before and one after the change.
    Update,
    /// Rows are gone: they have an image before the change only.
    Delete,
}

/// One row of a row event. The image that [`Operation`] says is not there is empty.
///
/// An image has a value for each column of the [`Table`]; values beyond its end count as
/// [`Value::Absent`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change<'a> {
    /// The row before the change.
    pub before: &'a [Value<'a>],
    /// The row after the change.
    pub after: &'a [Value<'a>],
}

impl<'a> Change<'a> {
    /// A new row.
    pub fn insert(after: &'a [Value<'a>]) -> Self {
        Self { before: &[], after }
    }

    /// A changed row.
    pub fn update(before: &'a [Value<'a>], after: &'a [Value<'a>]) -> Self {
        Self { before, after }
    }

    /// A row that is gone.
    pub fn delete(before: &'a [Value<'a>]) -> Self {
        Self { before, after: &[] }
    }
}

/// The value of one column in one row.
///
/// The variant says how the binlog holds the value; what it means is up to the declared type of its
/// [`Column`]. Integers may be given as they are stored: a column declared `unsigned` turns a negative
/// [`Value::Int`] into the number that was meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// The row image does not have the column (`binlog_row_image` is not `FULL`).
    Absent,
    /// SQL NULL.
    Null,
    /// TINYINT to BIGINT.
    Int(i64),
    /// TINYINT UNSIGNED to BIGINT UNSIGNED.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL in plain digits, with as many of them after the point as were declared.
    Decimal(Cow<'a, str>),
    /// CHAR, VARCHAR and the TEXT types, decoded.
    Text(Cow<'a, str>),
    /// BINARY, VARBINARY and the BLOB types; also texts of an unknown character set.
    Bytes(Cow<'a, [u8]>),
    /// BIT, the last declared bit being worth 1.
    Bit(u64),
    /// YEAR, 0 or 1901 to 2155.
    Year(u16),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME.
    DateTime(DateTime),
    /// TIMESTAMP, a moment: seconds since the Unix epoch, and microseconds of the second. The zero
    /// timestamp of MySQL is `seconds: 0`.
    Timestamp {
        /// Whole seconds since the Unix epoch.
        seconds: i64,
        /// 0 to 999999.
        micros: u32,
    },
    /// ENUM as the index of its label, from 1; 0 is the empty text of an invalid value.
    Enum(u16),
    /// SET as its bits, the first label being worth 1.
    Set(u64),
    /// JSON as its text. The binary form of MySQL has to be turned into a text before.
    Json(Cow<'a, str>),
    /// A GEOMETRY type: SRID and WKB, as stored.
    Geometry(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// Whether the column is NULL or not in the row image, which means the same to a reader of rows.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Absent | Self::Null)
    }
}

/// A calendar day. Day and month may be 0, as MySQL allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Whether it is below zero.
    pub is_negative: bool,
    /// 0 to 838.
    pub hours: u16,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999999.
    pub micros: u32,
}

/// A day and a time of day, of no time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// 0 to 23.
    pub hours: u8,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999999.
    pub micros: u32,
}
