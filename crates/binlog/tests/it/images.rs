//! Row images that lack columns, partitions, triggers.

use tidings_binlog::{Change, Event};

use crate::samples::{SERVERS, find, rows};

#[test]
fn columns_that_an_image_lacks_are_absent_and_not_null() {
    let created = "2023-11-14 22:13:20Z";
    let year_start = "2023-01-01 00:00:00Z";
    let expected = [
        // A default that is an expression is written, one that is a constant is not.
        format!("+ 1u | absent | 'one' | absent | {created}"),
        "~ 1u | absent | absent | absent | absent => absent | absent | null | absent | absent".to_owned(),
        "- 1u | absent | absent | absent | absent".to_owned(),
        format!("+ 2u | 7 | 'two' | 'text' | {created}"),
        format!("~ 2u | 7 | 'two' | absent | {created} => 2u | 8 | 'two' | absent | {created}"),
        format!("~ 2u | 8 | 'two' | absent | {created} => 2u | 8 | 'two' | 'other' | {created}"),
        format!("- 2u | 8 | 'two' | absent | {created}"),
        format!("+ 3u | 1 | 'three' | 'x' | {year_start}"),
        format!("+ 4u | 2 | 'four' | 'y' | {year_start}"),
        format!("~ 3u | 1 | 'three' | 'x' | {year_start} => 3u | 11 | 'three' | 'x' | {year_start}"),
        format!("~ 4u | 2 | 'four' | 'y' | {year_start} => 4u | 12 | 'four' | 'y' | {year_start}"),
        format!("- 3u | 11 | 'three' | 'x' | {year_start}"),
        format!("- 4u | 12 | 'four' | 'y' | {year_start}"),
    ];
    for server in SERVERS {
        assert_eq!(rows(&format!("{server}/images")), expected, "{server}");
    }
}

#[test]
fn rows_of_partitioned_tables_are_read_whatever_stands_before_them() {
    for server in SERVERS {
        let rows = rows(&format!("{server}/partitions"));
        assert_eq!(rows, ["+ 1 | 1", "+ 11 | 2", "~ 1 | 1 => 12 | 1", "- 11 | 2"], "{server}");
    }
}

#[test]
fn the_table_maps_of_a_statement_hold_until_its_last_rows() {
    for server in SERVERS {
        let found = find(&format!("{server}/two_tables"), |event| match event {
            Event::TableMap(table) => Some(format!("map {}", table.name())),
            Event::Rows(rows) => {
                assert_eq!(rows.change(), Change::Insert);
                let count = rows.reader().count();
                Some(format!("{count} of {}, last: {}", rows.table().name(), rows.ends_statement()))
            }
            _ => None,
        });
        assert_eq!(found[..2], ["map first_table", "map second_table"], "{server}");
        let rows: Vec<&str> = found[2..].iter().map(String::as_str).collect();
        assert!(rows[..rows.len() - 1].iter().all(|row| row.ends_with("last: false")), "{server}: {rows:?}");
        assert!(rows[rows.len() - 1].ends_with("last: true"), "{server}: {rows:?}");
    }
}
