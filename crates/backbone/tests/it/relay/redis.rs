//! From a real database into Redis Streams.

use super::{
    poll,
    whole::{self, numbers},
    world::{World, on_both, within},
};
use crate::sinks::{broker::Found, redis::Part};

on_both!(
    what_is_committed_is_in_the_stream_once_and_in_order_of_its_key_though_relays_are_killed,
    what_is_polled_is_in_the_stream_once_and_in_order_of_its_key,
);

/// What is in the stream of the events, as if it were a topic.
async fn found(part: &mut Part) -> Vec<Found> {
    let entries = part.entries(&format!("{}.test", part.options.prefix)).await;
    let record = |mut entry: std::collections::HashMap<String, Vec<u8>>| Found {
        partition: 0,
        key: entry.remove("key"),
        value: entry.remove("value").map(|value| String::from_utf8(value).unwrap()),
        headers: Vec::new(),
        timestamp_ms: None,
    };
    entries.into_iter().map(record).collect()
}

async fn what_is_committed_is_in_the_stream_once_and_in_order_of_its_key_though_relays_are_killed(mut world: World) {
    let mut part = Part::new().await;
    world.emit(0..5).await;
    let mut relay = whole::Running::into(&world, part.sink(), &part.options.prefix);
    let mut next = 5;
    for _ in 0..4 {
        for _ in 0..20 {
            world.emit(next..next + 10).await;
            next += 10;
        }
        relay.until_records(1).await;
        // Dropped in the middle of whatever it does, as a kill would; another one takes its place.
        relay.task.abort();
        relay = whole::Running::into(&world, part.sink(), &part.options.prefix);
    }
    world.emit([next]).await;
    within(async { while found(&mut part).await.len() as u64 <= next {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&found(&mut part).await), (0..=next).collect::<Vec<_>>());
    part.clear().await;
}

async fn what_is_polled_is_in_the_stream_once_and_in_order_of_its_key(mut world: World) {
    let mut part = Part::new().await;
    let sink = serde_json::json!({ "kind": "redis", "url": part.options.url, "prefix": part.options.prefix });
    world.emit(0..50).await;
    let mut relay = poll::Running::into(world.options(), sink.clone(), &part.options.prefix);
    relay.until(50).await;
    relay.stop().await;
    world.emit(50..500).await;
    let mut relay = poll::Running::into(world.options(), sink, &part.options.prefix);
    relay.until(450).await;
    relay.stop().await;
    assert_eq!(numbers(&found(&mut part).await), (0..500).collect::<Vec<_>>());
    part.clear().await;
}
