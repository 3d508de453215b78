//! Projectors that cannot go on, that nobody knows, or that are told what they do not know.

use tidings_testkit::{Part, World};

use super::{Section, Watch, until, until_rebuilt, until_told};
use crate::{database::Hand, embedded};

const IS_STOPPED: &str = "tidings_projector_state{projector=\"relation\",state=\"stopped\"} 1";
const RUNS: &str = "tidings_projector_state{projector=\"relation\",state=\"running\"} 1";

#[tokio::test]
async fn projector_unregistered() {
    let it = Section::of("projector-unregistered");
    let world = embedded(&[]).await;
    world.register(1..=2).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    let sql = "INSERT INTO projector_position (projector, part, log_offset, updated_at) \
               VALUES ('former', 'outbox/0', 1, 0)";
    hand.run(sql).await;
    let mut watch = Watch::default();
    watch.look(&world, 90).await;
    watch.fires(&["TidingsProjectorUnregistered"]);
    let lag = it.run(&world, "tidings lag", &[]).await;
    assert!(lag.contains("former") && lag.contains("unregistered"), "{lag}");
    let forgotten = it.run(&world, "tidings projector forget NAME", &[("NAME", "former")]).await;
    assert_eq!(forgotten.trim_end(), "1 position of `former` is removed");
    watch.look(&world, 5).await;
    watch.is_quiet(&["TidingsProjectorUnregistered"]);
    assert!(!world.run(&["lag"]).await.contains("former"));
}

#[tokio::test]
async fn unknown_events() {
    let it = Section::of("unknown-events");
    let world = embedded(&[]).await;
    world.register(1..=3).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    // A newer writer.
    let mut hand = Hand::in_database_of(&world).await;
    for sql in [
        "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at)
         SELECT 3, 2, rel_status, version, created_at, updated_at FROM following WHERE from_user_id = 1",
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version,
                             occurred_at, payload, metadata)
         SELECT randomblob(16), 'relation.noted', schema_version, aggregate_type, '3:2', '3', version, occurred_at,
                replace(payload, '\"from\":\"1\"', '\"from\":\"3\"'), metadata
         FROM outbox WHERE event_type = 'relation.followed'",
    ] {
        assert_eq!(hand.run(sql).await, 1);
    }
    world.drain().await;
    watch.look(&world, 30).await;
    watch.fires(&["TidingsUnknownEvents"]);
    let said = world.said(Part::Server);
    assert!(said.contains("relation.noted"), "{said}");
    assert_eq!(world.counters(2).await, (0, 1));

    // A test cannot update the program that it is of, so the type becomes one that this one knows.
    hand.run("UPDATE outbox SET event_type = 'relation.followed' WHERE event_type = 'relation.noted'").await;
    it.run(&world, "tidings rebuild start relation", &[]).await;
    until_rebuilt(&world).await;
    assert_eq!(world.counters(2).await, (0, 2));
    world.verify().await;
    watch.look(&world, 90).await;
    watch.is_quiet(&["TidingsUnknownEvents"]);
}

/// The projection is restored from a backup that is older than what the log still holds.
async fn stopped() -> World {
    let world = embedded(&[]).await;
    world.register(1..=4).await;
    for user in 2..=4 {
        world.user(user).await.follow(1).await;
    }
    world.drain().await;
    fall_back(&world).await;
    let url = world.start_part_unready(Part::Server).await;
    let token = world.admin_token().await;
    // It answers that it is starting at first.
    until("metrics", async || {
        let asked = world.client().get(format!("{url}/metrics")).bearer_auth(&token).send().await;
        asked.unwrap().status().is_success()
    })
    .await;
    until_told(&world, IS_STOPPED).await;
    world
}

async fn fall_back(world: &World) {
    world.stop().await;
    let mut hand = Hand::in_database_of(world).await;
    for sql in [
        "UPDATE projector_position SET log_offset = 1",
        "DELETE FROM follower",
        "DELETE FROM user_counter",
        "DELETE FROM outbox WHERE seq < (SELECT MAX(seq) FROM outbox)",
    ] {
        hand.run(sql).await;
    }
}

#[tokio::test]
async fn projector_stopped() {
    let it = Section::of("projector-stopped");
    let world = stopped().await;
    let mut watch = Watch::default();
    watch.look(&world, 5).await;
    watch.fires(&["TidingsProjectorStopped"]);
    let said = world.said(Part::Server);
    assert!(said.contains("needs offset 2"), "{said}");
    it.run(&world, "tidings rebuild start relation --from facts", &[]).await;
    it.run(&world, "tidings rebuild status", &[]).await;
    until_rebuilt(&world).await;
    world.verify().await;
    until_told(&world, RUNS).await;
    watch.look(&world, 5).await;
    watch.is_quiet(&["TidingsProjectorStopped"]);
    assert_eq!(world.counters(1).await, (0, 3));

    // The other way: it goes on with what there is, and lacks the rest.
    fall_back(&world).await;
    world.start_on_conditions(&[("TIDINGS__PROJECTOR__ON_MISSING_HISTORY", "earliest")]).await;
    world.drain().await;
    assert_eq!(it.output(&world, "tidings verify", &[]).await.status.code(), Some(1));
}
