//! Values of the binlog as the formats take them.

use std::{
    borrow::Cow,
    net::{Ipv4Addr, Ipv6Addr},
};

use tidings_binlog::{Charset, Error, Value as Stored};
use tidings_event::row::{Date, DateTime, Time, Value};

use crate::{limits::RELAY_PACKET_BYTES_MAX, relay::definition::Reading};

/// One value, read as its column says.
pub(super) fn read<'a>(stored: &Stored<'a>, reading: Reading) -> Result<Value<'a>, Error> {
    Ok(match stored {
        Stored::Absent => Value::Absent,
        Stored::Null => Value::Null,
        Stored::Int(number) => Value::Int(*number),
        Stored::UInt(number) => Value::UInt(*number),
        Stored::Float(number) => Value::Float(*number),
        Stored::Double(number) => Value::Double(*number),
        Stored::Decimal(number) => Value::Decimal(Cow::Owned(number.to_string())),
        Stored::Bytes(bytes) => from_bytes(Cow::Borrowed(bytes), reading),
        Stored::Compressed(compressed) => from_bytes(compressed.value(RELAY_PACKET_BYTES_MAX)?, reading),
        Stored::Bit(bits) => Value::Bit(*bits),
        Stored::Year(year) => Value::Year(*year),
        Stored::Date(day) => Value::Date(date(*day)),
        Stored::Time(time) => Value::Time(Time {
            is_negative: time.is_negative,
            hours: time.hours,
            minutes: time.minutes,
            seconds: time.seconds,
            micros: time.micros,
        }),
        Stored::DateTime(moment) => Value::DateTime(DateTime {
            date: date(moment.date),
            hours: moment.hour,
            minutes: moment.minute,
            seconds: moment.second,
            micros: moment.micros,
        }),
        Stored::Timestamp(moment) => Value::Timestamp { seconds: moment.seconds.into(), micros: moment.micros },
        Stored::Enum(index) => Value::Enum(*index),
        Stored::Set(bits) => Value::Set(*bits),
        Stored::Json(json) => Value::Json(Cow::Owned(json.to_text()?)),
        // Only the differences are there, so the value itself is not.
        Stored::JsonDiffs(_) => Value::Absent,
        Stored::Geometry(bytes) => Value::Geometry(Cow::Borrowed(bytes)),
        Stored::Vector(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
    })
}

fn date(day: tidings_binlog::Date) -> Date {
    Date { year: day.year, month: day.month, day: day.day }
}

/// Bytes as text, padded, or as they are. What is not in its character set stays bytes.
fn from_bytes(bytes: Cow<'_, [u8]>, reading: Reading) -> Value<'_> {
    match reading {
        Reading::Plain => Value::Bytes(bytes),
        Reading::Padded(length) if bytes.len() < length => {
            let mut padded = bytes.into_owned();
            padded.resize(length, 0);
            Value::Bytes(Cow::Owned(padded))
        }
        Reading::Padded(_) => Value::Bytes(bytes),
        Reading::Text(charset) => text(bytes, charset),
        Reading::Uuid => uuid(&bytes).map_or(Value::Bytes(bytes), Value::Text),
        Reading::Inet6 => match fixed::<16>(&bytes) {
            Some(octets) => Value::Text(Cow::Owned(Ipv6Addr::from(octets).to_string())),
            None => Value::Bytes(bytes),
        },
        Reading::Inet4 => match fixed::<4>(&bytes) {
            Some(octets) => Value::Text(Cow::Owned(Ipv4Addr::from(octets).to_string())),
            None => Value::Bytes(bytes),
        },
    }
}

fn text(bytes: Cow<'_, [u8]>, charset: Charset) -> Value<'_> {
    let text = match &bytes {
        Cow::Borrowed(bytes) => charset.decode(bytes),
        Cow::Owned(bytes) => charset.decode(bytes).map(|text| Cow::Owned(text.into_owned())),
    };
    match text {
        Some(text) => Value::Text(text),
        None => Value::Bytes(bytes),
    }
}

/// Bytes of a type of fixed length, whose zeros at the end the server strips.
fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut whole = [0; N];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(whole)
}

/// MariaDB stores the parts of a UUID of versions 1 to 5 from the last to the first, so that an index
/// over them is compact; others as they are.
fn uuid<'a>(bytes: &[u8]) -> Option<Cow<'a, str>> {
    let stored = fixed::<16>(bytes)?;
    let is_swapped = stored[6] & 0x80 != 0 && stored[8] > 0 && stored[8] < 0x60;
    let mut plain = stored;
    if is_swapped {
        plain[..4].copy_from_slice(&stored[12..]);
        plain[4..6].copy_from_slice(&stored[10..12]);
        plain[6..8].copy_from_slice(&stored[8..10]);
        plain[8..10].copy_from_slice(&stored[6..8]);
        plain[10..].copy_from_slice(&stored[..6]);
    }
    Some(Cow::Owned(uuid::Uuid::from_bytes(plain).hyphenated().to_string()))
}
