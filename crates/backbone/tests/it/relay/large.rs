//! Rows that do not fit the 16 MiB of a packet of MySQL's protocol.

use serde_json::Value;
use tidings_backbone::relay::{Checkpoint, Route};

use super::{
    servers::{Own, on_own_of_both},
    world::{Collector, insert},
};

on_own_of_both!(a_row_of_twenty_megabytes_comes_whole_also_from_a_server_that_takes_none_so_large_by_now);

/// A relay whose records may be as large as the row.
fn collect(own: &Own, checkpoint: Option<Checkpoint>) -> Collector {
    Collector::start_with(&Route::default(), 100_000_000, own.world.options(), checkpoint)
}

/// Twenty megabytes of which no part is like another.
fn large() -> String {
    let text: String = (0..2_800_000).map(|number| format!("{number},")).collect();
    assert!(text.len() > 20_000_000);
    text
}

fn insert_large(number: u64, text: &str) -> String {
    insert([number]).replace(&format!("{{\"n\":{number}}}"), &format!("{{\"n\":{number},\"x\":\"{text}\"}}"))
}

fn text(relay: &Collector, record: usize) -> String {
    let value: Value = serde_json::from_slice(relay.records[record].value.as_ref().unwrap()).unwrap();
    value["data"]["x"].as_str().unwrap().to_owned()
}

async fn a_row_of_twenty_megabytes_comes_whole_also_from_a_server_that_takes_none_so_large_by_now(mut own: Own) {
    let large = large();
    let mut relay = collect(&own, None);
    relay.started().await;
    let checkpoint = relay.checkpoint.take();
    drop(relay);
    own.world.emit([0]).await;
    own.world.sql(insert_large(1, &large)).await;
    own.world.sql("BEGIN").await;
    own.world.emit([2]).await;
    own.world.sql(insert_large(3, &large)).await;
    own.world.emit([4]).await;
    own.world.sql("COMMIT").await;
    own.world.emit([5]).await;
    own.world.sql("SET GLOBAL max_allowed_packet = 1048576").await;
    let mut relay = collect(&own, checkpoint);
    relay.until(6).await;
    assert_eq!(relay.numbers(), [0, 1, 2, 3, 4, 5]);
    // And from the table, by a relay that begins now.
    own.world.group.push_str(" again");
    let mut again = collect(&own, None);
    again.until(6).await;
    assert_eq!(again.numbers(), [0, 1, 2, 3, 4, 5]);
    for record in [1, 3] {
        assert!(text(&relay, record) == large && text(&again, record) == large, "{record}");
    }
}
