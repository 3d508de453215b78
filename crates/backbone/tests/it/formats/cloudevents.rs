//! CloudEvents.

use tidings_event::{
    cloudevents,
    row::{Change, Operation},
};

use super::{Press, event, own_row, own_table, shop_names, shop_row, shop_table, table, value};

const SHOP: &str = r#"[{"format": {"kind": "cloudevents-json", "source": "/shop", "topic": "shop.{type}",
    "extensions": {"tenant": "tenant"}}}]"#;

#[test]
fn an_event_of_our_own_is_what_the_event_says() {
    let mut press = Press::new("[{}]");
    // Its id ends in a zero byte, which the binlog does not show.
    let event = event("17", 0);
    press.insert(&own_table(), &[own_row(&event)]);
    let record = &press.records[0];
    assert_eq!(value(record), cloudevents::json::encode(&event, "/tidings").unwrap());
    assert_eq!(cloudevents::json::decode(value(record).as_bytes()).unwrap(), event);
    assert_eq!((&*record.topic, &*record.order_key), ("tidings.thing", "17"));
    assert_eq!(record.key.as_deref(), Some(&b"17"[..]));
    assert_eq!(*record.event_id, event.id.to_string());
    assert_eq!(record.timestamp_ms, Some(event.occurred_at.0));
    let (name, media_type) = &record.headers[0];
    assert_eq!(&**name, "content-type");
    assert_eq!(media_type.as_deref(), Some(&b"application/cloudevents+json; charset=UTF-8"[..]));
    insta::assert_snapshot!(value(record), @r#"{"specversion":"1.0","id":"01a227ea-0223-7000-8000-000000000000","source":"/tidings","type":"thing.made","subject":"17:0","time":"2026-11-29T15:26:17.123Z","datacontenttype":"application/json","partitionkey":"17","sequence":"00000000000000000003","aggregatetype":"thing","schemaversion":1,"requestid":"r-1","data":{"text": "naïve \ud83d\ude00 😀", "n": 1.50}}"#);
}

#[test]
fn protobuf_is_what_the_event_says() {
    let mut press = Press::new(r#"[{"format": {"kind": "cloudevents-protobuf", "source": "/here"}}]"#);
    let event = event("17", 1);
    press.insert(&own_table(), &[own_row(&event)]);
    let record = &press.records[0];
    assert_eq!(record.value.as_deref().unwrap(), cloudevents::protobuf::encode(&event, "/here").unwrap());
    assert_eq!(record.headers[0].1.as_deref(), Some(&b"application/cloudevents+protobuf"[..]));
}

#[test]
fn only_inserts_are_events() {
    let mut press = Press::new("[{}]");
    let row = own_row(&event("17", 1));
    press.push(&own_table(), Operation::Update, &[Change::update(&row, &row)]);
    press.push(&own_table(), Operation::Delete, &[Change::delete(&row)]);
    assert!(press.records.is_empty() && press.dead.is_empty());
}

#[test]
fn a_strangers_row_is_an_event_by_the_names_of_its_columns() {
    let mut press = Press::new(SHOP);
    press.insert(&shop_table(), &[shop_row(u64::MAX, "o-1", Some(r#"{"total": 1.50, "note": "😀"}"#))]);
    let record = &press.records[0];
    assert_eq!((&*record.topic, &*record.order_key), ("shop.OrderPlaced", "o-1"));
    insta::assert_snapshot!(value(record), @r#"{"specversion":"1.0","id":"18446744073709551615","source":"/shop","type":"OrderPlaced","subject":"o-1","time":"2026-11-29T15:26:17.123Z","datacontenttype":"application/json","partitionkey":"o-1","aggregatetype":"Order","tenant":"-5","data":{"total": 1.50, "note": "😀"}}"#);
}

#[test]
fn a_payload_that_is_no_json_travels_as_what_it_is() {
    let routes = r#"[{"format": {"kind": "cloudevents-json", "topic": "shop", "content_type": "application/avro"}}]"#;
    let mut press = Press::new(routes);
    let mut row = shop_row(1, "o-1", None);
    row[4] = tidings_event::row::Value::Bytes(vec![0xff, 0x00].into());
    press.insert(&shop_table(), &[row, shop_row(2, "o-2", Some("plain")), shop_row(3, "o-3", None)]);
    assert!(value(&press.records[0]).ends_with(r#""data_base64":"/wA="}"#), "{}", value(&press.records[0]));
    assert!(value(&press.records[1]).ends_with(r#""data":"plain"}"#));
    assert!(!value(&press.records[2]).contains("data\":"));
}

#[test]
fn where_all_columns_are_there_a_strangers_event_has_the_same_bytes_as_ours() {
    for kind in ["cloudevents-json", "cloudevents-protobuf"] {
        let mut press = Press::new(&format!(r#"[{{"format": {{"kind": "{kind}", "topic": "t"}}}}]"#));
        let event = event("17", 1);
        let mut row = own_row(&event);
        let mut columns = own_table().definition.columns;
        columns.push(tidings_event::row::Column::new("other", "int(11)"));
        // A text as id makes the table a stranger's.
        columns[1] = tidings_event::row::Column::new("event_id", "char(36)");
        row[1] = tidings_event::row::Value::Text(event.id.to_string().into());
        press.insert(&table("shop", "outbox", columns.clone(), &Default::default()), &[row.clone()]);
        let expected = match kind {
            "cloudevents-json" => cloudevents::json::encode(&event, "/tidings").unwrap().into_bytes(),
            _ => cloudevents::protobuf::encode(&event, "/tidings").unwrap(),
        };
        assert_eq!(press.records[0].value.as_deref(), Some(&*expected), "{kind}");
        assert_ne!(shop_names(), Default::default());
    }
}
