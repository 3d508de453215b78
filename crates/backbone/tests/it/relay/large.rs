//! Rows that do not fit the 16 MiB of a packet of the servers' protocol.

use super::{
    servers::{Own, on_own_of_both},
    world::{Collector, insert},
};

on_own_of_both!(a_row_of_twenty_megabytes_is_set_aside_alone_from_the_binlog_and_from_the_table);

/// Twenty megabytes of which no part is like another.
fn large() -> String {
    let text: String = (0..2_700_000).map(|number| format!("{number},")).collect();
    assert!(text.len() > 20_000_000);
    text
}

fn insert_large(number: u64, text: &str) -> String {
    insert([number]).replace(&format!("{{\"n\":{number}}}"), &format!("{{\"n\":{number},\"x\":\"{text}\"}}"))
}

async fn a_row_of_twenty_megabytes_is_set_aside_alone_from_the_binlog_and_from_the_table(mut own: Own) {
    let large = large();
    let mut relay = Collector::start(own.world.options(), None);
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
    for checkpoint in [checkpoint, None] {
        let mut relay = Collector::start(own.world.options(), checkpoint);
        relay.until(4).await;
        assert_eq!(relay.numbers(), [0, 2, 4, 5]);
    }
}
