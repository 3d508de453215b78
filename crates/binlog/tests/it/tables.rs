//! What the decoder keeps between events: table maps, and what callers add to them.

use std::sync::Arc;

use tidings_binlog::{ColumnSchema, Decoder, Error, Event, EventType, Events, Flavor, Header, Table, Value};

use crate::{
    model::{ModelColumn, table_map},
    samples::sample,
    streams::header,
};

/// A header and all bytes after it.
type Whole = (Header, &'static [u8]);

/// The events of a sample of one type.
fn events(name: &str, event_type: EventType) -> Vec<Whole> {
    let (_, bytes) = sample(name);
    Events::new(bytes).map(Result::unwrap).filter(|(header, _)| header.event_type == event_type).collect()
}

/// A decoder that has read a sample's format description, and the first table map and rows after it.
fn begun(name: &str, rows: EventType) -> (Decoder, Whole, Whole) {
    let mut decoder = Decoder::new(sample(name).0);
    let (header, body) = events(name, EventType::FORMAT_DESCRIPTION)[0];
    decoder.decode(&header, body).unwrap();
    (decoder, events(name, EventType::TABLE_MAP)[0], events(name, rows)[0])
}

fn map(decoder: &mut Decoder, (header, body): Whole) -> Arc<Table> {
    match decoder.decode(&header, body).unwrap() {
        Event::TableMap(table) => table,
        other => panic!("no table map: {other:?}"),
    }
}

#[test]
fn rows_without_their_table_map_are_an_error_that_names_the_table() {
    let (mut decoder, table, rows) = begun("mariadb/numbers", EventType::WRITE_ROWS_V1);
    let refused = decoder.decode(&rows.0, rows.1);
    let Err(Error::NoTableMap { table_id }) = refused else {
        panic!("{refused:?}");
    };
    let table = map(&mut decoder, table);
    assert_eq!(table.id(), table_id);
    assert!(matches!(decoder.decode(&rows.0, rows.1), Ok(Event::Rows(_))));
    // These were the last rows of their statement.
    assert!(matches!(decoder.decode(&rows.0, rows.1), Err(Error::NoTableMap { .. })));
}

#[test]
fn a_new_file_forgets_the_tables_of_the_one_before() {
    let name = "mysql/numbers";
    let (mut decoder, table, rows) = begun(name, EventType::WRITE_ROWS);
    map(&mut decoder, table);
    let (header, body) = events(name, EventType::FORMAT_DESCRIPTION)[0];
    decoder.decode(&header, body).unwrap();
    assert!(matches!(decoder.decode(&rows.0, rows.1), Err(Error::NoTableMap { .. })));
}

#[test]
fn a_table_map_that_comes_again_is_the_same_table() {
    let (mut decoder, table, rows) = begun("mysql/numbers", EventType::WRITE_ROWS);
    let first = map(&mut decoder, table);
    decoder.decode(&rows.0, rows.1).unwrap();
    assert!(Arc::ptr_eq(&first, &map(&mut decoder, table)));
}

/// What the database would say of the table `numbers`.
fn numbers_schema() -> Vec<ColumnSchema> {
    let names = "id t tu s su m mu i iu b bu f d y bit1 bit17 bit64 dec10 dec20 dec65 dec5 dec18";
    let is_unsigned = |name| ["id", "tu", "su", "mu", "iu", "bu", "dec18"].contains(&name);
    let column = |name| ColumnSchema { name: String::from(name), unsigned: is_unsigned(name), ..Default::default() };
    names.split(' ').map(column).collect()
}

#[test]
fn a_table_that_is_described_has_names_and_signs_from_then_on() {
    let (mut decoder, table, rows) = begun("mariadb/numbers_no_log", EventType::WRITE_ROWS_V1);
    let bare = map(&mut decoder, table);
    let described = Arc::new(bare.with_schema(&numbers_schema(), Some(vec![0])).unwrap());
    decoder.describe(Arc::clone(&described));
    // Twice: right after the table map, and in a later statement, whose map is the same.
    for _ in 0..2 {
        let Event::Rows(rows) = decoder.decode(&rows.0, rows.1).unwrap() else {
            panic!("no rows");
        };
        assert!(Arc::ptr_eq(rows.table(), &described));
        let row = rows.reader().next().unwrap().unwrap();
        let value = |name| row.after[rows.table().position(name).unwrap()];
        assert_eq!([value("id"), value("bu")], [Value::UInt(u64::MAX); 2]);
        assert_eq!([value("mu"), value("m")], [Value::UInt(16_777_215), Value::Int(-8_388_608)]);
        assert_eq!(rows.table().primary_key(), Some(&[0][..]));
        assert!(Arc::ptr_eq(&map(&mut decoder, table), &described));
    }
}

#[test]
fn what_the_table_map_told_is_not_overruled_by_the_schema() {
    let (mut decoder, table, _) = begun("mysql/numbers_minimal", EventType::WRITE_ROWS);
    let bare = map(&mut decoder, table);
    let mut schema = numbers_schema();
    schema[0].unsigned = false;
    let described = bare.with_schema(&schema, None).unwrap();
    assert_eq!(described.columns()[0].unsigned, Some(true));
    assert_eq!(described.columns()[0].name.as_deref(), Some("id"));
    assert_eq!(described.columns()[14].unsigned, None, "BIT has no sign");
}

#[test]
fn a_schema_of_another_number_of_columns_is_refused() {
    let (mut decoder, table, _) = begun("mariadb/numbers_no_log", EventType::WRITE_ROWS_V1);
    let bare = map(&mut decoder, table);
    let refused = bare.with_schema(&numbers_schema()[1..], None);
    assert!(matches!(refused, Err(Error::ColumnCount { expected: 22, found: 21, .. })), "{refused:?}");
}

#[test]
fn fixed_binary_columns_and_members_can_come_from_the_schema() {
    let columns = [
        ModelColumn { code: 254, metadata: vec![254, 16], unsigned: None },
        ModelColumn { code: 254, metadata: vec![247, 1], unsigned: None },
    ];
    let map = table_map(&columns);
    let mut decoder = Decoder::new(Flavor::Mariadb);
    let event = decoder.decode_inner(&header(EventType::TABLE_MAP, map.len()), &map).unwrap();
    let Event::TableMap(table) = event else {
        panic!("no table map");
    };
    assert_eq!(table.columns()[0].pad(b"\x01"), &b"\x01"[..], "a CHAR for all that is known");
    let named = |name: &str| ColumnSchema { name: name.to_owned(), ..Default::default() };
    let schema = [
        ColumnSchema { is_fixed_binary: true, ..named("id") },
        ColumnSchema { members: vec!["a".to_owned(), "b".to_owned()], ..named("kind") },
    ];
    let table = table.with_schema(&schema, None).unwrap();
    assert_eq!(table.columns()[0].pad(b"\x01")[..], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(table.columns()[1].members.as_ref().unwrap().len(), 2);
    assert_eq!(table.columns()[1].pad(b""), &b""[..]);
}

#[test]
fn a_table_that_has_an_unknown_type_is_named_and_disturbs_no_other() {
    let int = ModelColumn { code: 3, metadata: Vec::new(), unsigned: None };
    let unknown = ModelColumn { code: 200, ..int.clone() };
    let mut decoder = Decoder::new(Flavor::Mysql);
    let mut decode = |event_type, body: &[u8]| {
        let event = decoder.decode_inner(&header(event_type, body.len()), body).unwrap();
        match event {
            Event::UnreadableTable(table) => {
                format!("table {}.{} {} {}", table.schema, table.name, table.column, table.code)
            }
            Event::UnreadableRows(table) => format!("rows of {}", table.name),
            Event::TableMap(_) => "table".to_owned(),
            Event::Rows(rows) => format!("rows {}", rows.reader().filter_map(Result::ok).count()),
            other => panic!("{other:?}"),
        }
    };
    let mut other = table_map(std::slice::from_ref(&int));
    other[0] = 2;
    assert_eq!(decode(EventType::TABLE_MAP, &table_map(&[int, unknown])), "table s.t 1 200");
    assert_eq!(decode(EventType::TABLE_MAP, &other), "table");
    assert_eq!(decode(EventType::WRITE_ROWS, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 3, 0, 9, 9]), "rows of t");
    assert_eq!(decode(EventType::WRITE_ROWS, &[2, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1, 0, 7, 0, 0, 0]), "rows 1");
}

#[test]
fn an_event_that_only_ends_a_statement_has_no_rows_and_is_no_error() {
    let (mut decoder, table, rows) = begun("mysql/numbers", EventType::WRITE_ROWS);
    map(&mut decoder, table);
    for id in [&[0xff, 0xff, 0xff, 0, 0, 0][..], &[0xff; 6]] {
        let body = [id, &[1, 0, 2, 0, 0]].concat();
        let event = decoder.decode_inner(&header(EventType::WRITE_ROWS, body.len()), &body).unwrap();
        assert!(matches!(event, Event::NoRows), "{event:?}");
    }
    assert!(matches!(decoder.decode(&rows.0, rows.1), Err(Error::NoTableMap { .. })), "the statement was ended");
}

#[test]
fn rows_of_another_number_of_columns_than_their_table_are_refused() {
    let int = ModelColumn { code: 3, metadata: Vec::new(), unsigned: None };
    let map = table_map(&[int.clone(), int]);
    let mut decoder = Decoder::new(Flavor::Mysql);
    decoder.decode_inner(&header(EventType::TABLE_MAP, map.len()), &map).unwrap();
    let body = [1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 7, 0];
    let refused = decoder.decode_inner(&header(EventType::WRITE_ROWS, body.len()), &body);
    assert!(matches!(refused, Err(Error::ColumnCount { expected: 2, found: 3, .. })), "{refused:?}");
}

#[test]
fn a_row_without_any_column_is_there_once() {
    let int = ModelColumn { code: 3, metadata: Vec::new(), unsigned: None };
    let map = table_map(&[int]);
    for (images, expected) in [(&[][..], vec!["ok"]), (&[0; 9], vec!["error"])] {
        let mut decoder = Decoder::new(Flavor::Mysql);
        decoder.decode_inner(&header(EventType::TABLE_MAP, map.len()), &map).unwrap();
        let body = [&[1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0], images].concat();
        let event = decoder.decode_inner(&header(EventType::WRITE_ROWS, body.len()), &body).unwrap();
        let Event::Rows(rows) = event else {
            panic!("no rows");
        };
        let found: Vec<&str> = rows.reader().map(|row| if row.is_ok() { "ok" } else { "error" }).collect();
        assert_eq!(found, expected);
    }
}
