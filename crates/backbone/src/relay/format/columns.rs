//! Reading the columns of a row.

use std::borrow::Cow;

use tidings_event::{
    Timestamp, canal,
    row::{Change, Column, DateTime, Operation, Value},
};

use crate::relay::{Changes, ColumnNames, Table};

/// The image of a row that is published: that before a delete, that after any other change.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) columns: &'a [Column],
    pub(super) values: &'a [Value<'a>],
}

impl<'a> Row<'a> {
    pub(super) fn new(changes: &'a Changes<'_>, change: &'a Change<'_>) -> Self {
        let values = if changes.operation == Operation::Delete { change.before } else { change.after };
        Self { columns: &changes.table.definition.columns, values }
    }

    /// A column that is there and not NULL.
    pub(super) fn cell(&self, place: Option<usize>) -> Option<(&'a Column, &'a Value<'a>)> {
        let place = place?;
        let (column, value) = (self.columns.get(place)?, self.values.get(place)?);
        (!value.is_null()).then_some((column, value))
    }

    /// A column as text, whatever it is of; bytes that are no text in hexadecimal digits.
    pub(super) fn text(&self, place: Option<usize>) -> Option<Cow<'a, str>> {
        let (column, value) = self.cell(place)?;
        match value {
            Value::Text(text) | Value::Json(text) | Value::Decimal(text) => Some(Cow::Borrowed(text)),
            Value::Bytes(bytes) => Some(text_of(&padded(column, bytes))),
            Value::Enum(index) => Some(column.label(*index).map_or_else(|| index.to_string().into(), Cow::Borrowed)),
            _ => canal::text(column, value, canal::Zone::default()),
        }
    }

    /// A column as the text it must be.
    pub(super) fn exact_text(&self, place: Option<usize>) -> Option<&'a str> {
        match self.cell(place)?.1 {
            Value::Text(text) | Value::Json(text) => Some(text),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// A column as a whole number that is not negative.
    pub(super) fn number(&self, place: Option<usize>) -> Option<u64> {
        let (column, value) = self.cell(place)?;
        match value {
            Value::UInt(number) => Some(*number),
            Value::Int(number) if column.is_unsigned() => Some(number.cast_unsigned()),
            Value::Int(number) => u64::try_from(*number).ok(),
            Value::Decimal(text) | Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// Bytes with the zeros at the end of a BINARY that the binlog leaves out.
pub(super) fn padded<'a>(column: &Column, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    match column.binary_length() {
        Some(length) if length > bytes.len() => {
            let mut bytes = bytes.to_vec();
            bytes.resize(length, 0);
            Cow::Owned(bytes)
        }
        _ => Cow::Borrowed(bytes),
    }
}

fn text_of<'a>(bytes: &Cow<'a, [u8]>) -> Cow<'a, str> {
    let hex = |bytes: &[u8]| Cow::Owned(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
    match bytes {
        // Sixteen bytes are a UUID far more often than a text.
        bytes if bytes.len() == 16 => match <[u8; 16]>::try_from(&**bytes) {
            Ok(id) => Cow::Owned(uuid::Uuid::from_bytes(id).to_string()),
            Err(_) => hex(bytes),
        },
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes.clone()).map_or_else(|_| hex(bytes), Cow::Owned),
    }
}

/// A column as a moment: DATETIME is taken as UTC, a number in the unit its size suggests (seconds up to
/// the year 5138, then milliseconds, microseconds, nanoseconds).
pub(super) fn moment(value: &Value<'_>) -> Option<Timestamp> {
    match value {
        Value::Timestamp { seconds, micros } => Some(Timestamp(seconds * 1_000 + i64::from(micros / 1_000))),
        Value::DateTime(moment) => of_date_time(*moment),
        Value::Date(date) => of_date_time(DateTime { date: *date, ..DateTime::default() }),
        Value::Int(number) => Some(of_number(*number)),
        Value::UInt(number) => i64::try_from(*number).ok().map(of_number),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn of_number(number: i64) -> Timestamp {
    Timestamp(match number.unsigned_abs() {
        0..100_000_000_000 => number * 1_000,
        100_000_000_000..100_000_000_000_000 => number,
        100_000_000_000_000..100_000_000_000_000_000 => number / 1_000,
        _ => number / 1_000_000,
    })
}

fn of_date_time(moment: DateTime) -> Option<Timestamp> {
    let DateTime { date, hours, minutes, seconds, micros } = moment;
    let millis = micros / 1_000;
    let (year, month, day) = (date.year, date.month, date.day);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z").parse().ok()
}

/// Whether a table is Tidings' own outbox, by the names and the kinds of its columns.
pub(super) fn is_own(table: &Table) -> bool {
    let own = Table::new(table.definition.clone(), &ColumnNames::default()).places;
    let has_binary_id = own.event_id.is_some_and(|place| table.definition.columns[place].binary_length() == Some(16));
    let all = [
        own.seq,
        own.event_type,
        own.schema_version,
        own.aggregate_type,
        own.aggregate_id,
        own.event_key,
        own.version,
        own.occurred_at,
        own.payload,
        own.metadata,
    ];
    has_binary_id && own == table.places && all.iter().all(Option::is_some)
}

#[cfg(test)]
mod tests {
    use tidings_event::row::Date;

    use super::*;

    #[test]
    fn moments_are_read_from_every_type_that_can_hold_one() {
        let date_time = Value::DateTime(DateTime {
            date: Date { year: 2026, month: 11, day: 29 },
            hours: 15,
            minutes: 26,
            seconds: 17,
            micros: 123_456,
        });
        let moment_of = |value: Value<'_>| moment(&value).map(|moment| moment.0);
        assert_eq!(moment_of(date_time), Some(1_795_965_977_123));
        assert_eq!(moment_of(Value::Timestamp { seconds: 1_795_965_977, micros: 123_456 }), Some(1_795_965_977_123));
        for number in [1_795_965_977_123, 1_795_965_977_123_456, 1_795_965_977_123_456_789] {
            assert_eq!(moment_of(Value::Int(number)), Some(1_795_965_977_123));
        }
        assert_eq!(moment_of(Value::UInt(1_795_965_977)), Some(1_795_965_977_000));
        assert_eq!(moment_of(Value::Text("2026-11-29T15:26:17.123Z".into())), Some(1_795_965_977_123));
        assert_eq!(moment_of(Value::DateTime(DateTime::default())), None, "the zero date is no moment");
    }

    #[test]
    fn identities_are_texts_whatever_they_are_stored_as() {
        let columns = [
            Column::new("a", "bigint(20) unsigned"),
            Column::new("b", "binary(16)"),
            Column::new("c", "varbinary(8)"),
            Column::new("d", "blob"),
            Column::new("e", "enum('new','done')"),
        ];
        let values = [
            Value::Int(-1),
            Value::Bytes(vec![0x01, 0x9a].into()),
            Value::Bytes(b"text".into()),
            Value::Bytes(vec![0xff, 0x00].into()),
            Value::Enum(2),
        ];
        let row = Row { columns: &columns, values: &values };
        let texts: Vec<_> = (0..6).map(|place| row.text(Some(place)).map(Cow::into_owned)).collect();
        let expected = ["18446744073709551615", "019a0000-0000-0000-0000-000000000000", "text", "ff00", "done"];
        assert_eq!(texts[..5], expected.map(|text| Some(text.to_owned())));
        assert_eq!(texts[5], None);
        assert_eq!(row.number(Some(0)), Some(u64::MAX));
    }
}
