//! What holds for any row of any table, also for values that do not fit their column.

use std::num::NonZeroU32;

use proptest::{collection::vec, option, prelude::*, sample::select};
use tidings_event::{
    Error,
    canal::{FlatMessage, Partitioning, Stamp, Zone, text},
    debezium::{Options, Routed, Router},
    row::{Change, Column, Date, DateTime, Operation, Table, Time, Value},
};

const DECLARED: [&str; 30] = [
    "tinyint unsigned",
    "smallint(5)",
    "mediumint unsigned zerofill",
    "int",
    "bigint(20) unsigned",
    "decimal(10,2)",
    "decimal",
    "float",
    "float(6,2)",
    "double",
    "bit",
    "bit(64)",
    "bit(999)",
    "char(3)",
    "varchar(9) binary",
    "longtext",
    "binary(16)",
    "blob",
    "enum('a','b')",
    "set('a','b')",
    "json",
    "year",
    "date",
    "time(3)",
    "datetime(6)",
    "timestamp(2)",
    "timestamp(9)",
    "uuid",
    "",
    "x(y",
];

prop_compose! {
    fn any_date()(year in any::<u16>(), month in any::<u8>(), day in any::<u8>()) -> Date {
        Date { year, month, day }
    }
}

fn any_value() -> impl Strategy<Value = Value<'static>> {
    let clock = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u32>());
    prop_oneof![
        Just(Value::Absent),
        Just(Value::Null),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any::<f32>().prop_map(Value::Float),
        any::<f64>().prop_map(Value::Double),
        "-?[0-9]{0,30}(\\.[0-9]{0,30})?|\\PC{0,9}".prop_map(|text| Value::Decimal(text.into())),
        "(?s).{0,24}".prop_map(|text| Value::Text(text.into())),
        "\\{\"(?s).{0,9}\": [0-9]{1,20}\\}|(?s).{0,24}".prop_map(|text| Value::Json(text.into())),
        vec(any::<u8>(), 0..24).prop_map(|bytes| Value::Bytes(bytes.into())),
        any::<u64>().prop_map(Value::Bit),
        any::<u16>().prop_map(Value::Year),
        any_date().prop_map(Value::Date),
        (any_date(), clock).prop_map(|(date, (hours, minutes, seconds, micros))| {
            Value::DateTime(DateTime { date, hours, minutes, seconds, micros })
        }),
        (any::<bool>(), any::<u16>(), clock).prop_map(|(is_negative, hours, (_, minutes, seconds, micros))| {
            Value::Time(Time { is_negative, hours, minutes, seconds, micros })
        }),
        (any::<i64>(), any::<u32>()).prop_map(|(seconds, micros)| Value::Timestamp { seconds, micros }),
        any::<u16>().prop_map(Value::Enum),
        any::<u64>().prop_map(Value::Set),
        vec(any::<u8>(), 0..24).prop_map(|bytes| Value::Geometry(bytes.into())),
    ]
}

fn any_table() -> impl Strategy<Value = Table> {
    let column = (select(&DECLARED[..]), any::<bool>(), any::<bool>());
    (vec(column, 1..6), "\\PC{0,9}").prop_map(|(columns, name)| {
        let columns = columns.into_iter().enumerate().map(|(place, (declared, is_key, is_nullable))| {
            let column = Column::new(format!("c{place}"), declared);
            let column = if is_nullable { column } else { column.not_null() };
            if is_key { column.key() } else { column }
        });
        Table { database: "d".to_owned(), columns: columns.collect(), name }
    })
}

type Images = Vec<(Vec<Value<'static>>, Vec<Value<'static>>)>;

fn any_rows() -> impl Strategy<Value = (Table, Images)> {
    any_table().prop_flat_map(|table| {
        let image = || vec(any_value(), 0..=table.columns.len());
        (Just(table.clone()), vec((image(), image()), 0..6))
    })
}

proptest! {
    #[test]
    fn every_row_event_is_a_message_that_reads_back_as_itself(
        (table, images) in any_rows(),
        operation in select(&[Operation::Insert, Operation::Update, Operation::Delete][..]),
        list in select(&["d..*:$pk$", "d.*:c0^c1", "d.*", "x"][..]),
        partitions in 1..9_u32,
    ) {
        let changes: Vec<_> = images.iter().map(|(before, after)| Change { before, after }).collect();
        let stamp = Stamp { id: i64::MAX, event_seconds: u32::MAX, now_millis: i64::MIN, gtid: "🎈" };
        let message = FlatMessage::of_rows(&table, operation, &changes, stamp, Zone::default());
        prop_assert_eq!(&FlatMessage::from_json(&message.to_json()).unwrap(), &message);
        prop_assert_eq!(message.old.is_some(), operation == Operation::Update && !images.is_empty());

        let rule = Partitioning::hash(list, true).unwrap().rule_for("d", &table.name);
        let parts = rule.split(message.clone(), NonZeroU32::new(partitions).unwrap());
        prop_assert!(parts.is_sorted_by(|(left, _), (right, _)| left < right));
        prop_assert!(parts.iter().all(|(place, _)| *place < partitions));
        let mut rows: Vec<_> = message.data.iter().flatten().collect();
        for row in parts.iter().flat_map(|(_, part)| part.data.iter().flatten()) {
            let place = rows.iter().position(|other| *other == row);
            prop_assert!(place.is_some());
            rows.remove(place.unwrap_or_default());
        }
        prop_assert!(rows.is_empty(), "no row is lost");
    }

    #[test]
    fn every_row_is_a_record_or_an_error_that_names_its_column(
        (table, images) in any_rows(),
        converter in select(&["JsonConverter", "StringConverter", "ByteArrayConverter"][..]),
        place in select(&["header", "envelope", "partition"][..]),
        (expand, tombstone, schemas) in (any::<bool>(), any::<bool>(), any::<bool>()),
        mode in option::of(select(&["hex", "base64", "base64-url-safe"][..])),
    ) {
        let mut options = Options::default();
        for (name, value) in [
            ("table.field.event.id", "c0"),
            ("table.field.event.key", "c0"),
            ("table.field.event.payload", "c1"),
            ("route.by.field", "c0"),
            ("table.fields.additional.placement", &format!("c2:{place}")),
            ("table.field.additional.missing", "ignore"),
            ("key.converter", converter),
            ("value.converter", converter),
            ("table.expand.json.payload", &expand.to_string()),
            ("route.tombstone.on.empty.payload", &tombstone.to_string()),
            ("value.converter.schemas.enable", &schemas.to_string()),
            ("binary.handling.mode", mode.unwrap_or("bytes")),
        ] {
            options.set(name, value).unwrap();
        }
        let router = Router::new(options).unwrap();
        for (_, after) in &images {
            match router.route(&table, Operation::Insert, &Change::insert(after), 7) {
                Ok(Routed::Record(record)) if converter == "JsonConverter" => {
                    for json in record.key.iter().chain(&record.value) {
                        prop_assert!(serde_json::from_slice::<serde_json::Value>(json).is_ok());
                    }
                }
                Ok(routed) => prop_assert!(matches!(routed, Routed::Record(_))),
                Err(Error::Column { .. }) => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    #[test]
    fn every_number_reads_back_from_the_text_that_java_would_print(single in any::<f32>(), double in any::<f64>()) {
        let shown = |declared: &str, value| {
            text(&Column::new("x", declared), &value, Zone::default()).unwrap().into_owned()
        };
        prop_assert_eq!(shown("float", Value::Float(single)).parse::<f32>().unwrap(), single);
        prop_assert_eq!(shown("double", Value::Double(double)).parse::<f64>().unwrap(), double);
    }

    #[test]
    fn any_bytes_as_a_flat_message_are_no_panic(bytes in vec(any::<u8>(), 0..64)) {
        if let Ok(message) = FlatMessage::from_json(&bytes) {
            prop_assert_eq!(FlatMessage::from_json(&message.to_json()).unwrap(), message);
        }
    }
}
