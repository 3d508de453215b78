//! Values of columns, borrowed from the event.

mod compressed;
mod decimal;
mod temporal;

pub use compressed::Compressed;
pub use decimal::Decimal;
pub(crate) use temporal::packed_datetime;
pub use temporal::{Date, DateTime, Time, Timestamp};

use crate::{
    Error,
    cursor::Cursor,
    json::{Json, JsonDiffs},
    table::{ColumnType, Slot},
};

/// A value of a column in a row, borrowed from the event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The column is not in the image, by the server's `binlog_row_image`. Of an inserted row it is
    /// NULL or has its default, of an updated one it did not change or is not part of the key.
    Absent,
    /// NULL.
    Null,
    /// A signed integer, and any integer whose sign the table does not tell.
    Int(i64),
    /// An integer of an unsigned column.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, exact.
    Decimal(Decimal<'a>),
    /// Text in the column's character set, or bytes: CHAR, VARCHAR, TEXT, BINARY, BLOB, MariaDB's JSON,
    /// UUID, INET6. See [`Column::text`](crate::Column::text) and [`Column::pad`](crate::Column::pad).
    Bytes(&'a [u8]),
    /// What MariaDB's `COMPRESSED` columns hold.
    Compressed(Compressed<'a>),
    /// BIT, as a number.
    Bit(u64),
    /// YEAR: 0, or 1901 to 2155.
    Year(u16),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME: a date and time of nowhere in particular.
    DateTime(DateTime),
    /// TIMESTAMP: a moment.
    Timestamp(Timestamp),
    /// ENUM: the member's number, from 1; 0 is the empty value of an error.
    Enum(u16),
    /// SET: bit n is the member n + 1.
    Set(u64),
    /// MySQL's JSON.
    Json(Json<'a>),
    /// What changed in MySQL's JSON since the image before, with `binlog_row_value_options=PARTIAL_JSON`;
    /// no difference if it did not change.
    JsonDiffs(JsonDiffs<'a>),
    /// A geometry: 4 bytes of SRID, then well-known binary.
    Geometry(&'a [u8]),
    /// VECTOR of MySQL: 4-byte floats, the least significant byte first.
    Vector(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes of a text or of bytes.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) | Self::Geometry(bytes) | Self::Vector(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Reads one value that is neither absent nor NULL.
    #[inline]
    pub(crate) fn read(slot: Slot, cursor: &mut Cursor<'a>) -> Result<Self, Error> {
        Ok(match slot.kind {
            ColumnType::TinyInt => {
                let byte = cursor.u8()?;
                integer(slot, u64::from(byte), i64::from(byte as i8))
            }
            ColumnType::SmallInt => {
                let number = cursor.u16()?;
                integer(slot, u64::from(number), i64::from(number as i16))
            }
            ColumnType::MediumInt => {
                let [low, middle, high] = cursor.array()?;
                let number = u32::from_le_bytes([low, middle, high, 0]);
                // The sign is in bit 23, so it is moved to where an `i32` has it, and back.
                integer(slot, u64::from(number), i64::from((number << 8) as i32 >> 8))
            }
            ColumnType::Int => {
                let number = cursor.u32()?;
                integer(slot, u64::from(number), i64::from(number as i32))
            }
            ColumnType::BigInt => {
                let number = cursor.u64()?;
                integer(slot, number, number as i64)
            }
            ColumnType::Char { bytes_max } | ColumnType::VarChar { bytes_max } => Self::Bytes(text(bytes_max, cursor)?),
            ColumnType::Blob { length_bytes } => Self::Bytes(blob(length_bytes, cursor)?),
            ColumnType::DateTime { digits } => Self::DateTime(DateTime::read(digits, cursor)?),
            ColumnType::Timestamp { digits } => Self::Timestamp(Timestamp::read(digits, cursor)?),
            ColumnType::Float => Self::Float(f32::from_le_bytes(cursor.array()?)),
            ColumnType::Double => Self::Double(f64::from_le_bytes(cursor.array()?)),
            ColumnType::Decimal { precision, scale } => Self::Decimal(Decimal::read(precision, scale, cursor)?),
            ColumnType::Bit { bits } => Self::Bit(cursor.big(usize::from(bits).div_ceil(8))?),
            ColumnType::Year => Self::Year(year(cursor.u8()?)),
            ColumnType::Date => Self::Date(Date::read(cursor)?),
            ColumnType::Time { digits } => Self::Time(Time::read(digits, cursor)?),
            ColumnType::OldTime => Self::Time(Time::read_old(cursor)?),
            ColumnType::OldDateTime => Self::DateTime(DateTime::read_old(cursor)?),
            ColumnType::OldTimestamp => Self::Timestamp(Timestamp::read_old(cursor)?),
            ColumnType::Enum { bytes } => Self::Enum(cursor.little(usize::from(bytes))? as u16),
            ColumnType::Set { bytes } => Self::Set(cursor.little(usize::from(bytes))?),
            ColumnType::Json { length_bytes } => Self::Json(Json::new(blob(length_bytes, cursor)?)),
            ColumnType::Geometry { length_bytes } => Self::Geometry(blob(length_bytes, cursor)?),
            ColumnType::Vector { length_bytes } => Self::Vector(blob(length_bytes, cursor)?),
            ColumnType::CompressedVarChar { bytes_max } => Self::Compressed(Compressed::new(text(bytes_max, cursor)?)),
            ColumnType::CompressedBlob { length_bytes } => {
                Self::Compressed(Compressed::new(blob(length_bytes, cursor)?))
            }
            ColumnType::Null => Self::Null,
        })
    }
}

impl<'a> Value<'a> {
    /// Reads the differences of a JSON column.
    pub(crate) fn read_partial(slot: Slot, cursor: &mut Cursor<'a>) -> Result<Self, Error> {
        match slot.kind {
            ColumnType::Json { length_bytes } => Ok(Self::JsonDiffs(JsonDiffs::new(blob(length_bytes, cursor)?))),
            _ => Err(cursor.malformed("differences are of a column that is not JSON")),
        }
    }
}

#[inline]
fn integer<'a>(slot: Slot, unsigned: u64, signed: i64) -> Value<'a> {
    if slot.unsigned { Value::UInt(unsigned) } else { Value::Int(signed) }
}

/// A text whose length has one byte, or two where the column may hold more than 255 bytes.
#[inline]
fn text<'a>(bytes_max: u16, cursor: &mut Cursor<'a>) -> Result<&'a [u8], Error> {
    let length = if bytes_max < 256 { usize::from(cursor.u8()?) } else { usize::from(cursor.u16()?) };
    cursor.take(length)
}

#[inline]
pub(crate) fn blob<'a>(length_bytes: u8, cursor: &mut Cursor<'a>) -> Result<&'a [u8], Error> {
    let length = cursor.little(usize::from(length_bytes))?;
    // At most four bytes were read, so the length fits.
    cursor.take(length as usize)
}

fn year(byte: u8) -> u16 {
    if byte == 0 { 0 } else { 1900 + u16::from(byte) }
}
