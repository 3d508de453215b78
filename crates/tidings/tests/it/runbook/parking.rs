//! Keys that are parked, and who is told.

use serde_json::Value;
use tidings_testkit::{Kind, Part};

use super::{Receiver, Section, Watch, until, until_metric};
use crate::{database::Hand, embedded, parked::with_poison};

#[tokio::test]
async fn dead_keys() {
    let it = Section::of("dead-keys");
    let (world, mut hand) = with_poison(Kind::Embedded, &[]).await;
    let mut watch = Watch::default();
    watch.look(&world, 5).await;
    watch.fires(&["TidingsDeadKeys"]);
    assert!(it.run(&world, "tidings parked list --state dead", &[]).await.contains("poison"));
    let shown = it.run(&world, "tidings parked show relation KEY", &[("KEY", "4")]).await;
    assert!(shown.contains("relation.followed"), "{shown}");

    // One of three is given up; the others are applied once the cause is mended.
    let events = world.run(&["parked", "show", "relation", "4", "--json"]).await;
    let events: Value = serde_json::from_str(&events).unwrap();
    let words = [("KEY", "4"), ("ID", events["events"][2]["event_id"].as_str().unwrap()), ("TEXT", "a mistake")];
    it.run(&world, "tidings parked discard relation KEY --event-id ID --reason TEXT", &words).await;
    hand.admit().await;
    let plan = it.run(&world, "tidings parked redrive --projector relation --dry-run", &[]).await;
    assert!(plan.contains("1 key with 2 waiting events would be tried again"), "{plan}");
    it.run(&world, "tidings parked redrive --projector relation", &[]).await;
    world.drain().await;
    assert_eq!(world.followers(2).await, [4]);
    watch.look(&world, 5).await;
    watch.is_quiet(&["TidingsDeadKeys"]);
}

#[tokio::test]
async fn parked_keys_grow() {
    let it = Section::of("parked-keys-grow");
    let tries =
        [("projector.retry_attempts", "90"), ("projector.retry_gap_ms", "300"), ("projector.retry_gap_max_ms", "300")];
    let world = embedded(&tries).await;
    world.register(1..=15).await;
    let mut watch = Watch::default();
    watch.look(&world, 30).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.to_user_id = 1").await;
    for user in 2..=15 {
        world.user(user).await.follow(1).await;
    }
    until("all of them to be parked", async || world.parked().await.len() == 14).await;
    watch.look(&world, 12).await;
    watch.fires(&["TidingsParkedKeysGrow"]);
    assert!(it.run(&world, "tidings parked list --state retrying", &[]).await.contains("poison"));
    hand.admit().await;
    world.drain().await;
    assert_eq!(world.counters(1).await, (0, 14), "they are retried by themselves");
    watch.look(&world, 30).await;
    watch.is_quiet(&["TidingsParkedKeysGrow", "TidingsDeadKeys"]);
}

#[tokio::test]
async fn alerts_not_sent() {
    let it = Section::of("alerts-not-sent");
    let receiver = Receiver::answering(500).await;
    let secret = ("alerts.webhook_secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let (world, _hand) = with_poison(Kind::Embedded, &[("alerts.webhook_url", &receiver.url), secret]).await;
    let mut watch = Watch::default();
    until_metric(&world, "tidings_alerts_failed_total", |failed| failed >= 1.0).await;
    watch.look(&world, 20).await;
    until_metric(&world, "tidings_alerts_failed_total", |failed| failed >= 2.0).await;
    watch.look(&world, 40).await;
    watch.fires(&["TidingsAlertsNotSent"]);
    let said = world.said(Part::Server);
    assert!(said.contains("the receiver of alerts does not take them") && said.contains("500"), "{said}");
    assert!(it.run(&world, "tidings parked list --state dead", &[]).await.contains("poison"));
    receiver.answer(204);
    until_metric(&world, "tidings_alerts_sent_total", |sent| sent >= 1.0).await;
    watch.look(&world, 20).await;
    watch.look(&world, 20).await;
    watch.is_quiet(&["TidingsAlertsNotSent"]);
}
