//! The records of Debezium's outbox event router.

use std::fmt::Write;

use tidings_backbone::relay::Record;
use tidings_event::row::{Change, Operation};

use super::{Press, event, own_row, own_table, shop_row, shop_table};

fn shown(record: &Record) -> String {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut shown = format!(
        "{} {:?}\nkey {:?}\nvalue {:?}\n",
        record.topic,
        record.timestamp_ms,
        text(&record.key),
        text(&record.value)
    );
    for (name, value) in &record.headers {
        writeln!(shown, "header {name} {:?}", text(value)).unwrap();
    }
    shown
}

#[test]
fn an_event_of_our_own_is_routed_by_its_family() {
    let routes = r#"[{"format": {"kind": "debezium",
        "options": {"table.fields.additional.placement": "type:header:eventType,version:header"}}}]"#;
    let mut press = Press::new(routes);
    press.insert(&own_table(), &[own_row(&event("17", 1))]);
    assert_eq!(&*press.records[0].order_key, "17");
    insta::assert_snapshot!(shown(&press.records[0]), @r#"
    outbox.event.thing Some(1795965977500)
    key Some("17")
    value Some("{\"text\": \"naïve \\ud83d\\ude00 😀\", \"n\": 1.50}")
    header id Some("01a227ea-0223-7101-8101-010101010101")
    header eventType Some("thing.made")
    header version Some("3")
    "#);
}

#[test]
fn a_strangers_row_is_routed_as_the_connector_was_configured() {
    let routes = r#"[{"format": {"kind": "debezium", "options": {
        "table.field.event.timestamp": "created_at",
        "table.expand.json.payload": "true",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "route.topic.replacement": "shop.${routedByValue}"}}}]"#;
    let mut press = Press::new(routes);
    press.insert(&shop_table(), &[shop_row(7, "o-1", Some(r#"{"total": 1.50}"#))]);
    assert_eq!((&*press.records[0].event_id, &*press.records[0].order_key), ("7", "o-1"));
    insta::assert_snapshot!(shown(&press.records[0]), @r#"
    shop.Order Some(1795965977123)
    key Some("o-1")
    value Some("{\"total\":1.5}")
    header id Some("7")
    "#);
}

#[test]
fn an_updated_row_is_passed_over_or_stops_the_relay_as_configured() {
    let row = shop_row(7, "o-1", Some("{}"));
    let update = [Change::update(&row, &row)];
    let mut press = Press::new(r#"[{"format": {"kind": "debezium"}}]"#);
    press.push(&shop_table(), Operation::Update, &update);
    press.push(&shop_table(), Operation::Delete, &[Change::delete(&row)]);
    assert!(press.records.is_empty() && press.dead.is_empty());
    let strict = r#"[{"format": {"kind": "debezium", "options": {"table.op.invalid.behavior": "fatal"}}}]"#;
    assert!(Press::new(strict).try_push(&shop_table(), Operation::Update, &update).is_err());
}
