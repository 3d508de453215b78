//! The options of the router under Debezium's names.

use tidings_event::{
    Error,
    debezium::{BigintUnsigned, BinaryHandling, Converter, OnUpdate, Options, Place, Placement, Routed, Router},
    row::{Change, Column, Operation, Table, Value},
};

fn options(list: &[(&str, &str)]) -> Result<Options, Error> {
    let mut options = Options::default();
    list.iter().try_for_each(|(name, value)| options.set(name, value))?;
    Ok(options)
}

#[test]
fn a_connectors_configuration_can_be_taken_over() {
    let taken = options(&[
        ("table.field.event.id", "event_id"),
        ("table.field.event.key", "event_key"),
        ("table.field.event.type", "event_type"),
        ("table.field.event.payload", "body"),
        ("table.field.event.timestamp", "at"),
        ("table.field.event.schema.version", "version"),
        ("route.by.field", "kind"),
        ("route.topic.regex", "(.*)"),
        ("route.topic.replacement", "t.$1"),
        ("route.tombstone.on.empty.payload", "TRUE"),
        ("table.fields.additional.placement", "type:header:eventType, part : PARTITION ,x:envelope"),
        ("table.field.additional.missing", "ignore"),
        ("table.expand.json.payload", "true"),
        ("table.json.payload.null.behavior", "optional_bytes"),
        ("table.json.payload.empty.array.behavior", "optional_string"),
        ("table.op.invalid.behavior", "fatal"),
        ("binary.handling.mode", "base64-url-safe"),
        ("bigint.unsigned.handling.mode", "precise"),
        ("topic.prefix", "srv"),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("key.converter.schemas.enable", "false"),
        ("value.converter", "io.debezium.converters.BinaryDataConverter"),
        ("value.converter.schemas.enable", "false"),
    ])
    .unwrap();
    let placement =
        |column: &str, place, alias: &str| Placement { column: column.to_owned(), place, alias: alias.to_owned() };
    let text = |text: &str| text.to_owned();
    let expected = Options {
        event_id: text("event_id"),
        event_key: text("event_key"),
        payload: text("body"),
        timestamp: Some(text("at")),
        schema_version: Some(text("version")),
        route_by: text("kind"),
        topic_regex: text("(.*)"),
        topic_replacement: text("t.$1"),
        tombstone_on_empty_payload: true,
        placements: vec![
            placement("type", Place::Header, "eventType"),
            placement("part", Place::Partition, "part"),
            placement("x", Place::Envelope, "x"),
        ],
        ignore_missing_placements: true,
        expand_json_payload: true,
        keep_json_nulls: true,
        keep_json_empty_arrays: true,
        on_update: OnUpdate::Fatal,
        binary_handling: BinaryHandling::Base64UrlSafe,
        bigint_unsigned: BigintUnsigned::Precise,
        topic_prefix: text("srv"),
        key_converter: Converter::String,
        key_schemas: false,
        value_converter: Converter::Binary,
        value_schemas: false,
    };
    assert_eq!(taken, expected);
    assert_eq!(Router::new(taken.clone()).unwrap().options(), &taken);
}

#[test]
fn what_is_no_option_or_no_value_of_it_is_named() {
    for (name, value) in [
        ("table.field.event.payload.id", "x"),
        ("table.op.invalid.behavior", "panic"),
        ("table.expand.json.payload", "yes"),
        ("binary.handling.mode", "hexadecimal"),
        ("key.converter", "io.confluent.connect.avro.AvroConverter"),
        ("table.fields.additional.placement", "type"),
        ("table.fields.additional.placement", "type:body"),
        ("table.fields.additional.placement", "type:header:a:b"),
    ] {
        let error = options(&[(name, value)]).unwrap_err();
        assert!(matches!(&error, Error::Option { name: named, .. } if named == name), "{error}");
    }
    let broken = options(&[("route.topic.regex", "(")]).unwrap();
    assert!(matches!(Router::new(broken), Err(Error::Pattern { pattern, .. }) if pattern == "("));
}

fn route(list: &[(&str, &str)], operation: Operation) -> Result<Routed, Error> {
    let names = ["id", "aggregatetype", "aggregateid", "payload", "part"];
    let columns = names.map(|name| Column::new(name, "varchar(9)")).into();
    let table = Table { database: "d".to_owned(), name: "outbox".to_owned(), columns };
    let row = names.map(|name| Value::Text(name.into()));
    let change = match operation {
        Operation::Insert => Change::insert(&row),
        Operation::Update => Change::update(&row, &row),
        Operation::Delete => Change::delete(&row),
    };
    Router::new(options(list).unwrap()).unwrap().route(&table, operation, &change, 0)
}

#[test]
fn only_inserts_are_sent() {
    assert!(matches!(route(&[], Operation::Insert), Ok(Routed::Record(_))));
    assert!(matches!(route(&[], Operation::Delete), Ok(Routed::Deleted)));
    assert!(matches!(route(&[], Operation::Update), Ok(Routed::Updated(OnUpdate::Warn))));
    let error = [("table.op.invalid.behavior", "error")];
    assert!(matches!(route(&error, Operation::Update), Ok(Routed::Updated(OnUpdate::Error))));
    let fatal = [("table.op.invalid.behavior", "fatal")];
    assert!(matches!(route(&fatal, Operation::Update), Err(Error::Updated)));
    assert!(matches!(route(&fatal, Operation::Delete), Ok(Routed::Deleted)));
}

#[test]
fn a_column_that_is_missing_or_does_not_fit_is_named() {
    for (option, value, column) in [
        ("table.field.event.id", "x", "x"),
        ("table.field.event.key", "x", "x"),
        ("table.field.event.payload", "x", "x"),
        ("table.field.event.timestamp", "x", "x"),
        ("table.field.event.timestamp", "part", "part"),
        ("route.by.field", "x", "x"),
        ("table.fields.additional.placement", "x:header", "x"),
        ("table.fields.additional.placement", "part:partition", "part"),
    ] {
        let error = route(&[(option, value)], Operation::Insert).unwrap_err();
        assert!(matches!(&error, Error::Column { name, .. } if name == column), "{option}: {error}");
    }
    let ignored = [("table.fields.additional.placement", "x:header"), ("table.field.additional.missing", "ignore")];
    let Routed::Record(record) = route(&ignored, Operation::Insert).unwrap() else { panic!("an insert is sent") };
    assert_eq!(record.headers, [("id".to_owned(), Some(b"id".to_vec()))]);
}
