//! Records against those of Debezium's own router.
//!
//! `debezium_records.jsonl` was written by `EventRouter` of Debezium 3.2 and the converters of Kafka Connect
//! 4.0 from the same rows as the ones below. Each line has the options, the payload and which columns the
//! table has, and then the record: texts as they are, other bytes in hexadecimal after `hex:`, or the error.

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tidings_event::{
    debezium::{Options, Record, Routed, Router},
    row::{Change, Column, Date, DateTime, Operation, Table, Time, Value},
};

const RECORDS: &str = include_str!("../fixtures/debezium_records.jsonl");
pub(crate) const NOW: i64 = 1_795_965_977_123;

#[derive(Deserialize)]
struct Case {
    case: String,
    options: Map<String, Json>,
    columns: String,
    payload: Option<String>,
    error: Option<String>,
    topic: Option<String>,
    partition: Option<i32>,
    key: Option<String>,
    value: Option<String>,
    headers: Option<Vec<(String, Option<String>)>>,
    timestamp: Option<i64>,
}

fn text(text: &str) -> Value<'static> {
    Value::Text(text.to_owned().into())
}

pub(crate) fn bytes(bytes: &[u8]) -> Value<'static> {
    Value::Bytes(bytes.to_vec().into())
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|place| u8::from_str_radix(&digits[place..place + 2], 16).unwrap()).collect()
}

fn show(bytes: Option<Vec<u8>>) -> Option<String> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.map(|bytes| String::from_utf8(bytes).unwrap_or_else(|broken| format!("hex:{}", hex(broken.as_bytes()))))
}

/// Seen with Debezium's connector on the binlog of MySQL.
#[test]
fn odd_values_are_what_debezium_makes_of_them() {
    let date = |declared: &str, nullable: bool| {
        let column = Column::new("x", declared);
        (if nullable { column } else { column.not_null() }, Value::Date(Date::default()))
    };
    let json = r#"{"a b": "c d, e: f\\" , "n": [1.5, "\" "] , "é\\": {}}"#;
    for ((column, value), expected) in [
        ((Column::new("x", "year(4)"), Value::Year(0)), Some("1900")),
        ((Column::new("x", "timestamp"), Value::Timestamp { seconds: 0, micros: 0 }), Some("1970-01-01T00:00:00Z")),
        (
            (Column::new("x", "timestamp(3)"), Value::Timestamp { seconds: 0, micros: 0 }),
            Some("1970-01-01T00:00:00.000Z"),
        ),
        (date("date", true), None),
        (date("date", false), Some("0")),
        ((Column::new("x", "datetime"), Value::DateTime(DateTime::default())), None),
        ((Column::new("x", "enum('a')"), Value::Enum(0)), Some("")),
        ((Column::new("x", "float(6,2)"), Value::Float(180.2)), Some("180.1999969482422")),
        ((Column::new("x", "float"), Value::Float(180.2)), Some("180.2")),
        ((Column::new("x", "int unsigned"), Value::Int(-1)), Some("4294967295")),
        ((Column::new("x", "mediumint unsigned"), Value::Int(-1)), Some("16777215")),
        ((Column::new("x", "bit(12)"), Value::Bit(0xabc)), Some("vAo=")),
        (
            (Column::new("x", "json"), Value::Json(json.into())),
            Some(r#"{"a b":"c d, e: f\\","n":[1.5,"\" "],"é\\":{}}"#),
        ),
        ((Column::new("x", "longtext"), text("{ }")), Some("{ }")),
    ] {
        let mut cells = plain(Value::Null);
        let declared = column.mysql_type.clone();
        cells.push((column, value));
        let record = route(&[("table.fields.additional.placement", "x:header")], cells).unwrap();
        assert_eq!(show(record.headers[1].1.clone()).as_deref(), expected, "{declared}");
    }
}

/// The columns that every outbox of Debezium has.
pub(crate) fn plain(payload: Value<'static>) -> Vec<(Column, Value<'static>)> {
    let payload_type = if matches!(payload, Value::Bytes(_)) { "longblob" } else { "longtext" };
    vec![
        (Column::new("id", "char(36)").key(), text("01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5")),
        (Column::new("aggregatetype", "varchar(255)").not_null(), text("Order")),
        (Column::new("aggregateid", "varchar(255)").not_null(), text("u1")),
        (Column::new("type", "varchar(255)").not_null(), text("OrderCreated")),
        (Column::new("payload", payload_type), payload),
    ]
}

/// A column of every type that a record can hold, with a value that is hard to get right.
pub(crate) fn typed() -> Vec<(Column, Value<'static>)> {
    let date = Date { year: 2026, month: 11, day: 29 };
    let moment = DateTime { date, hours: 15, minutes: 26, seconds: 17, micros: 123_456 };
    let clock = Time { is_negative: true, seconds: 1, micros: 500_000, ..Time::default() };
    vec![
        (Column::new("big", "bigint(20) unsigned").not_null(), Value::UInt(u64::MAX)),
        (Column::new("prec", "decimal(20,0)"), Value::Decimal("18446744073709551615".into())),
        (Column::new("money", "decimal(10,2)"), Value::Decimal("-12.50".into())),
        (Column::new("small", "int(11)").not_null(), Value::Int(7)),
        (Column::new("bin", "binary(4)").not_null(), bytes(&[1, 0xff])),
        (Column::new("flag", "bit(1)"), Value::Bit(1)),
        (Column::new("ratio", "float"), Value::Float(180.2)),
        (Column::new("amount", "double"), Value::Double(1e10)),
        (Column::new("state", "enum('new','done')"), Value::Enum(2)),
        (Column::new("marks", "set('a','b','c')"), Value::Set(0b101)),
        (Column::new("year", "year(4)"), Value::Year(2026)),
        (Column::new("day", "date"), Value::Date(date)),
        (Column::new("clock", "time(6)"), Value::Time(clock)),
        (Column::new("at3", "datetime(3)"), Value::DateTime(moment)),
        (Column::new("at6", "datetime(6)"), Value::DateTime(moment)),
        (Column::new("zoned", "timestamp(3)"), Value::Timestamp { seconds: 1_795_965_977, micros: 120_000 }),
        (Column::new("doc", "json"), Value::Json("{\"a\": 1}".into())),
        (Column::new("none", "varchar(9)"), Value::Null),
    ]
}

pub(crate) fn route(options: &[(&str, &str)], cells: Vec<(Column, Value<'_>)>) -> Result<Record, tidings_event::Error> {
    let mut configured = Options::default();
    configured.set("topic.prefix", "srv")?;
    options.iter().try_for_each(|(name, value)| configured.set(name, value))?;
    let (columns, values): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
    let table = Table { database: "shop".to_owned(), name: "outbox".to_owned(), columns };
    match Router::new(configured)?.route(&table, Operation::Insert, &Change::insert(&values), NOW)? {
        Routed::Record(record) => Ok(record),
        other => panic!("an insert is sent: {other:?}"),
    }
}

fn cells(case: &Case) -> Vec<(Column, Value<'static>)> {
    let payload = match case.payload.as_deref() {
        None => Value::Null,
        Some(payload) => payload.strip_prefix("hex:").map_or_else(|| text(payload), |digits| bytes(&unhex(digits))),
    };
    let mut cells = plain(payload);
    match case.columns.as_str() {
        "typed" => cells.extend(typed()),
        // The binlog holds the id without the two zero bytes at its end.
        "binary" => {
            cells[0] = (Column::new("id", "binary(16)").key(), bytes(&unhex("01a227ea022375a5a5a5a5a5a5a5")));
        }
        _ => cells.push((Column::new("t", "datetime(3)"), Value::Null)),
    }
    cells
}

#[test]
fn every_record_is_that_of_debezium() {
    let mut count = 0;
    for line in RECORDS.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let mut options: Vec<_> =
            case.options.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        // An option of the connector, not of the router: it is in the name of the case only.
        options.extend(case.case.strip_prefix("binary id ").map(|mode| ("binary.handling.mode", mode)));
        let name = &case.case;
        match (route(&options, cells(&case)), &case.error) {
            (Ok(record), None) => {
                let headers = record.headers.into_iter().map(|(name, value)| (name, show(value))).collect::<Vec<_>>();
                assert_eq!(Some(record.topic), case.topic, "{name}");
                assert_eq!(record.partition, case.partition, "{name}");
                assert_eq!(show(record.key), case.key, "{name}");
                assert_eq!(show(record.value), case.value, "{name}");
                assert_eq!(Some(headers), case.headers, "{name}");
                assert_eq!(Some(record.timestamp), case.timestamp, "{name}");
            }
            (Err(_), Some(_)) => {}
            (ours, theirs) => panic!("{name}: {ours:?} instead of {theirs:?}"),
        }
        count += 1;
    }
    assert!(count > 100, "the recorded cases are there");
}
