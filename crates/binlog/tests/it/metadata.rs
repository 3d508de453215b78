//! What table maps tell of columns, by `binlog_row_metadata`.

use std::sync::Arc;

use tidings_binlog::{Column, ColumnType, Event, Table};

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
    column
        .members
        .iter()
        .flat_map(|members| members.iter())
        .map(|member| std::str::from_utf8(member).unwrap())
        .collect()
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
