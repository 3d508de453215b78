//! The distributed mode with its roles in processes of their own.

mod topics;

use serde_json::Value;
use tidings_testkit::{Kind, Options, Part, World, on_every_distributed_world, process::Signal};

on_every_distributed_world!(
    roles_apart_do_together_what_one_process_does_and_every_stage_tells_how_far_it_is,
    a_relay_that_stands_by_takes_over_and_a_flow_without_one_says_so,
    what_waits_for_a_relay_shows_in_the_metrics_though_every_relay_is_dead,
    without_kafka_the_api_goes_on_and_each_process_says_what_is_missing,
    an_import_and_the_commands_work_beside_processes_of_every_role,
    following_the_events_shows_what_other_processes_commit,
    relays_that_poll_share_the_work,
);

fn apart(kind: Kind) -> Options {
    Options::new(crate::BINARY).on(kind).apart().with("rate.follow_capacity", 100_000)
}

async fn follow_all(world: &World, users: std::ops::RangeInclusive<u64>) {
    for user in users.clone() {
        let caller = world.user(user).await;
        for to in users.clone().filter(|to| *to != user) {
            caller.follow(to).await;
        }
    }
}

fn stages<'f>(flow: &'f Value, kind: &'f str) -> impl Iterator<Item = &'f Value> {
    flow["stages"].as_array().unwrap().iter().filter(move |stage| stage["stage"] == kind)
}

async fn roles_apart_do_together_what_one_process_does_and_every_stage_tells_how_far_it_is(kind: Kind) {
    let world = World::start_with(apart(kind)).await;
    world.register(1..=8).await;
    follow_all(&world, 1..=8).await;
    let flow = world.drain().await;
    for user in 1..=8 {
        assert_eq!(world.counters(user).await, (7, 7));
    }
    world.verify().await;

    assert_eq!(flow["mode"], "distributed");
    for kind in ["outbox", "relay", "log", "projector"] {
        assert!(stages(&flow, kind).count() >= 1, "{kind}: {flow}");
    }
    let relay = stages(&flow, "relay").next().unwrap();
    assert_eq!((&relay["lag"], &relay["state"], &relay["oldest_age_ms"]), (&0.into(), &"running".into(), &Value::Null));
    let parts = world.admin().await.read("/v1/admin/flow?parts=true").await;
    let parts = stages(&parts, "projector").next().unwrap()["parts"].as_array().unwrap().clone();
    assert_eq!(parts.len(), 3, "{parts:?}");
    assert!(parts.iter().all(|part| part["lag"] == 0), "{parts:?}");

    let lag: Value = serde_json::from_str(&world.run(&["lag", "--json"]).await).unwrap();
    assert_eq!((&lag["relay"]["state"], &lag["projectors"][0]["state"]), (&"caught up".into(), &"caught up".into()));
    assert_eq!(lag["relay"]["position"], lag["log"]["head"]);
}

async fn a_relay_that_stands_by_takes_over_and_a_flow_without_one_says_so(kind: Kind) {
    let world = World::start_with(apart(kind)).await;
    world.register(1..=4).await;
    follow_all(&world, 1..=2).await;
    world.drain().await;
    world.kill_part(Part::Relay(1)).await;
    follow_all(&world, 3..=4).await;
    world.drain().await;
    world.kill_part(Part::Relay(2)).await;
    world.user(1).await.follow(3).await;

    let waits = |flow: &Value| stages(flow, "relay").any(|stage| stage["state"] == "stopped" && stage["lag"] == 1);
    let flow = world.flow_until(waits).await;
    assert_eq!(flow["settled"], false);
    let lag: Value = serde_json::from_str(&world.run(&["lag", "--json"]).await).unwrap();
    assert_eq!((&lag["relay"]["lag_events"], &lag["relay"]["active"]), (&1.into(), &false.into()));
    assert!(lag["relay"]["oldest_age_ms"].as_i64().unwrap() >= 0);

    world.start_part(Part::Relay(1), &[]).await;
    world.drain().await;
    assert_eq!(world.counters(3).await, (1, 2));
    world.verify().await;
}

async fn what_waits_for_a_relay_shows_in_the_metrics_though_every_relay_is_dead(kind: Kind) {
    let world = World::start_with(apart(kind)).await;
    world.register(1..=2).await;
    world.drain().await;
    let metric = async |name| world.metric(name).await;
    assert_eq!(metric("tidings_outbox_unrelayed_events").await, 0.0);
    world.kill_part(Part::Relay(1)).await;
    world.kill_part(Part::Relay(2)).await;
    world.user(1).await.follow(2).await;
    // The processes that are left, two of the API and three of projections, all say so.
    assert_eq!(metric("tidings_outbox_unrelayed_events").await, 5.0);
    let age = metric("tidings_outbox_unrelayed_age_seconds").await;
    assert!(age > 0.0, "{age}");
    assert!(metric("tidings_outbox_unrelayed_age_seconds").await > age, "it grows as long as nobody relays");
    world.start_part(Part::Relay(2), &[]).await;
    world.drain().await;
    assert_eq!(metric("tidings_outbox_unrelayed_events").await, 0.0);
    assert_eq!(metric("tidings_outbox_unrelayed_age_seconds").await, 0.0);
}

async fn following_the_events_shows_what_other_processes_commit(kind: Kind) {
    let world = World::start_with(apart(kind)).await;
    world.register(1..=2).await;
    let mut tail = world.spawn(&["events", "tail", "--follow", "-n", "1"]);
    tail.line_containing("account.registered");
    world.user(1).await.follow(2).await;
    tail.line_containing("relation.followed");
    tail.signal(Signal::INT);
    assert!(tail.wait().success(), "{}", tail.said());
}

/// Both relays work. One is killed while users follow each other, and one is frozen for longer than its locks.
async fn relays_that_poll_share_the_work(kind: Kind) {
    let options = apart(kind).with("rate.follow_capacity", 100_000).with("relay.mode", "poll");
    let world = World::start_with(options).await;
    world.register(1..=16).await;
    follow_all(&world, 1..=6).await;
    world.drain().await;
    let incidents = async {
        world.kill_part(Part::Relay(1)).await;
        world.start_part(Part::Relay(1), &[]).await;
        world.pause_part(Part::Relay(2));
    };
    futures::future::join(follow_all(&world, 7..=16), incidents).await;
    // It settles once the one that is not frozen has all of the work.
    world.drain().await;
    world.resume_part(Part::Relay(2));
    follow_all(&world, 5..=8).await;
    world.drain().await;
    for (users, others) in [(1..=4, 5), (5..=6, 7), (7..=8, 11), (9..=16, 9)] {
        for user in users {
            assert_eq!(world.counters(user).await, (others, others), "{user}");
        }
    }
    world.verify().await;
    let lag: Value = serde_json::from_str(&world.run(&["lag", "--json"]).await).unwrap();
    assert_eq!((&lag["relay"]["state"], &lag["relay"]["lag_events"]), (&"caught up".into(), &0.into()), "{lag}");
    assert_eq!((&lag["projectors"][0]["state"], &lag["relay"]["active"]), (&"caught up".into(), &true.into()));
}

async fn without_kafka_the_api_goes_on_and_each_process_says_what_is_missing(kind: Kind) {
    let nowhere = apart(kind).with("kafka.brokers", "127.0.0.1:9");
    let world = World::unstarted(nowhere).await;
    world.start_part(Part::Api(1), &[]).await;
    let health = world.nobody().get("/health/ready").await.json(200);
    let kafka = health["checks"].as_array().unwrap().iter().find(|check| check["name"] == "kafka").unwrap().clone();
    assert_eq!((&kafka["ok"], &kafka["optional"]), (&false.into(), &true.into()));
    world.register(1..=2).await;
    assert!(world.user(1).await.follow(2).await.changed);
    let flow = world.admin().await.read("/v1/admin/flow").await;
    assert_eq!(stages(&flow, "log").next().unwrap()["state"], "unreachable", "{flow}");
    // Nobody knows how far the relay is; the metrics are shown all the same.
    assert!(world.metric("tidings_outbox_events_total").await >= 3.0);

    let url = world.start_part_unready(Part::Project(1)).await;
    let answer = world.client().get(format!("{url}/health/ready")).send().await.unwrap();
    assert_eq!(answer.status(), 503);
    let health: Value = answer.json().await.unwrap();
    let wrong = |check: &&Value| check["ok"] == false;
    let missing: Vec<&Value> = health["checks"].as_array().unwrap().iter().filter(wrong).collect();
    assert_eq!((missing.len(), &missing[0]["name"]), (1, &"kafka".into()), "{health}");
    assert!(world.stop().await.success(), "whoever waits ends when he is asked to");
}

#[tokio::test]
async fn a_role_alone_needs_the_distributed_mode_and_half_of_it_is_an_error() {
    let world = World::unstarted(Options::new(crate::BINARY).on(Kind::Embedded)).await;
    for role in ["api", "relay", "project"] {
        let output = world.output(&[role]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("`database.url` and `kafka.brokers`"), "{said}");
    }
    let mut half = world.command(&["serve"]);
    let output = half.env("TIDINGS__KAFKA__BROKERS", "127.0.0.1:9").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("`database.url`"), "{said}");
}

async fn an_import_and_the_commands_work_beside_processes_of_every_role(kind: Kind) {
    let world = World::start_with(apart(kind)).await;
    let file = tidings_testkit::graph::write_csv(world.scratch_folder(), &[(1, 2), (2, 3), (3, 1), (1, 3)]);
    let said = world.run(&["import", "follows", file.to_str().unwrap()]).await;
    assert!(said.contains("changed"), "{said}");
    assert_eq!(world.run(&["events", "tail", "-n", "100"]).await.lines().count(), 7);
    assert_eq!(world.counters(3).await, (1, 2));
    world.verify().await;
}
