//! Values of every type, as both servers write them.

use tidings_binlog::{Event, Timestamp, Value};

use crate::samples::{SERVERS, find, rows};

#[test]
fn numbers_keep_their_sign_their_size_and_every_digit() {
    let expected = [
        "+ 18446744073709551615u | -128 | 255u | -32768 | 65535u | -8388608 | 16777215u \
         | -2147483648 | 4294967295u | -9223372036854775808 | 18446744073709551615u \
         | -1.5f | 1.7976931348623157e308 | year 2155 | b1 | b11111111111111111 \
         | b1111111111111111111111111111111111111111111111111111111111111111 \
         | -9999999999d | -99999999999.999999999d \
         | 99999999999999999999999999999999999.999999999999999999999999999999d | -0.99999d | 9999999999999999.99d",
        "+ 1u | -1 | 1u | -1 | 1u | -1 | 1u | -1 | 1u | -1 | 1u | 0.25f | -0.1 | year 1901 \
         | b0 | b10000000000000001 | b1 | 0d | 0.000000001d | -0.000000000000000000000000000001d | 0.00001d | 0.01d",
        "+ 2u | 127 | 0u | 32767 | 0u | 8388607 | 0u | 2147483647 | 0u | 9223372036854775807 | 0u \
         | 3.4e38f | 2.2250738585072014e-308 | year 0 | null | b0 | b0 \
         | 1234567890d | 12345678901.123456789d \
         | -12345678901234567890123456789012345.123456789012345678901234567890d | 0.00000d | 1234567.80d",
    ];
    for server in SERVERS {
        assert_eq!(rows(&format!("{server}/numbers")), expected, "{server}");
    }
    // MINIMAL metadata tells signs too.
    assert_eq!(rows("mysql/numbers_minimal"), expected);
}

#[test]
fn without_metadata_numbers_are_signed_until_the_schema_is_known() {
    let first = &rows("mariadb/numbers_no_log")[0];
    assert!(first.starts_with("+ -1 | -128 | -1 | -32768 | -1 | -8388608 | -1 | -2147483648 | -1 | "), "{first}");
}

#[test]
fn texts_and_bytes_come_as_they_were_stored() {
    let expected = [
        "+ 1 | 'ten' | 'été 🚀' | x636166e9 | '👩‍👩‍👧 ok' | 'xxxx...' of 300 | x00112233445566778899aabbccdd \
         | x000100 | 'tiny' | x74657874006e756c | 'medium' | 'long' | x00ff | xdeadbeef00 | '\u{1}' | '\u{2}' \
         | enum 2 | set 1101",
        "+ 2 | '' | '' | '' | '' | '' | '' | '' | '' | '' | '' | '' | '' | '' | '' | '' | enum 1 | set 0",
        "+ 3 | null | null | null | 'k' | null | null | null | null | null | null | null | null | null | null | null \
         | null | null",
        "+ 4 | 'a' | 'b' | 'c' | 'd' | 'e' | '' | x00 | 'f' | 'g' | 'h' | 'i' | 'j' | 'k' | 'l' | 'm' \
         | enum 3 | set 1111",
    ];
    for server in SERVERS {
        assert_eq!(rows(&format!("{server}/texts")), expected, "{server}");
        assert_eq!(rows(&format!("{server}/texts_minimal")), expected, "{server}");
    }
}

#[test]
fn times_keep_their_sign_and_every_digit_of_the_fraction() {
    let expected = [
        "+ 1 | 2024-02-29 | 12:34:56 | 12:34:56.7 | 12:34:56.78 | 12:34:56.789 | 12:34:56.7891 | 12:34:56.78912 \
         | 12:34:56.789123 | 2024-02-29 23:59:59 | 2024-02-29 23:59:59.9 | 2024-02-29 23:59:59.98 \
         | 2024-02-29 23:59:59.987 | 2024-02-29 23:59:59.9876 | 2024-02-29 23:59:59.98765 \
         | 2024-02-29 23:59:59.987654 | 2024-02-29 23:59:59Z | 2024-02-29 23:59:59.98Z | 2024-02-29 23:59:59.9876Z \
         | 2024-02-29 23:59:59.987654Z",
        "+ 2 | 9999-12-31 | -838:59:59 | -00:00:00.1 | -00:00:00.01 | -00:00:01.001 | -12:00:00.0001 \
         | -838:59:58.99999 | -838:59:58.999999 | 9999-12-31 23:59:59 | 1000-01-01 00:00:00.0 \
         | 1000-01-01 00:00:00.01 | 1000-01-01 00:00:00.001 | 1000-01-01 00:00:00.0001 | 1000-01-01 00:00:00.00001 \
         | 0001-01-01 00:00:00.000001 | 1970-01-01 00:00:01Z | 2038-01-19 03:14:07.99Z | 2038-01-19 03:14:07.0001Z \
         | 1970-01-01 00:00:01.000001Z",
        "+ 3 | 0000-00-00 | 00:00:00 | 00:00:00.0 | 00:00:00.00 | 00:00:00.000 | 00:00:00.0000 | 00:00:00.00000 \
         | 00:00:00.000000 | 0000-00-00 00:00:00 | 0000-00-00 00:00:00.0 | 0000-00-00 00:00:00.00 \
         | 0000-00-00 00:00:00.000 | 0000-00-00 00:00:00.0000 | 0000-00-00 00:00:00.00000 \
         | 0000-00-00 00:00:00.000000 | 0000-00-00 00:00:00Z | 0000-00-00 00:00:00.00Z | 0000-00-00 00:00:00.0000Z \
         | 0000-00-00 00:00:00.000000Z",
        "+ 4 | 2024-00-00 | 838:59:59 | 838:59:58.9 | -838:59:58.99 | -00:00:00.999 | -01:00:00.0000 \
         | -00:00:00.00001 | -00:00:00.000001 | 2024-02-00 01:02:03 | null | null | null | null | null | null | null \
         | null | null | null",
    ];
    for server in SERVERS {
        assert_eq!(rows(&format!("{server}/times")), expected, "{server}");
    }
}

#[test]
fn times_of_tables_older_than_fractions_are_read_too() {
    let expected = [
        "+ 1 | -838:59:59 | 2024-02-29 23:59:59 | 2024-02-29 23:59:59Z",
        "+ 2 | 12:34:56 | 1000-01-02 03:04:05 | null",
    ];
    assert_eq!(rows("mariadb/old_times"), expected);
}

#[test]
fn types_of_mariadb_alone_are_read() {
    let expected = [
        "+ 1 | '{\"a\": [1, 2, \"é\"]}' | x6ccd780cbaba102695645b8c6560 | x20010db8 | '\n' | 'x' \
         | geometry 0000000001020000000200000000000000000000000000000000000000000000000000f03f000000000000f03f \
         | geometry 000000000101000000000000000000f03f0000000000000040 | '\u{1}' | compressed 'abab...' of 300 \
         | compressed 'text...' of 500 | x006100620063 | null",
        "+ 2 | null | '' | '' | '' | null | null | null | null | compressed 'short' | compressed '' | '' | null",
        "+ 3 | null | null | null | null | null | null | null | null | compressed 'abab...' of 300 | null \
         | null | null",
    ];
    assert_eq!(rows("mariadb/own_types"), expected);
}

#[test]
fn types_of_mysql_alone_are_read() {
    let expected = [
        "+ 1 | json {\"a\": [1, 2, \"é\"]} | xe9 \
         | geometry 0000000001020000000200000000000000000000000000000000000000000000000000f03f000000000000f03f \
         | geometry 000000000101000000000000000000f03f0000000000000040 | vector 0000803f000020c07684df50 \
         | '\u{1}' | json {\"n\": [3, 1, 2], \"t\": [\"z\"]} | 2 | 3 | null | 'last'",
        "+ 2 | json null | null | null | null | null | null | json {\"t\": [\"x\", \"y\"]} | 4 | 6 | null | 'last'",
        "+ 3 | null | '' | null | null | null | null | null | 6 | 9 | null | null",
    ];
    assert_eq!(rows("mysql/own_types"), expected);
}

#[test]
fn stripped_zero_bytes_are_put_back_to_the_declared_length() {
    // BINARY(16), in a table map that tells its collation alone.
    for server in SERVERS {
        let padded = first_row(&format!("{server}/texts_minimal"), 6);
        assert_eq!(padded, *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\0\0", "{server}");
        // CHAR(10) is padded with nothing.
        assert_eq!(first_row(&format!("{server}/texts_minimal"), 1), *b"ten", "{server}");
    }
    // UUID, INET6, INET4, BINARY(4).
    assert_eq!(first_row("mariadb/own_types", 2), *b"\x6c\xcd\x78\x0c\xba\xba\x10\x26\x95\x64\x5b\x8c\x65\x60\0\0");
    assert_eq!(first_row("mariadb/own_types", 3), *b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(first_row("mariadb/own_types", 4), *b"\x0a\0\0\0");
    assert_eq!(first_row("mysql/own_types", 6), *b"\x01\0\0\0");
}

/// The value of a column in the first row, padded.
fn first_row(name: &str, column: usize) -> Vec<u8> {
    let mut values = find(name, |event| {
        let Event::Rows(rows) = event else {
            return None;
        };
        let row = rows.reader().next()?.unwrap();
        Some(rows.table().columns()[column].pad(row.after[column].as_bytes()?).into_owned())
    });
    values.swap_remove(0)
}

#[test]
fn a_timestamp_is_a_moment_and_shown_in_any_zone() {
    let moment = Timestamp { seconds: 1_709_251_199, micros: 987_654 };
    assert_eq!(format!("{:.6}", moment.to_utc()), "2024-02-29 23:59:59.987654");
    assert_eq!(format!("{:.3}", moment.to_offset(8 * 3600)), "2024-03-01 07:59:59.987");
    assert_eq!(moment.to_offset(-24 * 3600).to_string(), "2024-02-28 23:59:59");
    assert_eq!(moment.unix_micros(), 1_709_251_199_987_654);
    assert_eq!(Timestamp { seconds: u32::MAX, micros: 0 }.to_utc().to_string(), "2106-02-07 06:28:15");
    assert_eq!(Timestamp { seconds: 1, micros: 0 }.to_offset(-1).to_string(), "1970-01-01 00:00:00");
}

#[test]
fn a_value_takes_little_memory() {
    // Rows of hundreds of columns are kept in one vector.
    assert!(size_of::<Value<'_>>() <= 32, "{}", size_of::<Value<'_>>());
}
