//! The database, Kafka and Redis are killed and started again, and everybody goes on by himself.

use tidings_testkit::{
    Kind, Options, Part, World,
    servers::{Server, Servers},
};

use super::{Section, Watch, until, until_metric, until_told};
use crate::database::Hand;

const RELAY_WAITS: &str = "tidings_relay_state{state=\"backing_off\"} 1";
const UNRELAYED_AGE: &str = "tidings_outbox_unrelayed_age_seconds";
const PROJECTOR_WAITS: &str = "tidings_projector_state{projector=\"relation\",state=\"backing_off\"} 1";

#[tokio::test]
async fn the_database_kafka_and_redis_are_away_and_come_back() {
    let kind = Kind::distributed();
    let servers = Servers::up("runbook", kind).await;
    let world = World::unstarted(Options::new(crate::BINARY).on(kind).apart().on_servers(servers.addresses())).await;
    for part in [Part::Api(1), Part::Relay(1), Part::Project(1)] {
        world.start_part(part, &[]).await;
    }
    world.register(1..=4).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    watch.is_quiet(&["TidingsRedisDown", "TidingsKafkaDown", "TidingsDatabaseDown", "TidingsNotMeasured"]);
    without_redis(&world, &servers, &mut watch).await;
    without_kafka(&world, &servers, &mut watch).await;
    without_database(&world, &servers, &mut watch).await;
    drop(world);
    servers.wipe().await;
}

async fn without_redis(world: &World, servers: &Servers, watch: &mut Watch) {
    let it = Section::of("redis-down");
    servers.kill(Server::Redis).await;
    world.user(1).await.follow(3).await;
    until_told(world, "tidings_redis_up 0").await;
    watch.look(world, 10).await;
    watch.fires(&["TidingsRedisDown"]);
    let (status, said) = it.ask(world, "curl http://ADDRESS/health/ready", Part::Api(1)).await;
    assert_eq!(status, 200, "it works without: {said}");
    servers.start(Server::Redis).await;
    until_metric(world, "tidings_redis_up", |up| up >= 1.0).await;
    world.drain().await;
    assert_eq!(world.counters(3).await, (0, 1));
    watch.look(world, 10).await;
    watch.is_quiet(&["TidingsRedisDown"]);
}

async fn without_kafka(world: &World, servers: &Servers, watch: &mut Watch) {
    let (it, unmeasured) = (Section::of("kafka-down"), Section::of("not-measured"));
    servers.kill(Server::Kafka).await;
    assert!(world.user(1).await.follow(4).await.changed, "writes go on");
    until_told(world, "tidings_service_up{service=\"kafka\"} 0").await;
    watch.look(world, 20).await;
    watch.fires(&["TidingsKafkaDown", "TidingsNotMeasured"]);
    let age = world.metric(UNRELAYED_AGE).await;
    assert!(age > 0.0, "what was written waits for Kafka");
    assert!(world.metric(UNRELAYED_AGE).await > age, "and becomes older");
    let (_, said) = it.ask(world, "curl http://ADDRESS/health/ready", Part::Relay(1)).await;
    assert!(said.contains("kafka"), "{said}");
    let (_, said) = unmeasured.ask(world, "curl http://ADDRESS/health/ready", Part::Project(1)).await;
    assert!(said.contains("kafka"), "{said}");
    servers.start(Server::Kafka).await;
    world.drain().await;
    until_metric(world, UNRELAYED_AGE, |age| age == 0.0).await;
    assert_eq!(world.counters(4).await, (0, 1), "they go on by themselves, and nothing is lost");
    assert!(unmeasured.run(world, "tidings lag", &[]).await.contains("caught up"));
    assert!(it.run(world, "tidings lag", &[]).await.contains("caught up"));
    watch.look(world, 20).await;
    watch.is_quiet(&["TidingsKafkaDown", "TidingsNotMeasured"]);
}

async fn without_database(world: &World, servers: &Servers, watch: &mut Watch) {
    let it = Section::of("database-down");
    let _others = (Section::of("relay-backing-off"), Section::of("projector-backing-off"));
    let alerts = ["TidingsDatabaseDown", "TidingsNotMeasured", "TidingsRelayBackingOff", "TidingsProjectorBackingOff"];
    // A projector is in the middle of something, held up by a lock that ends with the server.
    let mut hand = Hand::in_database_of(world).await;
    hand.run("LOCK TABLES follower WRITE").await;
    world.user(1).await.unfollow(4).await;
    until_metric(world, "tidings_projector_lag_events", |events| events > 0.0).await;
    servers.kill(Server::Database).await;
    until_told(world, RELAY_WAITS).await;
    until_told(world, PROJECTOR_WAITS).await;
    watch.look(world, 20).await;
    watch.fires(&alerts);
    let (_, said) = it.ask(world, "curl http://ADDRESS/health/ready", Part::Api(1)).await;
    assert!(said.contains("database"), "{said}");
    for (part, waits) in [(Part::Relay(1), "trying again"), (Part::Project(1), "waits and tries again")] {
        assert!(world.said(part).contains(waits), "{part:?}: {}", world.said(part));
    }
    servers.start(Server::Database).await;
    until("everybody to reach it", async || {
        world.metrics().await.iter().all(|(_, page)| page.contains("tidings_service_up{service=\"database\"} 1"))
    })
    .await;
    world.drain().await;
    assert_eq!(world.counters(4).await, (0, 0));
    world.verify().await;
    watch.look(world, 20).await;
    watch.is_quiet(&alerts);
}
