//! Rows events into changes of an outbox table.

use tidings_binlog::{Change as Happened, Error, Header, Row, Rows};
use tidings_event::row::{Change, Operation, Value};

use super::{tables::Known, value};
use crate::relay::{Changes, Seen};

/// Where the rows of an event stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) gtid: &'a str,
    pub(super) file: &'a str,
    pub(super) position: u64,
}

/// Number of rows in an event.
pub(super) fn count(rows: &Rows<'_>) -> Result<u64, Error> {
    let (mut reader, mut row, mut count) = (rows.reader(), Row::default(), 0);
    while reader.read(&mut row)? {
        count += 1;
    }
    Ok(count)
}

/// Notes what has become of the row with a number.
pub(super) fn note(seen: &mut Seen, change: Happened, number: u64) {
    match change {
        Happened::Insert => seen.insert(number),
        Happened::Delete => seen.remove(number),
        // Whether it was published is told by when it was inserted.
        Happened::Update => {}
    }
}

/// Decodes the rows of an event and hands those that `is_wanted` to `then`, by their place in the event
/// and the value of their `seq` column.
pub(super) fn with_changes<T>(
    rows: &Rows<'_>,
    known: &Known,
    header: &Header,
    origin: Origin<'_>,
    mut is_wanted: impl FnMut(u64, Option<u64>) -> bool,
    then: impl FnOnce(&Changes<'_>) -> T,
) -> Result<(u64, Option<T>), Error> {
    let columns = known.readings.len();
    let mut values: Vec<Value<'_>> = Vec::new();
    let (mut reader, mut row, mut count) = (rows.reader(), Row::default(), 0);
    while reader.read(&mut row)? {
        let number = known.table.places.seq.and_then(|at| row.current().get(at)).and_then(as_number);
        count += 1;
        if !is_wanted(count - 1, number) {
            continue;
        }
        for image in [&row.before, &row.after] {
            for (stored, reading) in image.iter().zip(&known.readings) {
                values.push(value::read(stored, *reading)?);
            }
        }
    }
    if values.is_empty() {
        return Ok((count, None));
    }
    let operation = match rows.change() {
        Happened::Insert => Operation::Insert,
        Happened::Update => Operation::Update,
        Happened::Delete => Operation::Delete,
    };
    let changes: Vec<Change<'_>> = match operation {
        Operation::Insert => values.chunks(columns).map(Change::insert).collect(),
        Operation::Delete => values.chunks(columns).map(Change::delete).collect(),
        Operation::Update => values
            .chunks(2 * columns)
            .map(|pair| {
                let (before, after) = pair.split_at(columns);
                Change::update(before, after)
            })
            .collect(),
    };
    let then = then(&Changes {
        table: &known.table,
        operation,
        rows: &changes,
        event_seconds: header.timestamp,
        gtid: origin.gtid,
        file: origin.file,
        position: origin.position,
        server_id: header.server_id,
    });
    Ok((count, Some(then)))
}

fn as_number(stored: &tidings_binlog::Value<'_>) -> Option<u64> {
    match stored {
        tidings_binlog::Value::UInt(number) => Some(*number),
        tidings_binlog::Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}
