//! What is derived, and differs from facts.

use tidings_testkit::{Kind, Part};

use super::{Receiver, Section, Watch, until_metric, until_rebuilt};
use crate::{database::Hand, embedded, parked::with_poison};

#[tokio::test]
async fn counter_drift() {
    let it = Section::of("counter-drift");
    let world = embedded(&[("relation.counter_check_every", "1")]).await;
    world.register(1..=3).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run(
        "UPDATE user_counter SET (slots, checksum) = (SELECT slots, checksum FROM user_counter WHERE user_id = 1)
         WHERE user_id = 2",
    )
    .await;
    world.counters(2).await;
    assert_eq!(world.counters(2).await, (0, 1), "what was found is recounted");
    watch.look(&world, 30).await;
    watch.fires(&["TidingsCounterDrift"]);

    // What wrote there has done more than the sample has found.
    hand.run("DELETE FROM follower").await;
    assert_eq!(it.output(&world, "tidings verify", &[]).await.status.code(), Some(1));
    it.run(&world, "tidings rebuild start relation", &[]).await;
    until_rebuilt(&world).await;
    world.verify().await;
    watch.look(&world, 90).await;
    watch.is_quiet(&["TidingsCounterDrift"]);
}

#[tokio::test]
async fn version_gaps() {
    let it = Section::of("version-gaps");
    let (world, mut hand) = with_poison(Kind::Embedded, &[]).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    // The first event of a pair is discarded, and a later one applied.
    world.user(4).await.unfollow(1).await;
    world.drain().await;
    let first = world.admin().await.read("/v1/admin/parked").await["items"][0]["event_id"].clone();
    let discard = ["parked", "discard", "relation", "4", "--event-id", first.as_str().unwrap(), "--reason", "poison"];
    world.run(&[&discard[..], &["--yes"]].concat()).await;
    // The next one fails as well.
    world.drain().await;
    hand.admit().await;
    world.run(&["parked", "redrive", "--all", "--yes"]).await;
    world.drain().await;
    watch.look(&world, 30).await;
    watch.fires(&["TidingsVersionGaps"]);
    assert!(it.run(&world, "tidings audit", &[]).await.contains("parking.discard"));
    assert_eq!(it.output(&world, "tidings verify", &[]).await.status.code(), Some(1));
    it.run(&world, "tidings rebuild start relation --from facts", &[]).await;
    until_rebuilt(&world).await;
    world.verify().await;
    watch.look(&world, 90).await;
    watch.is_quiet(&["TidingsVersionGaps"]);
}

#[tokio::test]
async fn spans_dropped() {
    let _it = Section::of("spans-dropped");
    let collector = Receiver::answering(400).await;
    let world = embedded(&[("telemetry.otlp_endpoint", &collector.url), ("telemetry.sample_ratio", "1")]).await;
    let mut watch = Watch::default();
    watch.look(&world, 20).await;
    world.register(1..=2).await;
    until_metric(&world, "tidings_trace_spans_dropped_total", |dropped| dropped > 0.0).await;
    watch.look(&world, 20).await;
    watch.fires(&["TidingsSpansDropped"]);
    let said = world.said(Part::Server);
    assert!(said.contains("the collector of traces takes nothing") && said.contains("400"), "{said}");
    collector.answer(200);
    world.user(1).await.follow(2).await;
    until_metric(&world, "tidings_trace_spans_sent_total", |sent| sent > 0.0).await;
    // What was dropped until then.
    watch.look(&world, 1).await;
    world.user(1).await.unfollow(2).await;
    watch.look(&world, 20).await;
    watch.is_quiet(&["TidingsSpansDropped"]);
}
