//! The server dies at each named fail point; what it had acknowledged is there, once.

use serde_json::{Value, json};
use tidings_testkit::{Kind, World, graph, on_every_world, random};

use super::{Togglers, nothing_is_lost_or_doubled};
use crate::{database::Hand, world, world_on};

on_every_world!(a_reconciliation_that_dies_at_either_of_its_points_is_taken_over_and_repairs_nothing_twice);

/// Dies at `point`, at its first passing and after some, and begins again.
async fn dies_at(point: &str) {
    let world = world(&[("rate.follow_capacity", "1000000")]).await;
    let mut togglers = Togglers::new(&world, 1..=12, &[], &mut random::generator(point)).await;
    for passings in [0, 1, 7, 23] {
        // With nothing left to apply it does not die before it is served.
        world.drain().await;
        assert!(world.stop().await.success());
        world.start_on_conditions(&[("FAILPOINTS", &format!("{point}={passings}*off->return"))]).await;
        togglers.toggle_during(async |_| aborts_and_begins_again(&world).await).await;
        togglers.everything_acknowledged_holds().await;
    }
    let users: Vec<u64> = (1..=12).collect();
    nothing_is_lost_or_doubled(&world, &togglers.versions(), &users).await;
}

#[cfg(unix)]
async fn aborts(world: &World) {
    use std::os::unix::process::ExitStatusExt as _;
    const SIGABRT: i32 = 6;
    let status = world.ended().await;
    assert_eq!(status.signal(), Some(SIGABRT), "it died at the fail point: {status}");
}

async fn aborts_and_begins_again(world: &World) {
    aborts(world).await;
    world.start().await;
}

#[tokio::test]
async fn a_ledger_that_dies_before_its_commit_leaves_neither_facts_nor_events() {
    dies_at("ledger-before-commit").await;
}

#[tokio::test]
async fn a_ledger_that_dies_after_its_commit_leaves_facts_and_events_and_a_repetition_changes_nothing() {
    dies_at("ledger-after-commit").await;
}

#[tokio::test]
async fn a_projector_that_dies_before_its_commit_applies_its_batch_once() {
    dies_at("projector-before-commit").await;
}

#[tokio::test]
async fn a_projector_that_dies_after_its_commit_does_not_apply_its_batch_again() {
    dies_at("projector-after-commit").await;
}

#[tokio::test]
async fn a_rebuild_that_dies_at_any_of_its_points_goes_on_from_there() {
    let world = world(&[("rate.follow_capacity", "1000000")]).await;
    let mut togglers = Togglers::new(&world, 1..=12, &[], &mut random::generator("rebuild points")).await;
    for point in ["rebuild-before-seed-commit", "rebuild-before-switch", "rebuild-after-switch"] {
        world.drain().await;
        assert!(world.stop().await.success());
        world.start_on_conditions(&[("FAILPOINTS", &format!("{point}=return"))]).await;
        let rebuilt = async |_: &_| {
            world.run(&["rebuild", "start", "relation", "--from", "facts"]).await;
            aborts_and_begins_again(&world).await;
            super::rebuild::until(&world, "done", |status| status["state"] == "done").await;
        };
        togglers.toggle_during(rebuilt).await;
        togglers.everything_acknowledged_holds().await;
    }
    let users: Vec<u64> = (1..=12).collect();
    nothing_is_lost_or_doubled(&world, &togglers.versions(), &users).await;
}

/// Reads a run until it is as wanted.
async fn run_until(world: &World, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let run = world.admin().await.read(&format!("/v1/admin/reconciliations/{id}")).await;
            if wanted(&run) {
                return run;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), waiting).await.unwrap_or_else(|_| panic!("never {what}"))
}

/// Asks a server that dies at this point for something, and starts another one when whoever died has lost the run.
async fn dies_reconciling(world: &World, point: &str, path: &str, hand: &mut Hand) -> Value {
    assert!(world.stop().await.success());
    world.start_on_conditions(&[("FAILPOINTS", point)]).await;
    let asked = world.admin().await.post(path, &json!({})).await.json(202);
    aborts(world).await;
    // As if the time had passed for which a run is kept.
    let sql = "UPDATE reconciliation SET runner_until = 1 WHERE active = 1 AND tries = 1";
    assert_eq!(hand.run(sql).await, 1, "whoever died had the run");
    world.start().await;
    asked
}

async fn a_reconciliation_that_dies_at_either_of_its_points_is_taken_over_and_repairs_nothing_twice(kind: Kind) {
    const PAIRS: u64 = 700;
    let world = world_on(kind, &[]).await;
    let follows: Vec<_> = (1..=PAIRS).map(|from| (from, 1_001 + from % 5)).collect();
    let file = graph::write_csv(world.scratch_folder(), &follows);
    world.run(&["import", "follows", file.to_str().unwrap()]).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    assert_eq!(hand.run("DELETE FROM follower").await, PAIRS);

    let list = "/v1/admin/reconciliations";
    let asked = dies_reconciling(&world, "reconcile-before-end=return", list, &mut hand).await;
    let id = asked["id"].as_str().unwrap().to_owned();
    let run = run_until(&world, &id, "done", |run| run["state"] != "running").await;
    assert_eq!((&run["state"], &run["differences"]), (&json!("done"), &json!(PAIRS)), "{run}");
    assert_eq!(run["repair"]["state"], "possible", "{run}");
    assert_eq!(hand.number("SELECT COUNT(*) FROM reconciliation_difference").await, 700, "each is kept once");
    assert_eq!(hand.number("SELECT tries FROM reconciliation").await, 2);

    // One batch is repaired, and another one was about to be.
    let point = "reconcile-before-repair-commit=1*off->return";
    let path = format!("{list}/{id}/repair");
    dies_reconciling(&world, point, &path, &mut hand).await;
    let run = run_until(&world, &id, "repaired", |run| run["repair"]["state"] != "running").await;
    assert_eq!((&run["repair"]["state"], &run["repair"]["events"]), (&json!("done"), &json!(PAIRS)), "{run}");
    assert_eq!(hand.number("SELECT tries FROM reconciliation").await, 2);
    let events = "SELECT COUNT(*) FROM outbox WHERE event_type = 'relation.restated'";
    assert_eq!(hand.number(events).await, 700, "no pair is stated twice");
    assert_eq!(hand.number("SELECT COUNT(*) FROM following WHERE version = 2").await, 700);
    world.drain().await;
    let run: Value = serde_json::from_str(&world.run(&["reconcile", "--json"]).await).unwrap();
    assert_eq!((&run["differences"], &run["lagging"]), (&json!(0), &json!(0)), "{run}");
    world.verify().await;
}
