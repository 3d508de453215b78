//! Rows that cannot be published, and those behind them.

use tidings_event::row::Value;

use super::{Press, event, own_row, own_table, shop_row, shop_table};

const SHOP: &str = r#"[{"format": {"kind": "cloudevents-json", "topic": "shop"}}]"#;

#[test]
fn a_malformed_row_parks_its_key_and_other_keys_flow() {
    let mut press = Press::new(SHOP);
    let rows = [
        shop_row(1, "a", Some("{}")),
        shop_row(2, "b", Some("{")),
        shop_row(3, "a", Some("{}")),
        shop_row(4, "b", Some("{}")),
        shop_row(5, "c", Some("{}")),
    ];
    press.insert(&shop_table(), &rows);
    press.insert(&shop_table(), &[shop_row(6, "b", Some("{}")), shop_row(7, "a", Some("{}"))]);
    assert_eq!(press.ids(), ["1", "3", "5", "7"]);
    let dead: Vec<_> = press.dead.iter().map(|letter| letter.event_id.as_deref().unwrap()).collect();
    assert_eq!(dead, ["2", "4", "6"]);
    assert!(press.parked.contains("b") && press.parked.len() == 1);
    assert!(press.dead[0].reason.starts_with("the payload is no JSON"), "{}", press.dead[0].reason);
    assert_eq!(press.dead[1].reason, "an earlier row of this key is a dead letter");
    let text = serde_json::to_string_pretty(&press.dead[0]).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "reason": "the payload is no JSON: EOF while parsing an object at line 1 column 1",
      "origin": "shop.outbox",
      "key": "b",
      "event_id": "2",
      "source": {
        "gtid": "0-1-7",
        "file": "binlog.000001",
        "position": 1234,
        "event_seconds": 1795965977
      },
      "row": {
        "id": 2,
        "aggregatetype": "Order",
        "aggregateid": "b",
        "type": "OrderPlaced",
        "payload": "{",
        "created_at": "2026-11-29 15:26:17.123456",
        "tenant": -5
      }
    }
    "#);
}

#[test]
fn a_row_of_our_own_must_have_every_column() {
    let whole = own_row(&event("a", 1));
    for column in 1..whole.len() {
        for value in [Value::Null, Value::Absent, Value::Float(1.5)] {
            let mut press = Press::new("[{}]");
            let mut row = whole.clone();
            row[column] = value.clone();
            press.insert(&own_table(), &[row]);
            // A key that is a number is a key all the same.
            let is_key = column == 6 && value == Value::Float(1.5);
            assert_eq!(press.dead.len(), usize::from(!is_key), "column {column} with {value:?}: {:?}", press.records);
        }
    }
    for (column, value) in [(9, "no json"), (10, "[]"), (2, ""), (2, "a/b.c"), (5, "\u{1}")] {
        let mut press = Press::new("[{}]");
        let mut row = whole.clone();
        row[column] = Value::Text(value.into());
        press.insert(&own_table(), &[row]);
        assert_eq!((press.records.len(), press.dead.len()), (0, 1), "column {column} with {value:?}");
    }
}

#[test]
fn a_record_too_large_for_the_sink_is_refused_with_what_can_be_kept_of_it() {
    let mut press = Press::new(SHOP);
    let large = format!(r#""{}""#, "x".repeat(4_000));
    press.insert(&shop_table(), &[shop_row(1, "a", Some(&large)), shop_row(2, "b", Some("{}"))]);
    assert_eq!(press.ids(), ["2"]);
    assert!(press.dead[0].reason.contains("at most 4000 are taken"), "{}", press.dead[0].reason);
    assert_eq!(press.dead[0].row["payload"].as_str().unwrap(), large);
}

#[test]
fn a_table_that_lost_a_column_gives_dead_letters_and_no_guesses() {
    let mut table = shop_table();
    table.definition.columns.remove(3);
    let table = tidings_backbone::relay::Table::new(table.definition, &super::shop_names());
    let mut row = shop_row(1, "a", Some("{}"));
    row.remove(3);
    let mut press = Press::new(SHOP);
    press.insert(&table, &[row]);
    assert!(press.dead[0].reason.contains("event_type"), "{}", press.dead[0].reason);
}
