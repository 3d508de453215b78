//! Guarantee 4: every effect of an event happens once, whatever is restarted, republished or replayed.

use futures::future::join_all;
use tidings_testkit::{Kind, World, on_every_world};

use crate::{database::Hand, embedded, world_on};

const USERS: u64 = 12;

/// A small graph in which pairs have changed several times.
async fn lively_graph(world: &World) {
    world.register(1..=USERS).await;
    let callers = join_all((1..=USERS).map(|user| world.user(user))).await;
    join_all(callers.iter().zip(1..).map(|(caller, from)| async move {
        for round in 0..30 {
            let to = (from + round * 5) % USERS + 1;
            match round % 3 {
                _ if to == from => {}
                2 => drop(caller.unfollow(to).await),
                _ => drop(caller.follow(to).await),
            }
        }
    }))
    .await;
    world.drain().await;
}

/// All that readers see of what is derived.
async fn derived(world: &World) -> Vec<((u64, u64), Vec<u64>)> {
    let mut all = Vec::new();
    for user in 1..=USERS {
        all.push((world.counters(user).await, world.followers(user).await));
    }
    all
}

#[tokio::test]
async fn a_whole_replay_from_the_beginning_changes_nothing() {
    let world = embedded(&[]).await;
    lively_graph(&world).await;
    let before = derived(&world).await;
    for _ in 0..2 {
        world.kill().await;
        let rewound = "UPDATE projector_position SET log_offset = 0 WHERE projector = 'relation'";
        assert_eq!(Hand::in_database_of(&world).await.run(rewound).await, 1);
        world.start().await;
        world.drain().await;
        assert_eq!(derived(&world).await, before);
        world.verify().await;
    }
}

on_every_world!(events_that_are_published_again_have_no_second_effect);

async fn events_that_are_published_again_have_no_second_effect(kind: Kind) {
    let world = world_on(kind, &[]).await;
    lively_graph(&world).await;
    let before = derived(&world).await;
    // New offsets and ids, so that only the version tells that they are known; beside a running server.
    let mut hand = Hand::in_database_of(&world).await;
    let again = format!(
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key,
                                     version, occurred_at, payload, metadata)
                 SELECT {}, event_type, schema_version, aggregate_type, aggregate_id, event_key,
                        version, occurred_at, payload, metadata
                 FROM outbox WHERE aggregate_type = 'relation' ORDER BY seq",
        hand.random_id()
    );
    let repeated = hand.run(again).await;
    assert!(repeated > 50, "{repeated}");
    world.drain().await;
    assert_eq!(derived(&world).await, before);
    assert_eq!(world.metric("tidings_relation_stale_events_total").await, repeated as f64);
    world.verify().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_data_refuses_to_start_and_the_first_goes_on() {
    let world = embedded(&[]).await;
    world.register(1..=2).await;
    let mut second = world.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.find_line("Tidings is at "), None);
    assert!(!second.wait().success());
    assert!(world.user(1).await.follow(2).await.changed);
    world.drain().await;
    // The claim of a server that was killed does not outlive it.
    world.kill().await;
    world.start().await;
    assert_eq!(world.counters(2).await, (0, 1));
}

#[tokio::test]
async fn a_projection_that_is_lost_is_built_anew_by_a_replay() {
    let world = embedded(&[]).await;
    lively_graph(&world).await;
    let before = derived(&world).await;
    world.kill().await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("DELETE FROM follower").await;
    hand.run("DELETE FROM user_counter").await;
    hand.run("UPDATE projector_position SET log_offset = 0 WHERE projector = 'relation'").await;
    world.start().await;
    world.drain().await;
    assert_eq!(derived(&world).await, before);
    world.verify().await;
}
