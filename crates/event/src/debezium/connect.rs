//! Columns and values of MySQL as Debezium's connector hands them to Connect, with its default modes
//! (`BinlogValueConverters`).

use std::borrow::Cow;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use time::{Month, OffsetDateTime};

use super::{
    BigintUnsigned, BinaryHandling, Options,
    schema::{Data, Schema},
};
use crate::{
    Error,
    row::{Column, Date, DateTime, Time, Type, Value},
};

/// The schema of a column. Geometries are structs in Debezium, which no outbox needs.
pub(super) fn schema_of(column: &Column, options: &Options) -> Result<Schema, Error> {
    let micros = column.fraction_digits() > 3;
    let precise = |precision: usize, scale: usize| {
        Schema::logical("bytes", "org.apache.kafka.connect.data.Decimal")
            .with("scale", scale.to_string())
            .with("connect.decimal.precision", precision.to_string())
    };
    let schema = match column.kind {
        Type::SmallInt | Type::MediumInt if column.is_unsigned => Schema::simple("int32"),
        Type::TinyInt | Type::SmallInt => Schema::simple("int16"),
        Type::Int if column.is_unsigned => Schema::simple("int64"),
        Type::MediumInt | Type::Int => Schema::simple("int32"),
        Type::BigInt if is_precise(column, options) => precise(20, 0),
        Type::BigInt => Schema::simple("int64"),
        Type::Decimal => {
            let (precision, scale) = precision_of(column);
            precise(precision, scale)
        }
        Type::Float if is_single(column) => Schema::simple("float"),
        Type::Float | Type::Double => Schema::simple("double"),
        Type::Bit if column.length.unwrap_or(1) == 1 => Schema::simple("boolean"),
        Type::Bit => {
            Schema::logical("bytes", "io.debezium.data.Bits").with("length", column.length.unwrap_or(1).to_string())
        }
        Type::Binary | Type::Varbinary | Type::Blob if options.binary_handling == BinaryHandling::Bytes => {
            Schema::simple("bytes")
        }
        Type::Json => Schema::logical("string", "io.debezium.data.Json"),
        Type::Enum => Schema::logical("string", "io.debezium.data.Enum").with("allowed", column.labels.join(",")),
        Type::Set => Schema::logical("string", "io.debezium.data.EnumSet").with("allowed", column.labels.join(",")),
        Type::Year => Schema::logical("int32", "io.debezium.time.Year"),
        Type::Date => Schema::logical("int32", "io.debezium.time.Date"),
        Type::Time => Schema::logical("int64", "io.debezium.time.MicroTime"),
        Type::DateTime if micros => Schema::logical("int64", "io.debezium.time.MicroTimestamp"),
        Type::DateTime => Schema::logical("int64", "io.debezium.time.Timestamp"),
        Type::Timestamp => Schema::logical("string", "io.debezium.time.ZonedTimestamp"),
        Type::Geometry => return Err(Error::column(&column.name, "is a geometry, which no record holds")),
        Type::Char | Type::Varchar | Type::Text | Type::Binary | Type::Varbinary | Type::Blob | Type::Other => {
            Schema::simple("string")
        }
    };
    Ok(Schema { is_optional: column.is_nullable, ..schema })
}

/// The value of a column.
pub(super) fn data_of<'a>(column: &Column, value: &'a Value<'a>, options: &Options) -> Result<Data<'a>, Error> {
    Ok(match value {
        Value::Absent | Value::Null => Data::Null,
        Value::Int(number) if column.is_unsigned => integer(column, unsigned(column, *number), options),
        Value::Int(number) => Data::Int(*number),
        Value::UInt(number) => integer(column, *number, options),
        Value::Float(number) if is_single(column) => Data::Float(*number),
        Value::Float(number) => Data::Double(f64::from(*number)),
        Value::Double(number) => Data::Double(*number),
        Value::Decimal(digits) => Data::Decimal(Cow::Borrowed(digits)),
        Value::Text(text) if is_binary(column.kind) => bytes(column, text.as_bytes(), options),
        Value::Text(text) if column.kind == Type::Json => Data::Text(compact(text)),
        Value::Json(text) => Data::Text(compact(text)),
        Value::Text(text) => Data::Text(Cow::Borrowed(text)),
        Value::Bytes(raw) if is_binary(column.kind) => bytes(column, raw, options),
        Value::Bytes(raw) => Data::Text(String::from_utf8_lossy(raw)),
        Value::Bit(bits) if column.length.unwrap_or(1) == 1 => Data::Bool(*bits != 0),
        Value::Bit(bits) => {
            // The bytes that the declared bits need, the lowest first.
            let length = column.length.unwrap_or(1).div_ceil(8).min(8);
            Data::Bytes(Cow::Owned(bits.to_le_bytes()[..length].to_vec()))
        }
        // The year 0000 is stored as the year 1900 would be, and Debezium takes it for that.
        Value::Year(0) => Data::Int(1900),
        Value::Year(year) => Data::Int(i64::from(*year)),
        Value::Date(date) => days(*date).map_or_else(|| zero(column), Data::Int),
        Value::Time(time) => Data::Int(span(*time)),
        Value::DateTime(moment) => match (micros_of(*moment), column.fraction_digits()) {
            (None, _) => zero(column),
            (Some(micros), 0..=3) => Data::Int(micros.div_euclid(1000)),
            (Some(micros), _) => Data::Int(micros),
        },
        Value::Timestamp { seconds, micros } => Data::Text(Cow::Owned(zoned(*seconds, *micros, column))),
        Value::Enum(index) => Data::Text(Cow::Owned(label(column, u64::from(*index)).unwrap_or_default())),
        Value::Set(bits) => {
            let chosen = (0..64).filter(|bit| bits >> bit & 1 == 1).filter_map(|bit| label(column, bit + 1));
            Data::Text(Cow::Owned(chosen.collect::<Vec<_>>().join(",")))
        }
        Value::Geometry(_) => return Err(Error::column(&column.name, "is a geometry, which no record holds")),
    })
}

fn is_binary(kind: Type) -> bool {
    matches!(kind, Type::Binary | Type::Varbinary | Type::Blob)
}

/// FLOAT and FLOAT(p) up to 24 bits; with digits after the point it is a double to Debezium.
fn is_single(column: &Column) -> bool {
    !column.mysql_type.contains(',') && column.length.is_none_or(|bits| bits <= 24)
}

fn is_precise(column: &Column, options: &Options) -> bool {
    column.kind == Type::BigInt && column.is_unsigned && options.bigint_unsigned == BigintUnsigned::Precise
}

/// A stored integer as the unsigned one that was meant.
fn unsigned(column: &Column, number: i64) -> u64 {
    let bits = match column.kind {
        Type::TinyInt => 8,
        Type::SmallInt => 16,
        Type::MediumInt => 24,
        Type::Int => 32,
        _ => 64,
    };
    number.cast_unsigned() & (u64::MAX >> (64 - bits))
}

fn integer<'a>(column: &Column, number: u64, options: &Options) -> Data<'a> {
    if is_precise(column, options) {
        Data::Decimal(Cow::Owned(number.to_string()))
    } else {
        Data::Int(number.cast_signed())
    }
}

/// Precision and scale, which are 10 and 0 where the declaration has none.
fn precision_of(column: &Column) -> (usize, usize) {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok();
    let (precision, scale) = column.mysql_type.split_once(',').unwrap_or((&column.mysql_type, ""));
    (digits(precision).unwrap_or(10), digits(scale).unwrap_or(0))
}

fn bytes<'a>(column: &Column, raw: &'a [u8], options: &Options) -> Data<'a> {
    let padded: Cow<'a, [u8]> = match column.binary_length() {
        Some(length) if raw.len() < length => {
            let mut padded = raw.to_vec();
            padded.resize(length, 0);
            Cow::Owned(padded)
        }
        _ => Cow::Borrowed(raw),
    };
    match options.binary_handling {
        BinaryHandling::Bytes => Data::Bytes(padded),
        BinaryHandling::Base64 => Data::Text(STANDARD.encode(padded).into()),
        BinaryHandling::Base64UrlSafe => Data::Text(URL_SAFE.encode(padded).into()),
        BinaryHandling::Hex => Data::Text(hex(&padded).into()),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

/// What a date with a zero in it is: NULL, or where that cannot be the start of the epoch.
fn zero<'a>(column: &Column) -> Data<'a> {
    if column.is_nullable { Data::Null } else { Data::Int(0) }
}

fn days(date: Date) -> Option<i64> {
    let month = Month::try_from(date.month).ok()?;
    let day = time::Date::from_calendar_date(i32::from(date.year), month, date.day).ok()?;
    Some(i64::from(day.to_julian_day()) - UNIX_EPOCH_JULIAN)
}

const UNIX_EPOCH_JULIAN: i64 = 2_440_588;

fn span(time: Time) -> i64 {
    let seconds = i64::from(time.hours) * 3600 + i64::from(time.minutes) * 60 + i64::from(time.seconds);
    let micros = seconds * 1_000_000 + i64::from(time.micros);
    if time.is_negative { -micros } else { micros }
}

/// Microseconds since the epoch, the clock being taken as that of UTC.
fn micros_of(moment: DateTime) -> Option<i64> {
    let clock = i64::from(moment.hours) * 3600 + i64::from(moment.minutes) * 60 + i64::from(moment.seconds);
    Some((days(moment.date)? * 86_400 + clock) * 1_000_000 + i64::from(moment.micros))
}

/// JSON without white space between its parts, as Debezium prints what MySQL stores in binary.
fn compact(text: &str) -> Cow<'_, str> {
    let (mut in_string, mut after_backslash) = (false, false);
    let mut keep = |letter: char| {
        match letter {
            _ if after_backslash => after_backslash = false,
            '\\' => after_backslash = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        in_string || !letter.is_ascii_whitespace()
    };
    Cow::Owned(text.chars().filter(|letter| keep(*letter)).collect())
}

/// ISO 8601 in UTC with as many digits after the second as were declared.
fn zoned(seconds: i64, micros: u32, column: &Column) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, (hours, minutes, seconds)) = (moment.date(), moment.to_hms());
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}");
    if column.fraction_digits() > 0 {
        let digits = format!("{micros:06}");
        text.push('.');
        text.push_str(&digits[..usize::from(column.fraction_digits())]);
    }
    text.push('Z');
    text
}

fn label(column: &Column, number: u64) -> Option<String> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    column.labels.get(place).cloned()
}
