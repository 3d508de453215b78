//! Which rows go where.

use super::{Press, event, own_row, own_table, shop_row, shop_table};

#[test]
fn the_first_route_that_fits_decides() {
    let mut press = Press::new(
        r#"[
        {"tables": ["shop.*"], "format": {"kind": "debezium"}},
        {"families": ["hidden"], "format": {"kind": "canal", "topic": "hidden"}},
        {"families": ["thing"], "format": {"kind": "cloudevents-json"}}
    ]"#,
    );
    let mut hidden = event("a", 2);
    hidden.event_type = "hidden.made".to_owned();
    let mut nobodys = event("a", 3);
    nobodys.event_type = "nobody.made".to_owned();
    let rows = [event("a", 1), hidden.clone(), hidden, nobodys, event("a", 4)].map(|event| own_row(&event));
    press.insert(&own_table(), &rows);
    press.insert(&shop_table(), &[shop_row(1, "o-1", Some("{}"))]);
    let topics: Vec<&str> = press.records.iter().map(|record| &*record.topic).collect();
    // The two hidden ones are rows of one message.
    assert_eq!(topics, ["tidings.thing", "hidden", "tidings.thing", "outbox.event.Order"]);
    assert!(press.dead.is_empty());
}

#[test]
fn names_of_topics_do_not_stay_with_another_table() {
    let mut press = Press::new(r#"[{"format": {"kind": "cloudevents-json", "topic": "{database}.{table}"}}]"#);
    for database in ["one", "two"] {
        let mut table = shop_table();
        table.definition.database = database.to_owned();
        press.insert(&table, &[shop_row(1, "a", Some("{}"))]);
    }
    assert_eq!((&*press.records[0].topic, &*press.records[1].topic), ("one.outbox", "two.outbox"));
}
