//! Projectors as consumer groups on a real Kafka.

mod alike;
mod broker;
mod history;
mod joint;
mod keys;
mod outage;
mod rebalance;

use std::collections::HashMap;

pub(crate) use self::broker::{Broker, eventually};
use crate::world::{Fault, PATIENCE, Recorder, Running, World, quick};
use tidings_backbone::{
    log::Part,
    parking,
    projector::{MissingHistory, Options, State},
};

const TYPE: &str = "switch.turned";

/// `keys` keys with the versions 1 to `versions`, one version of each key after the other.
fn events(keys: usize, versions: std::ops::RangeInclusive<u64>) -> Vec<(String, u64)> {
    versions.flat_map(|version| (0..keys).map(move |key| (format!("k{key}"), version))).collect()
}

/// What a projection holds when each key has had these versions, once and in order.
fn all(keys: usize, versions: i64) -> HashMap<String, Vec<i64>> {
    (0..keys).map(|key| (format!("k{key}"), (1..=versions).collect())).collect()
}

async fn settle(running: &Running) {
    running.settle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_all_partitions_are_applied_once_across_restarts() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    for round in 0..3_u64 {
        let running = world.start(&recorder, Options::default());
        broker.append(world.events(TYPE, events(50, round * 4 + 1..=round * 4 + 4)));
        settle(&running).await;
        running.stop().await;
    }
    assert_eq!(world.applied_by_key().await, all(50, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_shares_the_partitions_and_takes_over_when_the_first_ends() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    let first = world.start(&recorder, Options::default());
    broker.append(world.events(TYPE, events(50, 1..=4)));
    settle(&first).await;
    let second = world.start(&recorder, Options::default());
    broker.append(world.events(TYPE, events(50, 5..=8)));
    settle(&second).await;
    first.stop().await;
    broker.append(world.events(TYPE, events(50, 9..=12)));
    settle(&second).await;
    second.stop().await;
    assert_eq!(world.applied_by_key().await, all(50, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebalance_while_batches_are_in_flight_has_no_double_effect_and_loses_nothing() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    let small = Options { batch_events_max: 7, ..Options::default() };
    broker.append(world.events(TYPE, events(40, 1..=10)));
    let steady = world.start(&recorder, small.clone());
    for round in 1..=4_u64 {
        // Joins while the other one works, and leaves as soon as something was done.
        let before = world.count("SELECT COUNT(*) FROM applied").await;
        let guest = world.start(&recorder, small.clone());
        broker.append(world.events(TYPE, events(40, round * 10 + 1..=round * 10 + 10)));
        world.until("some progress", async || world.count("SELECT COUNT(*) FROM applied").await > before).await;
        guest.stop().await;
    }
    settle(&steady).await;
    steady.stop().await;
    assert_eq!(world.applied_by_key().await, all(40, 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_keys_are_parked_alone_on_their_partition_and_retried_in_order() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    for key in ["k3", "k7", "k11"] {
        recorder.fail(key, 2, Fault::Error, 2);
    }
    recorder.fail("k5", 2, Fault::Error, u32::MAX);
    let running = world.start(&recorder, quick(3));
    broker.append(world.events(TYPE, events(20, 1..=10)));
    settle(&running).await;
    let mut expected = all(20, 10);
    expected.insert("k5".to_owned(), vec![1]);
    assert_eq!(world.applied_by_key().await, expected);
    let parked = world.parked().await;
    assert_eq!(parked.iter().map(|key| (key.key.as_str(), key.waiting)).collect::<Vec<_>>(), [("k5", 9)]);

    recorder.fail("k5", 2, Fault::Error, 0);
    assert!(world.redrive_key("k5").await);
    settle(&running).await;
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(20, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_no_event_is_parked_dead_and_stops_nobody_else() {
    let broker = Broker::new(1).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    broker.append(world.events(TYPE, events(5, 1..=1)));
    broker.append_raw("switch", b"odd", b"{\"no\":\"event\"}");
    broker.append(world.events(TYPE, events(5, 2..=2)));
    let running = world.start(&recorder, quick(3));
    settle(&running).await;
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(5, 2));
    let parked = world.parked().await;
    assert_eq!((parked[0].key.as_str(), parked[0].state), ("odd", parking::State::Dead));
    assert_eq!(parked[0].part, Part { topic: broker.options.topic("switch").into(), number: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_transaction_aborted_is_never_applied() {
    let broker = Broker::new(1).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    broker.append(world.events(TYPE, events(3, 1..=1)));
    broker.append_aborted(world.events(TYPE, [("ghost".to_owned(), 1)]));
    broker.append(world.events(TYPE, events(3, 2..=2)));
    let running = world.start(&recorder, Options::default());
    settle(&running).await;
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_before_the_start_of_the_topic_stops_or_goes_on_as_configured_and_never_skips_silently() {
    let broker = Broker::new(1).await;
    let world = World::on_kafka(&broker).await;
    broker.append(world.events(TYPE, events(5, 1..=4)));
    broker.delete_before("switch", 10).await;

    let strict = Recorder::new("recorder");
    let running = world.start(&strict, Options::default());
    let stopped = async || {
        let statuses = running.handle.statuses().await.unwrap();
        statuses.iter().any(|status| status.state == State::Stopped)
    };
    broker::eventually("the projector to stop", stopped).await;
    let detail = running.handle.statuses().await.unwrap()[0].detail.clone().unwrap();
    assert!(detail.contains("needs offset 0, but the log starts at 10"), "{detail}");
    running.stop().await;
    assert_eq!(world.applied_by_key().await, HashMap::new());

    let options = Options { on_missing_history: MissingHistory::Earliest, ..Options::default() };
    let running = world.start(&strict, options);
    settle(&running).await;
    running.stop().await;
    let applied = world.applied_by_key().await;
    assert_eq!(applied.values().map(Vec::len).sum::<usize>(), 10, "{applied:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lag_and_age_are_told_while_no_process_runs_the_projector() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    let running = world.start(&recorder, Options::default());
    broker.append(world.events(TYPE, events(10, 1..=1)));
    settle(&running).await;
    let caught_up = running.handle.statuses().await.unwrap().remove(0);
    assert_eq!((caught_up.lag_events, caught_up.oldest_age_ms), (0, None), "ends of transactions are no lag");
    let handle = running.handle.clone();
    running.stop().await;
    broker.append(world.events(TYPE, events(10, 2..=3)));
    let behind = handle.statuses().await.unwrap().remove(0);
    assert!(behind.lag_events >= 20, "{behind:?}");
    assert!(behind.oldest_age_ms.is_some_and(|age| age < PATIENCE.as_millis() as i64), "{behind:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_projector_whose_database_is_away_holds_back_the_log_and_goes_on_by_itself() {
    let broker = Broker::new(1).await;
    let world = World::on_kafka(&broker).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("k0", 1, Fault::Dependency, 3);
    let running = world.start(&recorder, Options::default());
    broker.append(world.events(TYPE, events(10, 1..=20)));
    settle(&running).await;
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(10, 20));
    assert_eq!(world.parked().await, []);
}
