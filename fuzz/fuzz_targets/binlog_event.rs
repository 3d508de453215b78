//! Whatever bytes a binlog holds: reading all of it down to the last value does not panic, and takes no
//! more memory than is allowed. Checksums are not looked at, as nearly everything would end there.
//!
//! The first byte chooses who wrote the rest: a file without its first four bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_binlog::{Decoder, Event, Events, Flavor, Row, Value, checksum, gtid::mysql::Set};

const UNCOMPRESSED_BYTES_MAX: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((flavor, events)) = bytes.split_first() else {
        return;
    };
    let flavor = if flavor & 1 == 0 { Flavor::Mysql } else { Flavor::Mariadb };
    let mut decoder = Decoder::new(flavor).limit_uncompressed(UNCOMPRESSED_BYTES_MAX);
    for (header, body) in Events::new(events).flatten() {
        // Both ways in: with what is checked of a received event, and without.
        let _ = decoder.clone().decode(&header, body);
        let body = &body[..body.len().saturating_sub(checksum::LENGTH)];
        if let Ok(event) = decoder.decode_inner(&header, body) {
            walk(&decoder, &event, true);
        }
    }
});

fn walk(decoder: &Decoder, event: &Event<'_>, is_outer: bool) {
    match event {
        Event::Rows(rows) => {
            let (mut reader, mut row) = (rows.reader(), Row::default());
            let columns = rows.table().columns();
            while let Ok(true) = reader.read(&mut row) {
                for values in [&row.before, &row.after] {
                    assert!(values.is_empty() || values.len() == columns.len());
                    columns.iter().zip(values).for_each(|(column, value)| value_text(column, value));
                }
            }
        }
        Event::TransactionPayload(payload) if is_outer => {
            let Ok(bytes) = payload.events(UNCOMPRESSED_BYTES_MAX) else {
                return;
            };
            assert!(bytes.len() <= UNCOMPRESSED_BYTES_MAX);
            let mut decoder = decoder.clone();
            for (header, body) in Events::new(&bytes).flatten() {
                if let Ok(event) = decoder.decode_inner(&header, body) {
                    walk(&decoder, &event, false);
                }
            }
        }
        Event::Query(query) => drop(query.statement()),
        Event::PreviousGtids(set) => assert_eq!(Set::decode(&set.encode()).as_ref().ok(), Some(set)),
        _ => {}
    }
}

fn value_text(column: &tidings_binlog::Column, value: &Value<'_>) {
    match value {
        Value::Json(json) => drop(json.to_text()),
        Value::JsonDiffs(diffs) => {
            diffs.iter().flatten().filter_map(|diff| diff.value).for_each(|value| drop(value.to_text()));
        }
        Value::Decimal(decimal) => drop(decimal.to_string()),
        Value::Bytes(bytes) => drop(column.pad(bytes)),
        Value::Compressed(compressed) => drop(compressed.value(UNCOMPRESSED_BYTES_MAX)),
        Value::Time(time) => drop(format!("{time:.6}")),
        Value::DateTime(moment) => drop(format!("{moment:.6}")),
        Value::Timestamp(moment) => drop(moment.to_utc().to_string()),
        _ => {}
    }
}
