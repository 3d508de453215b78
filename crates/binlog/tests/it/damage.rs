//! Bytes that no server wrote: no panic, no endless loop, no memory without bound.

use proptest::prelude::*;
use tidings_binlog::{Decoder, Error, Event, Events, Flavor, Header, Row, Value};

use crate::samples::{ALL, sample};

/// Most that a damaged event may be decompressed to here.
const UNCOMPRESSED_BYTES_MAX: usize = 1 << 20;

/// Decodes all that there is in an event, down to the text of every value. The number of values is the
/// answer, so that nothing is optimised away.
fn walk(decoder: &mut Decoder, event: &Event<'_>) -> usize {
    match event {
        Event::Rows(rows) => {
            let (mut reader, mut row, mut count) = (rows.reader(), Row::default(), 0);
            while let Ok(true) = reader.read(&mut row) {
                count += row.before.iter().chain(&row.after).map(walk_value).sum::<usize>();
            }
            assert!(matches!(reader.read(&mut row), Ok(false)), "there is nothing after the end or an error");
            count
        }
        Event::TransactionPayload(payload) => {
            let Ok(bytes) = payload.events(UNCOMPRESSED_BYTES_MAX) else {
                return 0;
            };
            assert!(bytes.len() <= UNCOMPRESSED_BYTES_MAX);
            let mut count = 0;
            for (header, body) in Events::new(&bytes).flatten() {
                if let Ok(event) = decoder.decode_inner(&header, body)
                    && !matches!(event, Event::TransactionPayload(_))
                {
                    count += walk(&mut decoder.clone(), &event);
                }
            }
            count
        }
        Event::Query(query) => {
            assert!(query.sql.len() <= UNCOMPRESSED_BYTES_MAX);
            usize::from(query.statement() == tidings_binlog::Statement::Begin)
        }
        _ => 0,
    }
}

fn walk_value(value: &Value<'_>) -> usize {
    match value {
        Value::Json(json) => usize::from(json.to_text().is_ok()),
        Value::JsonDiffs(diffs) => {
            diffs.iter().flatten().filter_map(|diff| diff.value).map(|value| usize::from(value.to_text().is_ok())).sum()
        }
        Value::Decimal(decimal) => decimal.to_string().len(),
        Value::Compressed(compressed) => compressed.value(UNCOMPRESSED_BYTES_MAX).map_or(0, |value| value.len()),
        Value::Time(time) => format!("{time:.6}").len(),
        Value::DateTime(moment) => format!("{moment:.6}").len(),
        Value::Timestamp(moment) => moment.to_utc().to_string().len(),
        _ => 1,
    }
}

/// Decodes events whose checksums nobody looks at, as damage would else never get past them.
fn decode_all(flavor: Flavor, bytes: &[u8]) -> usize {
    let mut decoder = Decoder::new(flavor).limit_uncompressed(UNCOMPRESSED_BYTES_MAX);
    let mut count = 0;
    for (header, body) in Events::new(bytes).flatten() {
        let body = &body[..body.len().saturating_sub(4)];
        if let Ok(event) = decoder.decode_inner(&header, body) {
            count += walk(&mut decoder.clone(), &event);
        }
    }
    count
}

#[test]
fn the_samples_are_all_walked_when_they_are_whole() {
    for (name, flavor, _) in ALL {
        let count = decode_all(*flavor, sample(name).1);
        assert!(count > 0 || name.ends_with("load_data"), "{name} has no rows");
    }
}

#[test]
fn every_event_of_every_sample_may_end_anywhere() {
    for (name, flavor, _) in ALL {
        let mut decoder = Decoder::new(*flavor).limit_uncompressed(UNCOMPRESSED_BYTES_MAX);
        for (header, body) in Events::new(sample(name).1).flatten() {
            let body = &body[..body.len().saturating_sub(4)];
            for length in 0..body.len() {
                let mut decoder = decoder.clone();
                if let Ok(event) = decoder.decode_inner(&header, &body[..length]) {
                    walk(&mut decoder.clone(), &event);
                }
            }
            decoder.decode_inner(&header, body).unwrap();
        }
    }
}

#[test]
fn a_row_that_ends_too_early_names_its_column() {
    let (flavor, bytes) = sample("mysql/texts");
    let mut decoder = Decoder::new(flavor);
    for (header, body) in Events::new(bytes).flatten() {
        let body = &body[..body.len() - 4];
        if let Ok(Event::Rows(_)) = decoder.clone().decode_inner(&header, body) {
            let Event::Rows(rows) = decoder.decode_inner(&header, &body[..body.len() - 1]).unwrap() else {
                panic!("no rows");
            };
            let errors: Vec<Error> = rows.reader().filter_map(Result::err).collect();
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0].to_string(), "column 17 of `tidings`.`texts` cannot be read");
            let source = std::error::Error::source(&errors[0]).unwrap();
            assert_eq!(source.to_string(), "rows: 1 more bytes were expected, 0 are left");
            return;
        }
        decoder.decode_inner(&header, body).unwrap();
    }
    panic!("there are no rows");
}

#[test]
fn json_that_names_one_value_many_times_does_not_become_a_text_without_end() {
    // An array whose elements are all one array, whose elements are all one array, ...
    let mut document = vec![12, 1, b'x'];
    for _ in 0..20 {
        let inner = document;
        let table = 4 + 60 * 3;
        document = vec![2, 60, 0, 0, 0];
        (0..60).for_each(|_| document.extend([inner[0], table as u8, 0]));
        document.extend(&inner[1..]);
    }
    let column = crate::model::ModelColumn { code: 245, metadata: vec![4], unsigned: None };
    let map = crate::model::table_map(&[column]);
    let mut body = vec![1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1, 0];
    body.extend((document.len() as u32).to_le_bytes());
    body.extend(&document);
    let header = |event_type, size| crate::streams::header(tidings_binlog::EventType(event_type), size);
    let mut decoder = Decoder::new(Flavor::Mysql);
    decoder.decode_inner(&header(19, map.len()), &map).unwrap();
    let Event::Rows(rows) = decoder.decode_inner(&header(30, body.len()), &body).unwrap() else {
        panic!("no rows");
    };
    let row = rows.reader().next().unwrap().unwrap();
    let Value::Json(json) = row.after[0] else {
        panic!("no JSON");
    };
    let refused = json.to_text();
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{:?}", refused.map(|text| text.len()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_bytes_breaks_the_decoder(
        sample_number in 0..ALL.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let (name, flavor, _) = ALL[sample_number];
        let mut bytes = sample(name).1.to_vec();
        for (index, byte) in changes {
            let position = index.index(bytes.len());
            bytes[position] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |index| index.index(bytes.len())));
        decode_all(flavor, &bytes);
    }

    #[test]
    fn no_bytes_at_all_break_the_decoder(
        event_type: u8,
        body in prop::collection::vec(any::<u8>(), 0..200),
        is_mysql: bool,
    ) {
        let flavor = if is_mysql { Flavor::Mysql } else { Flavor::Mariadb };
        let mut decoder = Decoder::new(flavor).limit_uncompressed(UNCOMPRESSED_BYTES_MAX);
        let header = crate::streams::header(tidings_binlog::EventType(event_type), body.len());
        if let Ok(event) = decoder.decode(&header, &body) {
            walk(&mut decoder.clone(), &event);
        }
        if let Ok(header) = Header::parse(&body) {
            prop_assert_eq!(&header.to_bytes()[..], &body[..Header::LENGTH]);
        }
    }
}
