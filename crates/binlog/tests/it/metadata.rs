//! What table maps tell of columns, by `binlog_row_metadata`.

use std::sync::Arc;

use tidings_binlog::{Charset, Column, ColumnType, Event, Table};

use crate::samples::{SERVERS, find};

fn table(name: &str) -> Arc<Table> {
    let tables = find(name, |event| match event {
        Event::TableMap(table) => Some(Arc::clone(table)),
        _ => None,
    });
    Arc::clone(&tables[0])
}

fn column<'t>(table: &'t Table, name: &str) -> &'t Column {
    &table.columns()[table.position(name).unwrap()]
}

fn members(column: &Column) -> Vec<&str> {
    column.members.iter().flat_map(|members| members.iter()).map(|member| &**member).collect()
}

#[test]
fn full_metadata_tells_names_keys_members_and_collations() {
    for server in SERVERS {
        let table = table(&format!("{server}/texts"));
        assert_eq!((&**table.schema(), &**table.name()), ("tidings", "texts"));
        // PRIMARY KEY (v20 (5), id).
        assert_eq!(table.primary_key(), Some(&[4, 0][..]), "{server}");
        assert_eq!(members(column(&table, "e")), ["small", "médium", "large"], "{server}");
        assert_eq!(members(column(&table, "st")), ["a", "b", "c", "d"], "{server}");
        assert_eq!(column(&table, "lat").collation, Some(8), "{server}");
        let is_binary = |name| column(&table, name).is_binary();
        assert_eq!([is_binary("b16"), is_binary("vb"), is_binary("bl")], [Some(true); 3], "{server}");
        assert_eq!([is_binary("c10"), is_binary("tx"), is_binary("lt")], [Some(false); 3], "{server}");
        assert_eq!(is_binary("id"), None);
        assert!(!column(&table, "id").nullable && column(&table, "c10").nullable);
        assert_eq!(column(&table, "b16").fixed_bytes, Some(16));
        assert_eq!(column(&table, "vb").fixed_bytes, None);
        // 255 characters of four bytes: a length that hides two bits in those of the type.
        assert_eq!(column(&table, "c255").kind, ColumnType::Char { bytes_max: 1020 });
    }
}

#[test]
fn metadata_tells_signs_of_numbers_alone() {
    for name in ["mariadb/numbers", "mysql/numbers", "mysql/numbers_minimal"] {
        let table = table(name);
        let signs: Vec<Option<bool>> = table.columns().iter().map(|column| column.unsigned).collect();
        let integers = [true, false, true, false, true, false, true, false, true, false, true].map(Some);
        assert_eq!(signs[..11], integers, "{name}");
        assert_eq!(signs[11..14], [Some(false), Some(false), Some(true)], "{name}: FLOAT, DOUBLE, YEAR");
        assert_eq!(signs[14..17], [None; 3], "{name}: BIT");
        assert_eq!(signs[17..], [false, false, false, false, true].map(Some), "{name}: DECIMAL");
    }
    assert!(table("mariadb/numbers_no_log").columns().iter().all(|column| column.unsigned.is_none()));
}

#[test]
fn minimal_metadata_has_no_names_and_no_metadata_has_nothing() {
    for name in ["mysql/texts_minimal", "mariadb/texts_minimal", "mariadb/numbers_no_log"] {
        let table = table(name);
        assert!(table.columns().iter().all(|column| column.name.is_none() && column.members.is_none()), "{name}");
        assert_eq!((table.primary_key(), table.position("id")), (None, None), "{name}");
    }
    assert_eq!(table("mariadb/texts_minimal").columns()[3].collation, Some(8));
}

#[test]
fn classes_of_columns_are_counted_as_each_server_counts_them() {
    // Were UUID, INET6 or geometries counted wrongly, `lat` and `wide` would have others' collations.
    let mariadb = table("mariadb/own_types");
    assert_eq!(column(&mariadb, "lat").collation, Some(8));
    assert_eq!(column(&mariadb, "wide").collation, Some(35));
    assert_eq!(column(&mariadb, "j").collation, Some(46));
    for (name, bytes) in [("u", 16), ("i6", 16), ("i4", 4), ("cb", 4)] {
        assert_eq!(column(&mariadb, name).fixed_bytes, Some(bytes), "{name}");
    }
    let mysql = table("mysql/own_types");
    assert_eq!(column(&mysql, "lat").collation, Some(8));
    assert_eq!(column(&mysql, "last").collation, Some(255));
    assert_eq!([column(&mysql, "g").collation, column(&mysql, "j").collation], [None, None]);
    assert_eq!(column(&mysql, "cb").fixed_bytes, Some(4));
    assert_eq!(column(&mysql, "v").dimensions, Some(3));
    assert_eq!([column(&mysql, "hidden").visible, column(&mysql, "last").visible], [Some(false), Some(true)]);
    for table in [&mariadb, &mysql] {
        assert_eq!([column(table, "g").geometry, column(table, "p").geometry], [Some(0), Some(1)]);
    }
}

#[test]
fn texts_are_read_by_the_character_set_of_their_column() {
    // Of the first row: the column, and its text.
    let samples = [
        ("mariadb/texts", "lat", "café"),
        ("mysql/texts_minimal", "", "café"),
        ("mysql/texts", "c255", "été 🚀"),
        ("mariadb/own_types", "wide", "abc"),
        ("mysql/own_types", "lat", "é"),
    ];
    for (name, column_name, expected) in samples {
        let texts = find(name, |event| {
            let Event::Rows(rows) = event else {
                return None;
            };
            let position = rows.table().position(column_name).unwrap_or(3);
            let row = rows.reader().next()?.unwrap();
            Some(rows.table().columns()[position].text(row.after[position].as_bytes()?)?.into_owned())
        });
        assert_eq!(texts[0], expected, "{name}");
    }
}

#[test]
fn every_character_set_that_is_known_is_decoded_or_refused() {
    let decode = |name, bytes| Charset::of_name(name).decode(bytes).map(|text| text.into_owned());
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(decode("utf8mb3", "é".as_bytes()), some("é"));
    assert_eq!(decode("ascii", b"a"), some("a"));
    assert_eq!(decode("latin1", b"\x80\x81\x9f\xe9"), some("€\u{81}Ÿé"));
    assert_eq!(decode("ucs2", b"\x00a\x20\xac"), some("a€"));
    assert_eq!(decode("utf16", b"\xd8\x3d\xde\x80"), some("🚀"));
    assert_eq!(decode("utf16le", b"\x3d\xd8\x80\xde"), some("🚀"));
    assert_eq!(decode("utf32", b"\x00\x01\xf6\x80"), some("🚀"));
    for (name, bytes) in [
        ("binary", &b"a"[..]),
        ("gbk", b"a"),
        ("utf8mb4", b"\xff"),
        ("utf16", b"\xd8\x3d"),
        ("utf16", b"a"),
        ("utf32", b"\x00\x01\xf6"),
        ("utf32", b"\x00\x11\x00\x00"),
    ] {
        assert_eq!(decode(name, bytes), None, "{name}");
    }
}
