//! Canal's flat messages.

use tidings_event::row::{Change, Operation};

use super::{Press, event, own_row, own_table, shop_row, shop_table, value};

#[test]
fn an_event_of_our_own_is_a_row_of_a_flat_message() {
    let mut press = Press::new(r#"[{"format": {"kind": "canal", "topic": "example"}}]"#);
    press.insert(&own_table(), &[own_row(&event("17", 1))]);
    let record = &press.records[0];
    assert_eq!((&*record.topic, record.partition, &record.key), ("example", Some(0), &None));
    assert!(record.headers.is_empty());
    assert_eq!((&*record.event_id, &*record.order_key), (&*event("17", 1).id.to_string(), "17"));
    insta::assert_snapshot!(value(record), @r#"{"data":[{"seq":"7","event_id":"\u0001¢'ê\u0002#q\u0001\u0001\u0001\u0001\u0001\u0001\u0001\u0001","event_type":"thing.made","schema_version":"1","aggregate_type":"thing","aggregate_id":"17:1","event_key":"17","version":"3","occurred_at":"1795965977123","payload":"{\"text\": \"naïve \\ud83d\\ude00 😀\", \"n\": 1.50}","metadata":"{\"request_id\":\"r-1\"}"}],"database":"tidings","es":1795965977000,"gtid":"0-1-7","id":1,"isDdl":false,"mysqlType":{"seq":"bigint(20)","event_id":"binary(16)","event_type":"varchar(255)","schema_version":"bigint(20)","aggregate_type":"varchar(255)","aggregate_id":"varchar(255)","event_key":"varchar(255)","version":"bigint(20)","occurred_at":"bigint(20)","payload":"longtext","metadata":"longtext"},"old":null,"pkNames":["seq"],"sql":"","sqlType":{"seq":-5,"event_id":2004,"event_type":12,"schema_version":-5,"aggregate_type":12,"aggregate_id":12,"event_key":12,"version":-5,"occurred_at":-5,"payload":2005,"metadata":2005},"table":"outbox","ts":1795965977500,"type":"INSERT"}"#);
}

#[test]
fn updates_and_deletes_are_messages_too() {
    let mut press = Press::new(r#"[{"format": {"kind": "canal"}}]"#);
    let (before, after) = (shop_row(1, "a", Some("{}")), shop_row(1, "b", Some("{}")));
    press.push(&shop_table(), Operation::Update, &[Change::update(&before, &after)]);
    press.push(&shop_table(), Operation::Delete, &[Change::delete(&after)]);
    assert!(value(&press.records[0]).contains(r#""old":[{"aggregateid":"a"}]"#), "{}", value(&press.records[0]));
    assert!(value(&press.records[1]).contains(r#""type":"DELETE""#));
    assert!(value(&press.records[0]).contains(r#""id":1,"#) && value(&press.records[1]).contains(r#""id":2,"#));
}

#[test]
fn rows_are_spread_by_the_hash_of_their_columns() {
    let routes = r#"[{"format": {"kind": "canal", "dynamic_topic": "shop\\..*", "partitions_num": 3,
        "partition_hash": "shop.outbox:aggregateid"}}]"#;
    let mut press = Press::new(routes);
    let rows: Vec<_> = (0..20).map(|id| shop_row(id, &format!("o-{id}"), Some("{}"))).collect();
    press.insert(&shop_table(), &rows);
    let places: Vec<_> = press.records.iter().map(|record| (&*record.topic, record.partition)).collect();
    assert_eq!(places, [("shop_outbox", Some(0)), ("shop_outbox", Some(1)), ("shop_outbox", Some(2))]);
}

#[test]
fn a_message_that_is_too_large_is_written_as_several_and_a_row_that_is_becomes_a_dead_letter() {
    let mut press = Press::new(r#"[{"format": {"kind": "canal"}}]"#);
    let large = format!(r#""{}""#, "x".repeat(4_000));
    let half = format!(r#""{}""#, "x".repeat(1_500));
    let rows = [
        shop_row(1, "a", Some(&half)),
        shop_row(2, "b", Some(&large)),
        shop_row(3, "c", Some(&half)),
        shop_row(4, "b", Some("{}")),
        shop_row(5, "d", Some(&half)),
    ];
    press.insert(&shop_table(), &rows);
    press.insert(&shop_table(), &[shop_row(6, "b", Some("{}")), shop_row(7, "a", Some("{}"))]);
    let dead: Vec<_> = press.dead.iter().map(|letter| letter.event_id.as_deref().unwrap()).collect();
    assert_eq!(dead, ["2", "4", "6"]);
    let all: String = press.records.iter().map(value).collect();
    for id in [1, 3, 5, 7] {
        assert_eq!(all.matches(&format!(r#"{{"id":"{id}""#)).count(), 1, "{id}");
    }
    for id in [2, 4, 6] {
        assert!(!all.contains(&format!(r#"{{"id":"{id}""#)), "{id}");
    }
    assert!(press.records.iter().all(|record| record.bytes() <= 4_000));
}
