//! Processes of every role, and what is late without them.

use serde_json::Value;
use tidings_testkit::{Kind, Options, Part, World};

use super::{Section, Watch, until, until_metric, until_rebuilt};
use crate::database::Hand;

const RELAYS: [Part; 2] = [Part::Relay(1), Part::Relay(2)];
const PROJECTS: [Part; 3] = [Part::Project(1), Part::Project(2), Part::Project(3)];

/// A follow that was committed an hour ago and does what the last one did, so that it changes nothing any more.
const AN_OLD_ONE: &str = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id,
        event_key, version, occurred_at, payload, metadata)
    SELECT UNHEX(REPLACE(UUID(), '-', '')), event_type, schema_version, aggregate_type, aggregate_id, event_key,
        version, occurred_at - 3600000, payload, metadata
    FROM outbox WHERE event_type = 'relation.followed' AND event_key = '1' ORDER BY seq DESC LIMIT 1";

/// Everything runs, each role in processes of its own.
async fn world() -> World {
    let world = World::start_with(Options::new(crate::BINARY).on(Kind::distributed()).apart()).await;
    world.register(1..=6).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    world
}

async fn lag(world: &World) -> Value {
    serde_json::from_str(&world.run(&["lag", "--json"]).await).unwrap()
}

#[tokio::test]
async fn each_role_is_missed_and_started_again() {
    let world = world().await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    watch.is_quiet(&["TidingsProcessDown", "TidingsRelayMissing", "TidingsProjectorsMissing", "TidingsNoActiveRelay"]);
    without_relays(&world, &mut watch).await;
    without_projectors(&world, &mut watch).await;
    without_anybody(&world, &mut watch).await;
}

async fn without_relays(world: &World, watch: &mut Watch) {
    let (missing, nobody) = (Section::of("relay-missing"), Section::of("no-active-relay"));
    let (late, too_late) = (Section::of("events-not-relayed"), Section::of("events-not-relayed-for-long"));
    let alerts = [
        "TidingsProcessDown",
        "TidingsRelayMissing",
        "TidingsNoActiveRelay",
        "TidingsEventsNotRelayed",
        "TidingsEventsNotRelayedForLong",
    ];
    for part in RELAYS {
        world.kill_part(part).await;
    }
    assert_eq!(Hand::in_database_of(world).await.run(AN_OLD_ONE).await, 1);
    until_metric(world, "tidings_relay_lease_held", |held| held == 0.0).await;
    watch.look(world, 10).await;
    watch.fires(&alerts);
    let shown = late.run(world, "tidings lag", &[]).await;
    assert!(shown.contains("no process is active"), "{shown}");
    assert_eq!(lag(world).await["relay"]["lag_events"], 1);
    assert!(too_late.run(world, "tidings lag --json", &[]).await.contains("no process is active"));

    missing.start(world, "tidings relay", RELAYS[0]).await;
    nobody.start(world, "tidings relay", RELAYS[1]).await;
    world.drain().await;
    watch.look(world, 10).await;
    watch.is_quiet(&alerts);
}

async fn without_projectors(world: &World, watch: &mut Watch) {
    let missing = Section::of("projectors-missing");
    let (late, too_late) = (Section::of("events-not-applied"), Section::of("events-not-applied-for-long"));
    let alerts = ["TidingsProjectorsMissing", "TidingsEventsNotApplied", "TidingsEventsNotAppliedForLong"];
    for part in PROJECTS {
        world.kill_part(part).await;
    }
    assert_eq!(Hand::in_database_of(world).await.run(AN_OLD_ONE).await, 1);
    until_metric(world, "tidings_projector_lag_events", |events| events > 0.0).await;
    watch.look(world, 10).await;
    watch.fires(&alerts);
    let parts: Value = serde_json::from_str(&late.run(world, "tidings lag --json", &[]).await).unwrap();
    let behind = parts["projectors"][0]["parts"].as_array().unwrap().iter();
    assert_eq!(behind.filter(|part| part["lag_events"] != 0).count(), 1, "{parts}");
    assert!(too_late.run(world, "tidings lag --parts", &[]).await.contains("behind"));

    missing.start(world, "tidings project", PROJECTS[0]).await;
    world.drain().await;
    watch.look(world, 10).await;
    watch.is_quiet(&alerts);
    // More of them share the parts of the log.
    late.start(world, "tidings project", PROJECTS[1]).await;
    too_late.start(world, "tidings project", PROJECTS[2]).await;
    world.user(1).await.follow(3).await;
    world.drain().await;
    assert_eq!(world.counters(3).await, (0, 1));
}

async fn without_anybody(world: &World, watch: &mut Watch) {
    let (down, absent) = (Section::of("process-down"), Section::of("absent"));
    world.kill().await;
    watch.look(world, 10).await;
    watch.fires(&["TidingsProcessDown", "TidingsAbsent"]);
    world.start().await;
    let (status, said) = down.ask(world, "curl http://ADDRESS/health/ready", Part::Relay(1)).await;
    assert_eq!(status, 200, "{said}");
    let metrics = "curl http://ADDRESS/metrics -H \"authorization: Bearer TOKEN\"";
    let (status, said) = down.ask(world, metrics, Part::Relay(1)).await;
    assert!(status == 200 && said.contains("tidings_build_info"), "{said}");
    let answered = world.client().get(format!("{}/metrics", world.url())).send().await.unwrap();
    assert_eq!(answered.status(), 401, "and none without a token");
    assert_eq!(absent.ask(world, metrics, Part::Api(1)).await.0, 200);
    watch.look(world, 10).await;
    watch.is_quiet(&["TidingsProcessDown", "TidingsAbsent", "TidingsRelayMissing", "TidingsProjectorsMissing"]);
}

#[tokio::test]
async fn a_relay_whose_lease_is_taken_and_one_that_is_given_what_it_cannot_publish() {
    let world = world().await;
    let mut watch = Watch::default();
    watch.look(&world, 20).await;
    turns(&world, &mut watch).await;
    dead_letters(&world, &mut watch).await;
}

async fn turns(world: &World, watch: &mut Watch) {
    let _it = Section::of("relay-turns-often");
    let mut hand = Hand::in_database_of(world).await;
    let group = lag(world).await["relay"]["group"].as_str().unwrap().to_owned();
    let turns = async || world.metric("tidings_relay_turns_total").await;
    let before = turns().await;
    for turn in 1..=7 {
        // The lease is a lock that ends with its connection.
        hand.end_holder_of(&format!("tidings-relay:{group}")).await;
        until("another turn", async || turns().await >= before + f64::from(turn)).await;
    }
    watch.look(world, 20).await;
    watch.fires(&["TidingsRelayTurnsOften"]);
    let said = RELAYS.map(|part| world.said(part)).join("\n");
    assert!(said.contains("lease"), "their logs say why: {said}");
    world.user(1).await.follow(4).await;
    world.drain().await;
    assert_eq!(world.counters(4).await, (0, 1), "nothing is lost");
    watch.look(world, 40).await;
    watch.is_quiet(&["TidingsRelayTurnsOften"]);
}

async fn dead_letters(world: &World, watch: &mut Watch) {
    let it = Section::of("relay-dead-letters");
    let mut hand = Hand::in_database_of(world).await;
    // Somebody writes what is no JSON; what the user does after it waits behind it.
    let sql = AN_OLD_ONE.replace("payload, metadata\n", "'no JSON', metadata\n");
    assert_eq!(hand.run(sql).await, 1);
    until_metric(world, "tidings_relay_dead_letters_total", |letters| letters >= 1.0).await;
    world.user(1).await.follow(5).await;
    until_metric(world, "tidings_relay_dead_letters_total", |letters| letters >= 2.0).await;
    watch.look(world, 10).await;
    watch.fires(&["TidingsRelayDeadLetters"]);
    let letters = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let read = std::sync::Arc::clone(&letters);
    world.published("relay-dead-letter", move |record| read.lock().unwrap().push(record.event)).await;
    let letters = letters.lock().unwrap().clone();
    assert_eq!(letters.len(), 2, "{letters:?}");
    assert!(letters[0]["row"]["payload"] == "no JSON" && letters[0]["reason"].is_string(), "{letters:?}");

    it.run(world, "tidings rebuild start relation --from facts", &[]).await;
    until_rebuilt(world).await;
    assert_eq!(world.followers(5).await, [1], "whole, though its event is in no topic of events");
    world.verify().await;
    watch.look(world, 20).await;
    watch.is_quiet(&["TidingsRelayDeadLetters"]);
}
