//! Rebuilds that wait for an operator.

use serde_json::Value;
use tidings_testkit::World;

use super::{Section, Watch, until, until_rebuilt, until_told};
use crate::{database::Hand, embedded};

/// A world with something to build anew, whose keys die soon.
async fn world() -> World {
    let tries =
        [("projector.retry_attempts", "2"), ("projector.retry_gap_ms", "10"), ("projector.retry_gap_max_ms", "10")];
    let world = embedded(&tries).await;
    world.register(1..=3).await;
    for user in 2..=3 {
        world.user(user).await.follow(1).await;
    }
    world.drain().await;
    world
}

async fn until_state(world: &World, state: &str) {
    until_told(world, &format!("tidings_rebuild_state{{projector=\"relation\",state=\"{state}\"}} 1")).await;
}

#[tokio::test]
async fn rebuild_failed() {
    let it = Section::of("rebuild-failed");
    let world = world().await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.generation = 2 AND NEW.from_user_id = 3").await;
    world.run(&["rebuild", "start", "relation"]).await;
    until_state(&world, "failed").await;
    let mut watch = Watch::default();
    watch.look(&world, 5).await;
    watch.fires(&["TidingsRebuildFailed"]);
    assert_eq!(world.counters(1).await, (0, 2), "readers have what they had");

    let status = it.run(&world, "tidings rebuild status", &[]).await;
    assert!(status.contains("failed") && status.contains("1 key is dead"), "{status}");
    let another = world.output(&["rebuild", "start", "relation"]).await;
    let said = String::from_utf8_lossy(&another.stderr);
    assert!(said.contains("`tidings rebuild resume relation`"), "what is in the way is named, and the way out: {said}");
    let next = [("GENERATION", "relation@2")];
    let dead = it.run(&world, "tidings parked list --projector GENERATION --state dead", &next).await;
    assert!(dead.contains("poison"), "{dead}");
    hand.admit().await;
    it.run(&world, "tidings parked redrive --projector GENERATION", &next).await;
    until("its keys to be free", async || {
        let left = world.run(&["parked", "list", "--projector", "relation@2", "--json"]).await;
        serde_json::from_str::<Value>(&left).unwrap()["items"] == Value::Array(Vec::new())
    })
    .await;
    it.run(&world, "tidings rebuild resume relation", &[]).await;
    until_rebuilt(&world).await;
    world.verify().await;
    until_state(&world, "done").await;
    watch.look(&world, 5).await;
    watch.is_quiet(&["TidingsRebuildFailed"]);
}

#[tokio::test]
async fn rebuild_paused() {
    let it = Section::of("rebuild-paused");
    let world = world().await;
    let mut watch = Watch::default();
    for (minutes, then) in [(90, "resume"), (5, "cancel")] {
        world.run(&["rebuild", "start", "relation", "--hold"]).await;
        until_state(&world, "ready").await;
        world.run(&["rebuild", "pause", "relation"]).await;
        until_state(&world, "paused").await;
        watch.look(&world, minutes).await;
        if then == "cancel" {
            // Whoever holds one up for a while is left alone.
            watch.is_quiet(&["TidingsRebuildPaused"]);
            it.run(&world, "tidings rebuild cancel relation", &[]).await;
            until_state(&world, "cancelled").await;
            continue;
        }
        watch.fires(&["TidingsRebuildPaused"]);
        let status = it.run(&world, "tidings rebuild status", &[]).await;
        assert!(status.contains("relation"), "{status}");
        assert!(it.run(&world, "tidings audit", &[]).await.contains("rebuild.pause"));
        it.run(&world, "tidings rebuild resume relation --events-per-second 1000", &[]).await;
        until_state(&world, "ready").await;
        watch.look(&world, 1).await;
        world.run(&["rebuild", "switch", "relation"]).await;
        until_rebuilt(&world).await;
    }
    world.verify().await;
}
