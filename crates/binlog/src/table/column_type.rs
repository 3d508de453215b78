//! The types of columns, with what is needed to read their values.

use crate::{Error, cursor::Cursor};

/// The type of a column as the binlog names it, with what is needed to read its values.
///
/// Several types of SQL share one here: VARCHAR and VARBINARY, CHAR and BINARY and UUID, all TEXT and
/// BLOB (and MariaDB's JSON). The collation tells text from bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// TINYINT, BOOL: 1 byte.
    TinyInt,
    /// SMALLINT: 2 bytes.
    SmallInt,
    /// MEDIUMINT: 3 bytes.
    MediumInt,
    /// INT: 4 bytes.
    Int,
    /// BIGINT: 8 bytes.
    BigInt,
    /// FLOAT: 4 bytes.
    Float,
    /// DOUBLE: 8 bytes.
    Double,
    /// DECIMAL(precision, scale).
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// BIT(bits).
    Bit {
        /// Bits, at most 64.
        bits: u8,
    },
    /// YEAR: 1 byte.
    Year,
    /// DATE: 3 bytes.
    Date,
    /// TIME(digits).
    Time {
        /// Digits after the second's point, at most 6.
        digits: u8,
    },
    /// DATETIME(digits).
    DateTime {
        /// Digits after the second's point, at most 6.
        digits: u8,
    },
    /// TIMESTAMP(digits).
    Timestamp {
        /// Digits after the second's point, at most 6.
        digits: u8,
    },
    /// TIME of a table older than MySQL 5.6, or with `mysql56_temporal_format=OFF`: 3 bytes.
    OldTime,
    /// DATETIME of such a table: 8 bytes.
    OldDateTime,
    /// TIMESTAMP of such a table: 4 bytes.
    OldTimestamp,
    /// CHAR, BINARY, UUID, INET4, INET6.
    Char {
        /// Bytes at most, or always; see [`Column::fixed_bytes`](super::Column::fixed_bytes).
        bytes_max: u16,
    },
    /// VARCHAR, VARBINARY.
    VarChar {
        /// Bytes at most.
        bytes_max: u16,
    },
    /// TEXT and BLOB of all sizes, MariaDB's JSON.
    Blob {
        /// Bytes of the length before each value, 1 to 4.
        length_bytes: u8,
    },
    /// MariaDB's `VARCHAR(n) COMPRESSED`.
    CompressedVarChar {
        /// Bytes at most.
        bytes_max: u16,
    },
    /// MariaDB's `BLOB COMPRESSED` and `TEXT COMPRESSED`.
    CompressedBlob {
        /// Bytes of the length before each value, 1 to 4.
        length_bytes: u8,
    },
    /// ENUM.
    Enum {
        /// Bytes of a value, 1 or 2.
        bytes: u8,
    },
    /// SET.
    Set {
        /// Bytes of a value, 1 to 8.
        bytes: u8,
    },
    /// MySQL's binary JSON.
    Json {
        /// Bytes of the length before each value, 1 to 4.
        length_bytes: u8,
    },
    /// All geometries.
    Geometry {
        /// Bytes of the length before each value, 1 to 4.
        length_bytes: u8,
    },
    /// MySQL's VECTOR.
    Vector {
        /// Bytes of the length before each value, 1 to 4.
        length_bytes: u8,
    },
    /// A column that is always NULL.
    Null,
}

impl ColumnType {
    /// Reads the metadata of a type that has the server's `code`; nothing if the code is not known.
    pub(super) fn read(code: u8, metadata: &mut Cursor<'_>) -> Result<Option<Self>, Error> {
        Ok(Some(match code {
            1 | 244 => Self::TinyInt,
            2 => Self::SmallInt,
            3 => Self::Int,
            4 => number(metadata, 4, Self::Float)?,
            5 => number(metadata, 8, Self::Double)?,
            6 => Self::Null,
            7 => Self::OldTimestamp,
            8 => Self::BigInt,
            9 => Self::MediumInt,
            10 | 14 => Self::Date,
            11 => Self::OldTime,
            12 => Self::OldDateTime,
            13 => Self::Year,
            15 | 253 => Self::VarChar { bytes_max: metadata.u16()? },
            16 => bit(metadata)?,
            17 => Self::Timestamp { digits: digits(metadata)? },
            18 => Self::DateTime { digits: digits(metadata)? },
            19 => Self::Time { digits: digits(metadata)? },
            140 => Self::CompressedBlob { length_bytes: length_bytes(metadata)? },
            141 => Self::CompressedVarChar { bytes_max: metadata.u16()? },
            242 => Self::Vector { length_bytes: length_bytes(metadata)? },
            245 => Self::Json { length_bytes: length_bytes(metadata)? },
            246 => decimal(metadata)?,
            // The sizes of blobs have codes of their own, which do not occur in a binlog by what the
            // servers say; they would be read like the one that does.
            249..=252 => Self::Blob { length_bytes: length_bytes(metadata)? },
            247 | 248 | 254 => string(code, metadata)?,
            255 => Self::Geometry { length_bytes: length_bytes(metadata)? },
            _ => return Ok(None),
        }))
    }

    /// Digits after the second's point that a time of this type is shown with; 0 for other types.
    pub fn fraction_digits(self) -> u8 {
        match self {
            Self::Time { digits } | Self::DateTime { digits } | Self::Timestamp { digits } => digits,
            _ => 0,
        }
    }

    /// Whether it has a sign that metadata can tell.
    pub(crate) fn is_numeric(self) -> bool {
        let is_integer = matches!(self, Self::TinyInt | Self::SmallInt | Self::MediumInt | Self::Int | Self::BigInt);
        is_integer || matches!(self, Self::Float | Self::Double | Self::Decimal { .. } | Self::Year)
    }
}

/// A FLOAT or DOUBLE, whose metadata is its size once more.
fn number(metadata: &mut Cursor<'_>, size: u8, kind: ColumnType) -> Result<ColumnType, Error> {
    if metadata.u8()? != size {
        return Err(metadata.malformed("a FLOAT or DOUBLE has an unknown size"));
    }
    Ok(kind)
}

fn bit(metadata: &mut Cursor<'_>) -> Result<ColumnType, Error> {
    let [bits, bytes] = metadata.array()?;
    match u16::from(bytes) * 8 + u16::from(bits) {
        bits @ 1..=64 => Ok(ColumnType::Bit { bits: bits as u8 }),
        _ => Err(metadata.malformed("a BIT has no or more than 64 bits")),
    }
}

fn digits(metadata: &mut Cursor<'_>) -> Result<u8, Error> {
    match metadata.u8()? {
        digits @ 0..=6 => Ok(digits),
        _ => Err(metadata.malformed("a time has more than 6 digits after the second")),
    }
}

fn decimal(metadata: &mut Cursor<'_>) -> Result<ColumnType, Error> {
    let [precision, scale] = metadata.array()?;
    if scale > precision || precision == 0 || precision > 65 {
        return Err(metadata.malformed("a DECIMAL has an impossible precision or scale"));
    }
    Ok(ColumnType::Decimal { precision, scale })
}

fn length_bytes(metadata: &mut Cursor<'_>) -> Result<u8, Error> {
    match metadata.u8()? {
        bytes @ 1..=4 => Ok(bytes),
        _ => Err(metadata.malformed("a length has no or more than 4 bytes")),
    }
}

/// CHAR and what is stored like it. The real type and the length share two bytes: a CHAR of more than
/// 255 bytes keeps two bits of its length, inverted, in the bits of the type that are else set.
fn string(code: u8, metadata: &mut Cursor<'_>) -> Result<ColumnType, Error> {
    let [real, length] = metadata.array()?;
    let enum_or_set = if code == 254 { real } else { code };
    match enum_or_set {
        247 if (1..=2).contains(&length) => Ok(ColumnType::Enum { bytes: length }),
        248 if (1..=8).contains(&length) => Ok(ColumnType::Set { bytes: length }),
        247 | 248 => Err(metadata.malformed("an ENUM or SET has an impossible size")),
        _ => {
            let high = u16::from(real & 0x30) ^ 0x30;
            Ok(ColumnType::Char { bytes_max: high << 4 | u16::from(length) })
        }
    }
}
