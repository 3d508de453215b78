//! Requests that fail, wait, or come too often.

use std::time::Duration;

use futures::future::join_all;
use tidings_testkit::{Part, model::Change};

use super::{Section, Watch};
use crate::{database::Hand, embedded};

#[tokio::test]
async fn http_errors() {
    let _it = Section::of("http-errors");
    let world = embedded(&[("http.request_timeout_ms", "1000")]).await;
    world.register(1..=6).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    let callers = join_all((2..=6).map(|user| world.user(user))).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("BEGIN IMMEDIATE").await;
    for answer in join_all(callers.iter().map(|caller| caller.change(Change::Follow, 1))).await {
        answer.is_problem(503, "timeout");
    }
    watch.look(&world, 15).await;
    watch.fires(&["TidingsHttpErrors"]);
    let said = world.said(Part::Server);
    assert!(said.contains("request failed") && said.contains("timeout"), "{said}");
    hand.run("COMMIT").await;
    for answer in join_all(callers.iter().map(|caller| caller.change(Change::Follow, 1))).await {
        answer.outcome();
    }
    watch.look(&world, 15).await;
    watch.is_quiet(&["TidingsHttpErrors"]);
}

#[tokio::test]
async fn http_slow() {
    let _it = Section::of("http-slow");
    let world = embedded(&[]).await;
    world.register(1..=2).await;
    let caller = world.user(1).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    let waited = world.metric("tidings_ledger_batch_seconds_sum").await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("BEGIN IMMEDIATE").await;
    let slow = async {
        // That it takes long is what is tested.
        tokio::time::sleep(Duration::from_secs(1)).await;
        hand.run("COMMIT").await;
    };
    futures::future::join(caller.follow(2), slow).await;
    watch.look(&world, 20).await;
    watch.fires(&["TidingsHttpSlow"]);
    let waited = world.metric("tidings_ledger_batch_seconds_sum").await - waited;
    assert!(waited > 0.5, "“Time of a batch” shows where: {waited}");
    for _ in 0..150 {
        caller.read("/v1/users/2/counters").await;
    }
    watch.look(&world, 20).await;
    watch.is_quiet(&["TidingsHttpSlow"]);
}

#[tokio::test]
async fn many_rate_limited() {
    let _it = Section::of("many-rate-limited");
    let world = embedded(&[("rate.follow_capacity", "4")]).await;
    world.register(1..=30).await;
    let mut watch = Watch::default();
    watch.look(&world, 20).await;
    let caller = world.user(1).await;
    let follow_all = async || join_all((2..=30).map(|to| caller.change(Change::Follow, to))).await;
    let turned_away = follow_all().await.iter().filter(|answer| answer.status == 429).count();
    assert!(turned_away > 15, "{turned_away}");
    watch.look(&world, 40).await;
    watch.fires(&["TidingsManyRateLimited"]);
    world.stop().await;
    world.start_on_conditions(&[("TIDINGS__RATE__FOLLOW_CAPACITY", "1000")]).await;
    assert!(follow_all().await.iter().all(|answer| answer.status == 200));
    watch.look(&world, 40).await;
    watch.is_quiet(&["TidingsManyRateLimited"]);
}
