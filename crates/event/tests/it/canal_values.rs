//! Values of every type, as texts and numbers of `java.sql.Types`.

use tidings_event::{
    Error,
    canal::{EventType, FlatMessage, Stamp, Zone, sql_type, text},
    row::{Change, Column, Date, DateTime, Operation, Table, Time, Value},
};

fn shown(declared: &str, value: &Value<'_>) -> (Option<String>, i32) {
    let column = Column::new("x", declared);
    (text(&column, value, Zone::default()).map(|text| text.into_owned()), sql_type(&column, value))
}

fn assert_shown(declared: &str, value: &Value<'_>, expected: &str, number: i32) {
    assert_eq!(shown(declared, value), (Some(expected.to_owned()), number), "{declared} {value:?}");
}

const MOMENT: DateTime =
    DateTime { date: Date { year: 2026, month: 11, day: 29 }, hours: 15, minutes: 26, seconds: 7, micros: 120_045 };

#[test]
fn unsigned_integers_take_the_next_type_where_their_highest_bit_is_set() {
    for (declared, highest, sql, raised) in [
        ("tinyint(3) unsigned", 0x80_u64, -6, 5),
        ("smallint(5) unsigned", 0x8000, 5, 4),
        ("mediumint(8) unsigned", 0x80_0000, 4, 4),
        ("int(10) unsigned", 0x8000_0000, 4, -5),
        ("bigint(20) unsigned", 0x8000_0000_0000_0000, -5, 3),
    ] {
        let largest = (highest - 1) * 2 + 1;
        assert_shown(declared, &Value::UInt(highest - 1), &(highest - 1).to_string(), sql);
        assert_shown(declared, &Value::UInt(highest), &highest.to_string(), raised);
        assert_shown(declared, &Value::UInt(largest), &largest.to_string(), raised);
        // A decoder that knows no signs sees the largest number as -1.
        assert_shown(declared, &Value::Int(-1), &largest.to_string(), raised);
        assert_eq!(shown(declared, &Value::Null), (None, sql), "{declared}");
    }
    assert_shown("tinyint(4)", &Value::Int(-128), "-128", -6);
    assert_shown("mediumint(9)", &Value::Int(-1), "-1", 4);
    assert_shown("bigint(20)", &Value::Int(i64::MIN), "-9223372036854775808", -5);
}

#[test]
fn numbers_are_printed_as_java_prints_them() {
    assert_shown("float", &Value::Float(180.2), "180.2", 7);
    assert_shown("float", &Value::Float(16_777_216.0), "1.6777216E7", 7);
    assert_shown("double", &Value::Double(1e-5), "1.0E-5", 8);
    assert_shown("double", &Value::Double(100.0), "100.0", 8);
    assert_shown("decimal(20,4)", &Value::Decimal("-0.5000".into()), "-0.5000", 3);
    assert_shown("bit(64)", &Value::Bit(u64::MAX), "18446744073709551615", -7);
    assert_shown("enum('a','b')", &Value::Enum(2), "2", 4);
    assert_shown("set('a','b')", &Value::Set(3), "3", -7);
    assert_eq!(shown("set('a','b')", &Value::Null), (None, 2004));
    assert_shown("year(4)", &Value::Year(2026), "2026", 12);
    assert_shown("year(4)", &Value::Year(0), "0000", 12);
}

/// Seen with Canal's own decoder on the binlog of a server.
#[test]
fn decimals_lose_the_zeros_that_canal_loses() {
    for (stored, shown) in [
        ("0.0000", "0.0"),
        ("0.5000", "0.5000"),
        ("5.0000", "5.0"),
        ("-0.0001", "-0.0001"),
        ("12", "12"),
        ("0.00000000000000000000", "0.000000000000000000"),
        ("0.50000000000000000000", "0.500000000000000000"),
        ("0.00000000000000000001", "0.00000000000000000001"),
        ("1000000000.000000000", "1000000000.000000000"),
        ("é.®𐖗ઓ", "é.®𐖗ઓ"),
    ] {
        assert_shown("decimal(30,20)", &Value::Decimal(stored.into()), shown, 3);
    }
}

#[test]
fn texts_are_decoded_and_bytes_are_not() {
    assert_shown("varchar(9)", &Value::Text("小明🎈".into()), "小明🎈", 12);
    assert_shown("char(9)", &Value::Text("é".into()), "é", 1);
    assert_shown("longtext", &Value::Text("🎈".into()), "🎈", 2005);
    assert_shown("TEXT", &Value::Bytes("🎈".as_bytes().into()), "🎈", 2005);
    assert_shown("varchar(9)", &Value::Bytes((&[b'a', 0xff][..]).into()), "a\u{fffd}", 12);
    assert_shown("json", &Value::Json("{\"a\": \"🎈\"}".into()), "{\"a\": \"🎈\"}", 12);
    assert_eq!(shown("json", &Value::Null), (None, 1111));
    for declared in ["binary(16)", "varbinary(16)", "blob", "longblob", "char(16) binary", "point"] {
        assert_shown(declared, &Value::Bytes((&[0x41, 0, 0x7f, 0x80, 0xff][..]).into()), "A\0\u{7f}\u{80}\u{ff}", 2004);
        assert_eq!(shown(declared, &Value::Null), (None, 2004));
    }
    // The binlog leaves zero bytes at the end of BINARY out, and so does Canal.
    assert_shown("binary(16)", &Value::Bytes((&[1, 2][..]).into()), "\u{1}\u{2}", 2004);
    // A row that was read from the table has them, and is shown as the same.
    assert_shown("binary(4)", &Value::Bytes((&[1, 0, 2, 0][..]).into()), "\u{1}\0\u{2}", 2004);
    assert_shown("binary(2)", &Value::Bytes((&[0, 0][..]).into()), "", 2004);
    assert_shown("varbinary(4)", &Value::Bytes((&[1, 0][..]).into()), "\u{1}\0", 2004);
    assert_shown("uuid", &Value::Text("01a227ea-0223-75a5".into()), "01a227ea-0223-75a5", 1);
}

#[test]
fn moments_have_exactly_the_declared_digits_of_fraction() {
    for (digits, fraction) in ["", ".1", ".12", ".120", ".1200", ".12004", ".120045"].into_iter().enumerate() {
        let suffix = if digits == 0 { String::new() } else { format!("({digits})") };
        let expected = format!("2026-11-29 15:26:07{fraction}");
        assert_shown(&format!("datetime{suffix}"), &Value::DateTime(MOMENT), &expected, 93);
        let timestamp = Value::Timestamp { seconds: 1_795_965_967, micros: 120_045 };
        assert_shown(&format!("timestamp{suffix}"), &timestamp, &expected, 93);
        let time = Time { is_negative: true, hours: 838, minutes: 59, seconds: 7, micros: 120_045 };
        assert_shown(&format!("time{suffix}"), &Value::Time(time), &format!("-838:59:07{fraction}"), 92);
    }
    assert_shown("date", &Value::Date(MOMENT.date), "2026-11-29", 91);
    assert_shown("date", &Value::Date(Date::default()), "0000-00-00", 91);
    assert_shown("datetime(2)", &Value::DateTime(DateTime::default()), "0000-00-00 00:00:00.00", 93);
    let zero = Value::Timestamp { seconds: 0, micros: 0 };
    assert_shown("timestamp", &zero, "0000-00-00 00:00:00", 93);
}

#[test]
fn timestamps_are_shown_in_the_zone_that_was_set_and_nothing_else_is() {
    let column = Column::new("at", "timestamp");
    let shown = |zone: &str, seconds| {
        text(&column, &Value::Timestamp { seconds, micros: 0 }, zone.parse().unwrap()).unwrap().into_owned()
    };
    assert_eq!(shown("UTC", 1_795_965_967), "2026-11-29 15:26:07");
    assert_eq!(shown("+08:00", 1_795_965_967), "2026-11-29 23:26:07");
    assert_eq!(shown("-09:30", 1_795_965_967), "2026-11-29 05:56:07");
    assert_eq!(shown("+08:00", 0), "0000-00-00 00:00:00", "the zero timestamp is in no zone");
    assert_eq!(shown("-18:00", 1), "1969-12-31 06:00:01");
    let moment = Value::DateTime(MOMENT);
    assert_eq!(text(&column, &moment, "+08:00".parse().unwrap()).unwrap(), "2026-11-29 15:26:07");
    for zone in ["", "8", "+8:00", "+08", "+19:00", "+08:60", "08:00", "+0é:00", "Asia/Shanghai", "++8:00"] {
        assert!(matches!(zone.parse::<Zone>(), Err(Error::Option { .. })), "{zone}");
    }
}

#[test]
fn columns_that_an_image_does_not_have_are_left_out() {
    let columns = ["id", "a", "b", "c"].map(|name| Column::new(name, "int(11)"));
    let table = Table { database: "shop".to_owned(), name: "t".to_owned(), columns: columns.into() };
    let before = [Value::Int(1), Value::Absent, Value::Int(3)];
    let after = [Value::Absent, Value::Int(2), Value::Int(4)];
    let changes = [Change::update(&before, &after)];
    let stamp = Stamp { id: 1, event_seconds: 0, now_millis: 0, gtid: "" };
    let message = FlatMessage::of_rows(&table, Operation::Update, &changes, stamp, Zone::default());
    let json = String::from_utf8(message.to_json()).unwrap();
    assert!(json.starts_with(r#"{"data":[{"a":"2","b":"4"}],"#), "{json}");
    assert!(json.contains(r#""old":[{"b":"3"}],"pkNames":null"#), "{json}");
    assert!(json.contains(r#""mysqlType":{"a":"int(11)","b":"int(11)"}"#), "{json}");
}

#[test]
fn zeros_of_different_sign_are_different() {
    let table = Table { database: "d".to_owned(), name: "t".to_owned(), columns: vec![Column::new("x", "double")] };
    let (before, after) = ([Value::Double(0.0)], [Value::Double(-0.0)]);
    let changes = [Change::update(&before, &after)];
    let stamp = Stamp { id: 1, event_seconds: 0, now_millis: 0, gtid: "" };
    let message = FlatMessage::of_rows(&table, Operation::Update, &changes, stamp, Zone::default());
    assert_eq!(message.old.unwrap()[0].get("x").unwrap().as_deref(), Some("0.0"));
}

#[test]
fn the_words_for_what_happened_are_those_of_canal() {
    let words =
        [EventType::Erase, EventType::Truncate, EventType::Rename, EventType::CreateIndex, EventType::DropIndex];
    assert_eq!(words.map(EventType::as_str), ["ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"]);
    assert_eq!(EventType::from(Operation::Delete).as_str(), "DELETE");
}

#[test]
fn what_is_no_flat_message_is_an_error_and_not_a_panic() {
    for bytes in [&b""[..], b"{}", b"[]", b"\xff", br#"{"data":[{"a":1}]}"#] {
        assert!(matches!(FlatMessage::from_json(bytes), Err(Error::Json { .. })));
    }
}
