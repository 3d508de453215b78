//! A database that commits nothing, or not fast enough.

use futures::{StreamExt as _, stream};
use serde_json::Value;
use tidings_testkit::{Part, caller::try_send, model::Change};

use super::{Section, Watch, until_metric, until_rebuilt};
use crate::{database::Hand, embedded};

/// More than half of the commands that may wait.
const MANY: f64 = 8_300.0;
/// Requests at once.
const AT_ONCE: usize = 400;

#[tokio::test]
async fn ledger_fails() {
    let _it = Section::of("ledger-fails");
    let world = embedded(&[]).await;
    world.register(1..=2).await;
    let caller = world.user(1).await;
    let mut watch = Watch::default();
    caller.follow(2).await;
    watch.look(&world, 10).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("ALTER TABLE following RENAME TO taken_away").await;
    caller.change(Change::Unfollow, 2).await.is_problem(500, "internal");
    watch.look(&world, 15).await;
    watch.fires(&["TidingsLedgerFails"]);
    let said = world.said(Part::Server);
    assert!(said.contains("no such table"), "the database's own words: {said}");
    hand.run("ALTER TABLE taken_away RENAME TO following").await;
    assert!(caller.unfollow(2).await.changed, "nothing of the failed command was stored");
    watch.look(&world, 15).await;
    watch.is_quiet(&["TidingsLedgerFails"]);
}

#[tokio::test]
async fn ledger_queue_fills() {
    let it = Section::of("ledger-queue-fills");
    let world = embedded(&[("rate.follow_capacity", "1000000"), ("http.request_timeout_ms", "300")]).await;
    world.register(1..=3).await;
    let caller = world.user(1).await;
    caller.follow(2).await;
    // It is slow, so that it is under way until somebody lets it go faster.
    world.run(&["rebuild", "start", "relation", "--events-per-second", "1"]).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("BEGIN IMMEDIATE").await;
    while world.metric("tidings_ledger_waiting_commands").await < MANY {
        // A request is given up after a while, and its command waits on.
        let requests = stream::iter((0..1_000).map(|_| try_send(caller.change_request(Change::Follow, 3))));
        requests.buffer_unordered(AT_ONCE).for_each(async |answer| drop(answer)).await;
    }
    watch.look(&world, 10).await;
    watch.fires(&["TidingsLedgerQueueFills"]);
    hand.run("COMMIT").await;
    it.run(&world, "tidings rebuild pause relation", &[]).await;
    until_metric(&world, "tidings_ledger_waiting_commands", |waiting| waiting == 0.0).await;
    let status: Value = serde_json::from_str(&world.run(&["rebuild", "status", "--json"]).await).unwrap();
    assert_eq!(status["rebuilds"][0]["paused"], true, "{status}");
    watch.look(&world, 10).await;
    watch.is_quiet(&["TidingsLedgerQueueFills"]);
    it.run(&world, "tidings rebuild resume relation --events-per-second 1000", &[]).await;
    until_rebuilt(&world).await;
    world.verify().await;
}
