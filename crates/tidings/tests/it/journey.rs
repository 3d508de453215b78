//! The journey of one event as an operator meets it: by request and by command, while others write, and while parts
//! of the path stand still.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tidings_testkit::{
    Kind, Options, Part, World, caller::sent, model::Change, on_every_distributed_world, on_every_world,
};

use crate::{database::Hand, world_on};

on_every_world!(
    an_event_is_followed_from_its_request_to_its_projection_while_others_write,
    a_dead_event_and_what_waits_behind_it_are_told_and_so_is_what_became_of_them,
    the_generation_that_is_built_and_a_replay_are_told_beside_the_one_that_is_read,
    without_a_trail_it_is_told_that_an_event_was_applied_and_not_when,
    what_never_was_is_not_found,
);
on_every_distributed_world!(
    an_event_waits_for_a_relay_that_is_dead_and_then_for_a_projector_that_is,
    an_event_waits_for_relays_that_poll_and_are_dead,
);

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn path(event: &Value) -> String {
    format!("/v1/admin/events/{}/journey", event["id"].as_str().unwrap())
}

async fn told(world: &World, event: &Value) -> Value {
    world.admin().await.read(&path(event)).await
}

/// Reads the journey until its one projector has come to a state.
async fn until(world: &World, event: &Value, state: &str) -> Value {
    let waiting = async {
        loop {
            let journey = told(world, event).await;
            if journey["projectors"][0]["state"] == state {
                return journey;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it should come to that")
}

/// The newest event of a user's about another.
async fn event_of(world: &World, from: u64, to: u64) -> Value {
    let (key, pair) = (from.to_string(), format!("{from}:{to}"));
    let lines = world.run(&["events", "tail", "--key", &key, "-n", "20", "--json"]).await;
    let mut events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.rfind(|event| event["subject"] == pair).unwrap_or_else(|| panic!("no event of {pair}: {lines}"))
}

async fn an_event_is_followed_from_its_request_to_its_projection_while_others_write(kind: Kind) {
    let options = Options::new(crate::BINARY).on(kind).with("rate.follow_capacity", 100_000);
    let options = if kind == Kind::Embedded { options } else { options.apart() };
    let world = Arc::new(World::start_with(options).await);
    world.register(1..=60).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (11..=30).map(|user| tokio::spawn(write(Arc::clone(&world), Arc::clone(&stop), user))).collect();
    let caller = world.user(1).await;
    for to in 2..=7 {
        let request = caller.change_request(Change::Follow, to).header("x-request-id", format!("request-{to}"));
        let traceparent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        sent(request.header("traceparent", traceparent)).await.outcome();
        let event = event_of(&world, 1, to).await;
        let journey = until(&world, &event, "applied").await;
        assert_eq!(
            (&journey["event_id"], &journey["event_type"], &journey["key"], &journey["aggregate_id"]),
            (&event["id"], &json!("relation.followed"), &json!("1"), &json!(format!("1:{to}")))
        );
        assert_eq!((&journey["aggregate_type"], &journey["version"]), (&json!("relation"), &json!(1)));
        let committed = &journey["committed"];
        assert_eq!(committed["at"], event["time"]);
        assert_eq!(
            (&committed["request_id"], &committed["trace_id"]),
            (&json!(format!("request-{to}")), &json!(TRACE))
        );
        check_times(&journey, kind);
    }
    stop.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }
    world.drain().await;
    let event = event_of(&world, 1, 7).await;
    let journey = told(&world, &event).await;
    let id = event["id"].as_str().unwrap();
    let said: Value = serde_json::from_str(&world.run(&["journey", id, "--json"]).await).unwrap();
    assert_eq!(said, journey, "one shape for both");
    let table = world.run(&["journey", id]).await;
    for part in ["request-7", TRACE, "relation.followed", "applied", "± 100 ms"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    // Nothing has to run for it.
    assert!(world.stop().await.success());
    let said: Value = serde_json::from_str(&world.run(&["journey", id, "--json"]).await).unwrap();
    assert_eq!(said, journey);
}

async fn write(world: Arc<World>, stop: Arc<AtomicBool>, user: u64) {
    let caller = world.user(user).await;
    while !stop.load(Ordering::SeqCst) {
        for to in 31..=60 {
            caller.follow(to).await;
            caller.unfollow(to).await;
        }
    }
}

/// Every field is there, and what comes later is told to be later.
fn check_times(journey: &Value, kind: Kind) {
    let fields = |value: &Value| {
        let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        fields.join(" ")
    };
    assert_eq!(
        fields(journey),
        "aggregate_id aggregate_type committed event_id event_type key projectors relayed version"
    );
    let relayed = &journey["relayed"];
    assert_eq!(fields(relayed), "after_ms at offset partition state topic");
    let [stage] = &journey["projectors"].as_array().unwrap()[..] else { panic!("{journey}") };
    assert_eq!(
        fields(stage),
        "after_ms at attempts error events_before generation live next_attempt_at projector replay resolution_ms state"
    );
    assert_eq!(relayed["state"], "relayed", "{journey}");
    let topic = relayed["topic"].as_str().unwrap();
    if kind == Kind::Embedded {
        assert_eq!((topic, &relayed["partition"], &relayed["after_ms"]), ("outbox", &json!(0), &json!(0)));
    } else {
        assert!(topic.ends_with(".relation"), "{topic}");
    }
    assert!(relayed["offset"].as_i64().unwrap() >= 0);
    assert_eq!(
        (&stage["projector"], &stage["generation"], &stage["live"]),
        (&json!("relation"), &json!(1), &json!(true))
    );
    assert_eq!((&stage["resolution_ms"], &stage["attempts"]), (&json!(100), &json!(0)));
    assert_eq!((&stage["error"], &stage["next_attempt_at"]), (&Value::Null, &Value::Null));
    let after = |value: &Value| value["after_ms"].as_i64().unwrap();
    // The moments of the log and of the database are of the same machine here.
    assert!(after(stage) + 100 >= after(relayed) && after(stage) < 60_000, "{journey}");
    let at = |value: &Value| value["at"].as_str().unwrap().to_owned();
    assert!(at(stage) >= at(&journey["committed"]), "{journey}");
}

async fn a_dead_event_and_what_waits_behind_it_are_told_and_so_is_what_became_of_them(kind: Kind) {
    let tries =
        [("projector.retry_attempts", "2"), ("projector.retry_gap_ms", "10"), ("projector.retry_gap_max_ms", "10")];
    let world = world_on(kind, &tries).await;
    world.register(1..=6).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id = 4").await;
    for to in 1..=2 {
        world.user(4).await.follow(to).await;
        world.drain().await;
    }
    let (poison, behind) = (event_of(&world, 4, 1).await, event_of(&world, 4, 2).await);
    let journey = until(&world, &poison, "dead").await;
    let stage = &journey["projectors"][0];
    assert_eq!((&stage["attempts"], &stage["events_before"]), (&json!(2), &json!(0)));
    assert!(stage["error"].as_str().unwrap().contains("poison") && stage["at"].is_string(), "{journey}");
    assert_eq!((&journey["relayed"]["state"], &stage["next_attempt_at"]), (&json!("relayed"), &Value::Null));
    let journey = told(&world, &behind).await;
    let stage = &journey["projectors"][0];
    assert_eq!(
        (&stage["state"], &stage["attempts"], &stage["events_before"]),
        (&json!("waiting"), &json!(0), &json!(1))
    );
    let table = world.run(&["journey", behind["id"].as_str().unwrap()]).await;
    assert!(table.contains("1 event before it") && table.contains("poison"), "{table}");

    hand.admit().await;
    let id = poison["id"].as_str().unwrap();
    world.run(&["parked", "discard", "relation", "4", "--event-id", id, "--reason", "poison", "--yes"]).await;
    world.drain().await;
    assert_eq!(told(&world, &poison).await["projectors"][0]["state"], "discarded");
    let journey = told(&world, &behind).await;
    let stage = &journey["projectors"][0];
    assert_eq!((&stage["state"], &stage["resolution_ms"]), (&json!("applied"), &json!(1)), "{journey}");
}

async fn the_generation_that_is_built_and_a_replay_are_told_beside_the_one_that_is_read(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=3).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let event = event_of(&world, 1, 2).await;
    for (start, other, name) in [
        (&["rebuild", "start", "relation", "--in-place"][..], (1, true), "relation (replay in place)"),
        (&["rebuild", "start", "relation", "--hold"][..], (2, false), "relation@2 (being built)"),
    ] {
        world.run(start).await;
        let both = async {
            loop {
                let journey = told(&world, &event).await;
                let stages = journey["projectors"].as_array().unwrap().clone();
                let is_told =
                    |stage: &Value| (&stage["generation"], &stage["replay"]) == (&json!(other.0), &json!(other.1));
                if stages.iter().all(|stage| stage["at"].is_string()) && stages.iter().skip(1).any(is_told) {
                    return stages;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let stages = tokio::time::timeout(Duration::from_secs(60), both).await.expect("both should have applied it");
        let [live, _] = &stages[..] else { panic!("{stages:?}") };
        assert_eq!((&live["generation"], &live["live"], &live["replay"]), (&json!(1), &json!(true), &json!(false)));
        assert!(stages.iter().all(|stage| stage["state"] == "applied"), "{stages:?}");
        let table = world.run(&["journey", event["id"].as_str().unwrap()]).await;
        assert!(table.contains(name), "{table}");
        until_ended(&world).await;
    }
}

/// Waits until no rebuild is under way that ends by itself.
async fn until_ended(world: &World) {
    let ended = async {
        loop {
            let rebuilds = world.admin().await.read("/v1/admin/rebuilds").await;
            let state = rebuilds["items"][0]["state"].as_str().unwrap().to_owned();
            if ["done", "ready"].contains(&state.as_str()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it should end");
}

async fn without_a_trail_it_is_told_that_an_event_was_applied_and_not_when(kind: Kind) {
    let world = world_on(kind, &[("projector.trail_minutes", "0")]).await;
    world.register(1..=2).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    let journey = told(&world, &event_of(&world, 1, 2).await).await;
    let stage = &journey["projectors"][0];
    assert_eq!(
        (&stage["state"], &stage["at"], &stage["resolution_ms"], &stage["after_ms"]),
        (&json!("applied"), &Value::Null, &Value::Null, &Value::Null)
    );
}

async fn what_never_was_is_not_found(kind: Kind) {
    let world = world_on(kind, &[]).await;
    let never = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c";
    let answer = world.admin().await.get(&format!("/v1/admin/events/{never}/journey")).await;
    answer.is_problem(404, "not-found");
    assert!(answer.text.contains("no longer known"), "{}", answer.text);
    let output = world.output(&["journey", never]).await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no longer known"), "{output:?}");
    assert!(!world.output(&["journey", "seventeen"]).await.status.success());
}

async fn an_event_waits_for_a_relay_that_is_dead_and_then_for_a_projector_that_is(kind: Kind) {
    waits_for_what_is_dead(Options::new(crate::BINARY).on(kind).apart()).await;
}

async fn an_event_waits_for_relays_that_poll_and_are_dead(kind: Kind) {
    waits_for_what_is_dead(Options::new(crate::BINARY).on(kind).apart().with("relay.mode", "poll")).await;
}

async fn waits_for_what_is_dead(options: Options) {
    const RELAYS: [Part; 2] = [Part::Relay(1), Part::Relay(2)];
    const PROJECTS: [Part; 3] = [Part::Project(1), Part::Project(2), Part::Project(3)];
    let world = World::start_with(options).await;
    world.register(1..=4).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    for relay in RELAYS {
        world.kill_part(relay).await;
    }
    world.user(1).await.follow(3).await;
    let event = event_of(&world, 1, 3).await;
    let journey = told(&world, &event).await;
    let relayed = &journey["relayed"];
    assert_eq!(
        (&relayed["state"], &relayed["offset"], &relayed["at"]),
        (&json!("waiting"), &Value::Null, &Value::Null)
    );
    assert!(relayed["topic"].as_str().unwrap().ends_with(".relation"), "{journey}");
    assert_eq!(journey["projectors"][0]["state"], "waiting");
    let table = world.run(&["journey", event["id"].as_str().unwrap()]).await;
    assert!(table.contains("1 event is not in the log"), "{table}");

    for project in PROJECTS {
        world.kill_part(project).await;
    }
    world.start_part(RELAYS[0], &[]).await;
    let in_the_log = async {
        loop {
            let journey = told(&world, &event).await;
            if journey["relayed"]["state"] == "relayed" {
                return journey;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let journey = tokio::time::timeout(Duration::from_secs(60), in_the_log).await.expect("it should be relayed");
    assert!(journey["relayed"]["offset"].is_i64() && journey["relayed"]["at"].is_string(), "{journey}");
    assert_eq!(journey["projectors"][0]["state"], "waiting", "{journey}");
    let relayed = journey["relayed"].clone();
    world.start_part(PROJECTS[0], &[]).await;
    let journey = until(&world, &event, "applied").await;
    assert_eq!(journey["relayed"], relayed);
    assert!(journey["projectors"][0]["at"].is_string(), "{journey}");
}
