//! Values as the texts and `java.sql.Types` numbers that Canal gives them.
//!
//! Rules of `LogEventConvert.parseOneRow` and `RowsLogBuffer.fetchValue` (Canal 1.1.8).

use std::{borrow::Cow, str::FromStr};

use time::OffsetDateTime;

use crate::{
    Error, java,
    row::{Column, Date, DateTime, Time, Type, Value},
};

/// The fixed offset from UTC in which TIMESTAMP is written: `+08:00`, `-03:30`, `Z` or `UTC`.
///
/// Canal takes the zone of its Java machine, which is why the same row reads differently from one
/// server to the next. Here it is a setting, UTC unless told otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    offset_seconds: i32,
}

impl FromStr for Zone {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if matches!(text, "Z" | "UTC" | "GMT") {
            return Ok(Self::default());
        }
        offset(text)
            .map(|offset_seconds| Self { offset_seconds })
            .ok_or_else(|| Error::option("zone", "is an offset from UTC such as `+08:00`, 18 hours at most, or `UTC`"))
    }
}

fn offset(text: &str) -> Option<i32> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 || !(hours.bytes().chain(minutes.bytes())).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60 && hours * 60 + minutes <= 18 * 60).then_some(sign * (hours * 60 + minutes) * 60)
}

/// The text of a value, or nothing for NULL.
///
/// - Integers in digits; a stored negative of an unsigned column is the number that was meant.
/// - FLOAT and DOUBLE as Java prints them: `180.2`, `1.0E7`.
/// - DECIMAL in plain digits, where zeros at the end are left out as Canal does it: `5.0000` is `5.0`, but
///   `5.5000` stays. The server keeps digits in groups of nine; of the last and incomplete group after the
///   point Canal writes all or, where they are all zero, none (`LogBuffer.getDecimal`).
/// - BINARY, VARBINARY, BLOB and GEOMETRY: each byte is the character of its number, U+0000 to U+00FF
///   (ISO-8859-1). Zero bytes at the end of a BINARY, which the binlog leaves out and Canal does not restore, are left
///   out wherever the value comes from.
/// - CHAR, VARCHAR and TEXT as they are; bytes in them are read as UTF-8, what is none being U+FFFD.
/// - ENUM the index of its label, SET and BIT the number of their bits, YEAR four digits.
/// - DATE, TIME, DATETIME and TIMESTAMP as `YYYY-MM-DD hh:mm:ss.f` with exactly the declared digits after
///   the second, the rest being cut off.
pub fn text<'a>(column: &Column, value: &'a Value<'a>, zone: Zone) -> Option<Cow<'a, str>> {
    Some(match value {
        Value::Absent | Value::Null => return None,
        Value::Int(number) => integer(column, *number),
        Value::UInt(number) | Value::Bit(number) | Value::Set(number) => digits(*number),
        Value::Enum(index) => digits(u64::from(*index)),
        Value::Float(number) => written(|out| java::float(*number, out)),
        Value::Double(number) => written(|out| java::double(*number, out)),
        Value::Decimal(text) => decimal(text),
        Value::Json(text) => Cow::Borrowed(text),
        Value::Text(text) if is_binary(column.kind) => latin1(text.as_bytes()),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bytes(bytes) if is_text(column.kind) => String::from_utf8_lossy(bytes),
        Value::Bytes(bytes) if column.binary_length().is_some() => latin1(without_padding(bytes)),
        Value::Bytes(bytes) | Value::Geometry(bytes) => latin1(bytes),
        Value::Year(year) => written(|out| number_of(out, u64::from(*year), 4)),
        Value::Date(date) => written(|out| write_date(out, *date)),
        Value::Time(time) => written(|out| write_time(out, *time, column.fraction)),
        Value::DateTime(moment) => written(|out| write_moment(out, *moment, column.fraction)),
        Value::Timestamp { seconds, micros } => {
            written(|out| write_moment(out, local(*seconds, *micros, zone), column.fraction))
        }
    })
}

/// What the binlog holds of a BINARY.
fn without_padding(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..length]
}

/// The `java.sql.Types` number that goes with a value.
///
/// It depends on the value as well as on the type: an unsigned integer whose highest bit is set gets
/// the next larger type, so that a signed reader can hold it (BIGINT becomes DECIMAL, 3); MEDIUMINT is
/// an INTEGER already. SET is a BIT where there is a value and a BLOB where there is none.
pub fn sql_type(column: &Column, value: &Value<'_>) -> i32 {
    match column.kind {
        Type::TinyInt if is_raised(column, value, 8) => SMALLINT,
        Type::TinyInt => -6,
        Type::SmallInt if is_raised(column, value, 16) => INTEGER,
        Type::SmallInt => SMALLINT,
        Type::Int if is_raised(column, value, 32) => BIGINT,
        Type::MediumInt | Type::Int | Type::Enum => INTEGER,
        Type::BigInt if is_raised(column, value, 64) => DECIMAL,
        Type::BigInt => BIGINT,
        Type::Decimal => DECIMAL,
        Type::Float => 7,
        Type::Double => 8,
        Type::Set if value.is_null() => BLOB,
        Type::Bit | Type::Set => -7,
        Type::Char => CHAR,
        Type::Json if value.is_null() => OTHER,
        Type::Varchar | Type::Json | Type::Year => VARCHAR,
        Type::Text => 2005,
        Type::Binary | Type::Varbinary | Type::Blob | Type::Geometry => BLOB,
        Type::Date => 91,
        Type::Time => 92,
        Type::DateTime | Type::Timestamp => 93,
        Type::Other => match value {
            Value::Absent | Value::Null => OTHER,
            Value::Bytes(_) | Value::Geometry(_) => BLOB,
            Value::Text(_) => CHAR,
            _ => VARCHAR,
        },
    }
}

const CHAR: i32 = 1;
const DECIMAL: i32 = 3;
const INTEGER: i32 = 4;
const SMALLINT: i32 = 5;
const BIGINT: i32 = -5;
const VARCHAR: i32 = 12;
const OTHER: i32 = 1111;
const BLOB: i32 = 2004;

fn is_binary(kind: Type) -> bool {
    matches!(kind, Type::Binary | Type::Varbinary | Type::Blob | Type::Geometry)
}

fn is_text(kind: Type) -> bool {
    matches!(kind, Type::Char | Type::Varchar | Type::Text | Type::Json)
}

/// Whether the highest of the stored bits of an unsigned integer is set.
fn is_raised(column: &Column, value: &Value<'_>, bits: u32) -> bool {
    match value {
        Value::UInt(number) => *number >> (bits - 1) != 0,
        Value::Int(number) => column.is_unsigned && (*number < 0 || number.unsigned_abs() >> (bits - 1) != 0),
        _ => false,
    }
}

fn integer(column: &Column, number: i64) -> Cow<'static, str> {
    let bits = match column.kind {
        Type::TinyInt => 8,
        Type::SmallInt => 16,
        Type::MediumInt => 24,
        Type::Int => 32,
        _ => 64,
    };
    if column.is_unsigned && number < 0 {
        digits(number.cast_unsigned() & (u64::MAX >> (64 - bits)))
    } else {
        Cow::Owned(number.to_string())
    }
}

fn decimal(text: &str) -> Cow<'_, str> {
    let parts = text.split_once('.').and_then(|(whole, fraction)| {
        let (complete, rest) = fraction.split_at_checked(fraction.len() / 9 * 9)?;
        Some((whole, complete, rest))
    });
    let Some((whole, complete, rest)) = parts else { return Cow::Borrowed(text) };
    if rest.is_empty() || rest.bytes().any(|digit| digit != b'0') {
        Cow::Borrowed(text)
    } else if complete.is_empty() {
        Cow::Owned(format!("{whole}.0"))
    } else {
        Cow::Borrowed(&text[..text.len() - rest.len()])
    }
}

fn digits(number: u64) -> Cow<'static, str> {
    Cow::Owned(number.to_string())
}

fn latin1(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}

fn written<'a>(write: impl FnOnce(&mut String)) -> Cow<'a, str> {
    let mut out = String::with_capacity(26);
    write(&mut out);
    Cow::Owned(out)
}

fn number_of(out: &mut String, number: u64, width: usize) {
    out.push_str(&format!("{number:0width$}"));
}

fn write_date(out: &mut String, date: Date) {
    number_of(out, u64::from(date.year), 4);
    out.push('-');
    number_of(out, u64::from(date.month), 2);
    out.push('-');
    number_of(out, u64::from(date.day), 2);
}

fn write_clock(out: &mut String, hours: u16, minutes: u8, seconds: u8) {
    number_of(out, u64::from(hours), 2);
    out.push(':');
    number_of(out, u64::from(minutes), 2);
    out.push(':');
    number_of(out, u64::from(seconds), 2);
}

fn write_fraction(out: &mut String, micros: u32, digits: u8) {
    if digits > 0 {
        let cut = 10_u32.pow(6_u32.saturating_sub(u32::from(digits)));
        out.push('.');
        number_of(out, u64::from(micros / cut), usize::from(digits));
    }
}

fn write_time(out: &mut String, time: Time, fraction: u8) {
    if time.is_negative {
        out.push('-');
    }
    write_clock(out, time.hours, time.minutes, time.seconds);
    write_fraction(out, time.micros, fraction);
}

fn write_moment(out: &mut String, moment: DateTime, fraction: u8) {
    write_date(out, moment.date);
    out.push(' ');
    write_clock(out, u16::from(moment.hours), moment.minutes, moment.seconds);
    write_fraction(out, moment.micros, fraction);
}

/// A moment on the clock of a zone. The zero timestamp stays the zero date in every zone.
fn local(seconds: i64, micros: u32, zone: Zone) -> DateTime {
    let shifted = seconds.saturating_add(i64::from(zone.offset_seconds));
    let Some(moment) = (seconds != 0).then(|| OffsetDateTime::from_unix_timestamp(shifted).ok()).flatten() else {
        return DateTime { micros, ..DateTime::default() };
    };
    let date =
        Date { year: u16::try_from(moment.year()).unwrap_or(0), month: u8::from(moment.month()), day: moment.day() };
    DateTime { date, hours: moment.hour(), minutes: moment.minute(), seconds: moment.second(), micros }
}
