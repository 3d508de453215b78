//! Compressed events and transactions.

use tidings_binlog::{Compression, Decoder, Error, Event, EventType, Events};

use crate::samples::{each, find, rows, sample};

#[test]
fn rows_that_mariadb_compressed_are_read() {
    let mut types = Vec::new();
    each("mariadb/compressed", |header, _| types.push(header.event_type));
    for compressed in [166, 167, 168, 165] {
        assert!(types.contains(&EventType(compressed)), "no event of type {compressed} in {types:?}");
    }
    let expected = [
        "+ 1 | 'aaaa...' of 1000",
        "+ 2 | 'éééé...' of 1000",
        "~ 1 | 'aaaa...' of 1000 => 1 | 'bbbb...' of 1000",
        "- 1 | 'bbbb...' of 1000",
        "- 2 | 'éééé...' of 1000",
        "+ 3 | 'short'",
    ];
    assert_eq!(rows("mariadb/compressed"), expected);
}

#[test]
fn statements_that_mariadb_compressed_are_read() {
    let texts = find("mariadb/compressed", |event| match event {
        Event::Query(query) if query.sql.len() > 100 => Some(query.text().into_owned()),
        _ => None,
    });
    assert_eq!(texts.len(), 1);
    assert!(texts[0].starts_with("CREATE TABLE with_a_long_statement (id INT NOT NULL PRIMARY KEY) COMMENT 'aaa"));
    assert!(texts[0].ends_with("aaa'"));
}

#[test]
fn transactions_that_mysql_compressed_are_read() {
    let expected = [
        "+ 1 | 'aaaa...' of 1000",
        "+ 2 | 'éééé...' of 1000",
        "~ 1 | 'aaaa...' of 1000 => 1 | 'bbbb...' of 1000",
        "- 2 | 'éééé...' of 1000",
        "+ 3 | 'short'",
    ];
    assert_eq!(rows("mysql/compressed"), expected);
    let payloads = find("mysql/compressed", |event| match event {
        Event::TransactionPayload(payload) => Some((payload.compression, payload.uncompressed_size)),
        _ => None,
    });
    assert_eq!(payloads, [(Compression::Zstd, Some(7455)), (Compression::Zstd, Some(219))]);
}

#[test]
fn nothing_is_decompressed_beyond_its_limit() {
    let (flavor, bytes) = sample("mysql/compressed");
    let mut decoder = Decoder::new(flavor);
    let mut payloads = 0;
    for event in Events::new(bytes) {
        let (header, body) = event.unwrap();
        if let Event::TransactionPayload(payload) = decoder.decode(&header, body).unwrap() {
            let size = payload.uncompressed_size.unwrap() as usize;
            assert_eq!(payload.events(size).unwrap().len(), size);
            assert!(matches!(payload.events(size - 1), Err(Error::TooLarge { .. })));
            payloads += 1;
        }
    }
    assert_eq!(payloads, 2);

    let (flavor, bytes) = sample("mariadb/compressed");
    let mut decoder = Decoder::new(flavor).limit_uncompressed(400);
    let refused = Events::new(bytes).filter(|event| {
        let (header, body) = event.as_ref().unwrap();
        matches!(decoder.decode(header, body), Err(Error::TooLarge { .. }))
    });
    // Two inserts and an update and a delete of a thousand letters; the rest is short.
    assert_eq!(refused.count(), 3);
}
