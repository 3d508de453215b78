//! Guarantee 6: one bad event never stops other keys, and is never lost: bounded retries, then it is
//! stored with its error and its key is parked.

use futures::future::join_all;
use serde_json::{Value, json};
use tidings_testkit::{Kind, on_every_world};

use crate::{database::Hand, embedded, world_on};

const TWO_QUICK_TRIES: &[(&str, &str)] =
    &[("projector.retry_attempts", "2"), ("projector.retry_gap_ms", "10"), ("projector.retry_gap_max_ms", "10")];

on_every_world!(
    poison_keys_die_each_by_its_own_tries_and_everybody_else_goes_on,
    an_event_from_the_future_parks_its_key_and_an_unknown_type_is_passed_over_and_counted,
);

async fn poison_keys_die_each_by_its_own_tries_and_everybody_else_goes_on(kind: Kind) {
    let world = world_on(kind, TWO_QUICK_TRIES).await;
    world.register(1..=40).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id % 4 = 0").await;
    let callers = join_all((2..=40).map(|user| world.user(user))).await;
    join_all(callers.iter().map(|caller| caller.follow(1))).await;
    world.drain().await;
    let healthy: Vec<u64> = (2..=40).filter(|user| user % 4 != 0).collect();
    assert_eq!(world.counters(1).await, (0, healthy.len() as u64));
    let parked = world.parked().await;
    assert_eq!(parked.len(), 10);
    for key in &parked {
        let (state, attempts, waiting) = (&key["state"], &key["attempts"], &key["waiting"]);
        assert_eq!((state, attempts, waiting), (&json!("dead"), &json!(2), &json!(1)), "{key}");
        assert!(key["error"].as_str().unwrap().contains("poison") && key["next_attempt_at"].is_null(), "{key}");
    }
    assert_eq!(world.metric("tidings_dead_total").await, 10.0);
    world.verify().await;

    // Later events of a dead key wait behind it, and whatever ends the server does not end that.
    world.user(8).await.follow(2).await;
    world.user(9).await.follow(2).await;
    world.drain().await;
    world.kill().await;
    world.start().await;
    world.drain().await;
    let parked = world.parked().await;
    let eighth = parked.iter().find(|key| key["key"] == "8").unwrap();
    assert_eq!((parked.len(), &eighth["waiting"]), (10, &json!(2)));
    assert_eq!(world.followers(2).await, [9]);
    world.verify().await;
}

async fn an_event_from_the_future_parks_its_key_and_an_unknown_type_is_passed_over_and_counted(kind: Kind) {
    let world = world_on(kind, TWO_QUICK_TRIES).await;
    world.register(1..=5).await;
    world.user(2).await.follow(1).await;
    let mut hand = Hand::in_database_of(&world).await;
    for foreign in [
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version,
                             occurred_at, payload, metadata)
         SELECT random_id, event_type, 99, aggregate_type, '3:1', '3', 1, occurred_at, payload, metadata
         FROM outbox WHERE event_type = 'relation.followed' AND schema_version = 1",
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version,
                             occurred_at, payload, metadata)
         SELECT random_id, 'relation.blocked', 1, aggregate_type, '4:1', '4', 1, occurred_at, payload, metadata
         FROM outbox WHERE event_type = 'relation.followed' AND schema_version = 1",
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version,
                             occurred_at, payload, metadata)
         SELECT random_id, event_type, 1, aggregate_type, '5:1', '5', 1, occurred_at, '{}', metadata
         FROM outbox WHERE event_type = 'relation.followed' AND schema_version = 1",
    ] {
        assert_eq!(hand.run(foreign.replace("random_id", hand.random_id())).await, 1);
    }
    world.user(4).await.follow(1).await;
    world.drain().await;
    let parked = world.parked().await;
    let mut keys: Vec<&str> = parked.iter().map(|key| key["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["3", "5"], "{parked:?}");
    let third = parked.iter().find(|key| key["key"] == "3").unwrap();
    assert!(third["error"].as_str().unwrap().contains("99"), "{parked:?}");
    // That users were registered is no surprise, though no projector wants it.
    assert_eq!(world.metric("tidings_projector_unknown_events_total").await, 1.0);
    assert_eq!(world.counters(1).await, (0, 2), "what came later of other keys is applied");
}

#[tokio::test]
async fn a_dependency_that_is_down_uses_up_no_try_and_the_rest_waits_for_it() {
    let world = embedded(TWO_QUICK_TRIES).await;
    world.register(1..=3).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    // While the server stands still another follow is committed, and somebody else takes the write lock:
    // nothing that follows from it can be committed, and that is no event's fault.
    world.pause();
    for sql in [
        "BEGIN IMMEDIATE",
        "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at)
         SELECT 3, 2, rel_status, version, created_at, updated_at FROM following WHERE from_user_id = 1",
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version,
                             occurred_at, payload, metadata)
         SELECT randomblob(16), event_type, schema_version, aggregate_type, '3:2', '3', version, occurred_at,
                replace(payload, '\"from\":\"1\"', '\"from\":\"3\"'), metadata
         FROM outbox WHERE event_type = 'relation.followed'",
        "COMMIT",
        "BEGIN IMMEDIATE",
    ] {
        hand.run(sql).await;
    }
    world.resume();
    let backs_off = |stage: &Value| stage["name"] == "relation" && stage["state"] == "backing_off";
    let flow = world.flow_until(|flow| flow["stages"].as_array().unwrap().iter().any(backs_off)).await;
    assert_eq!(flow["log"]["head"], 5, "{flow}");
    assert_eq!((world.counters(2).await, world.parked().await.len()), ((0, 1), 0));

    hand.run("COMMIT").await;
    world.drain().await;
    assert_eq!((world.counters(2).await, world.parked().await.len()), ((0, 2), 0));
    world.verify().await;
}

#[tokio::test]
async fn what_is_tried_again_because_it_cannot_be_committed_is_counted_once() {
    let world = embedded(TWO_QUICK_TRIES).await;
    world.register(1..=2).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id = 2").await;
    hand.run("CREATE TRIGGER held BEFORE UPDATE ON projector_position BEGIN SELECT RAISE(ABORT, 'held'); END").await;
    world.user(2).await.follow(1).await;
    let backs_off = async { while world.metric("tidings_projector_backoffs_total").await < 3.0 {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), backs_off).await.expect("it should back off");
    assert_eq!(world.metric("tidings_parked_total").await, 0.0);
    hand.run("DROP TRIGGER held").await;
    world.drain().await;
    assert_eq!((world.metric("tidings_parked_total").await, world.metric("tidings_dead_total").await), (1.0, 1.0));
}
