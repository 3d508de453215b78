//! The server dies at each named fail point; what it had acknowledged is there, once.

use tidings_testkit::{World, random};

use super::{Togglers, nothing_is_lost_or_doubled};
use crate::world;

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
async fn aborts_and_begins_again(world: &World) {
    use std::os::unix::process::ExitStatusExt as _;
    const SIGABRT: i32 = 6;
    let status = world.ended().await;
    assert_eq!(status.signal(), Some(SIGABRT), "it died at the fail point: {status}");
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
