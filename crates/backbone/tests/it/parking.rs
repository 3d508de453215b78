//! Guarantee 5: events of one key are applied in commit order, also after retry, dead letter and redrive.

mod alerts;
mod discard;
mod fence;
mod load;
mod look;
mod once;
mod redrive;
pub(crate) mod site;

use std::time::Duration;

use proptest::prelude::*;
use tidings_backbone::{
    Clock, parking,
    projector::{Gaps, Options},
};
use tidings_event::Timestamp;

use crate::world::{Fault, Recorder, World, quick};

const TURNED: &str = "switch.turned";

fn versions(key: &str, versions: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = (String, u64)> {
    versions.map(move |version| (key.to_owned(), version))
}

#[tokio::test]
async fn an_event_that_fails_once_and_then_works_is_applied_once_and_frees_its_key() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    world.emit(TURNED, versions("a", 1..=3)).await;
    let running = world.start(&recorder, quick(3));
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await["a"], [1, 2, 3]);
    assert!(world.parked().await.is_empty());
}

#[tokio::test]
async fn a_dead_key_keeps_its_events_in_order_and_a_redrive_applies_all_of_them() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 3);
    world.emit(TURNED, versions("a", 1..=1_000)).await;
    let running = world.start(&recorder, quick(3));
    running.settle().await;
    world.emit(TURNED, versions("b", 1..=10)).await;
    world.emit(TURNED, versions("a", 1_001..=1_200)).await;
    running.settle().await;
    let parked = world.parked().await;
    assert_eq!((parked[0].state, parked[0].attempts, parked[0].waiting), (parking::State::Dead, 3, 1_200));
    assert_eq!(world.applied().await.len(), 1, "only the other key was applied");

    assert!(world.redrive_key("a").await);
    world.until("the key is free", async || world.parked().await.is_empty()).await;
    running.stop().await;
    assert_eq!(world.applied().await["a"], (1..=1_200).collect::<Vec<i64>>());
    assert_eq!(world.applied().await["b"], (1..=10).collect::<Vec<i64>>());
}

#[tokio::test]
async fn poison_keys_progress_independently_and_spend_only_their_own_attempts() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    let keys: Vec<String> = (0..10).map(|number| format!("key {number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        recorder.fail(key, 1, Fault::Error, u32::try_from(number).unwrap());
    }
    world.emit(TURNED, keys.iter().flat_map(|key| versions(key, 1..=3))).await;
    let running = world.start(&recorder, quick(5));
    running.settle().await;
    running.stop().await;
    let dead: Vec<_> = world.parked().await.into_iter().map(|parked| (parked.key, parked.attempts)).collect();
    let expected: Vec<_> = keys[5..].iter().map(|key| (key.clone(), 5)).collect();
    let mut dead = dead;
    dead.sort();
    assert_eq!(dead, expected);
    for key in &keys[..5] {
        assert_eq!(world.applied().await[key], [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_later_event_that_fails_behind_a_freed_head_has_attempts_of_its_own() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 2);
    recorder.fail("a", 3, Fault::Error, 2);
    world.emit(TURNED, versions("a", 1..=5)).await;
    let running = world.start(&recorder, quick(3));
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await["a"], [1, 2, 3, 4, 5]);
    assert_eq!(recorder.tries_alone("a", 3), 3);
}

#[tokio::test]
async fn parked_events_survive_a_restart_and_the_pruning_of_the_outbox() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    world.emit(TURNED, versions("a", 1..=3)).await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    running.stop().await;
    world.execute("DELETE FROM outbox").await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    world.redrive_key("a").await;
    world.until("the key is free", async || world.parked().await.is_empty()).await;
    running.stop().await;
    assert_eq!(world.applied().await["a"], [1, 2, 3]);
}

#[tokio::test]
async fn a_clock_set_back_does_not_freeze_a_parked_key() {
    let clock = Clock::manual(Timestamp(10_000_000));
    let world = World::with_clock(clock.clone()).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    // Nothing retries while the clock stands still: the gap is longer than no time.
    let gaps = Gaps { attempts_max: 3, first: Duration::from_secs(1), longest: Duration::from_secs(2) };
    world.emit(TURNED, versions("a", 1..=2)).await;
    let running = world.start(&recorder, Options { gaps, ..Options::default() });
    world.until("the key is parked", async || !world.parked().await.is_empty()).await;
    running.stop().await;
    let earlier = World { clock: Clock::manual(Timestamp(1_000_000)), ..world };
    let running = earlier.start(&recorder, quick(3));
    earlier.until("the key is free", async || earlier.parked().await.is_empty()).await;
    running.stop().await;
    assert_eq!(earlier.applied().await["a"], [1, 2]);
}

#[tokio::test]
async fn a_waiting_event_that_hangs_spends_its_own_attempts_and_not_its_predecessors() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    recorder.fail("a", 2, Fault::Hang, u32::MAX);
    world.emit(TURNED, versions("a", 1..=3)).await;
    let options = Options { apply_time_max: Duration::from_secs(1), ..quick(3) };
    let running = world.start(&recorder, options);
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await["a"], [1]);
    let parked = world.parked().await;
    assert_eq!((parked[0].state, parked[0].attempts, parked[0].waiting), (parking::State::Dead, 3, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever fails, however often, and wherever the batches end: no event is lost, none is
    /// applied twice, and each key's order is that of its commits.
    #[test]
    fn order_per_key_and_exactly_once_hold_under_random_failures(
        events in proptest::collection::vec(0_u8..6, 1..120),
        faults in proptest::collection::vec((0_u8..6, 1_u64..12, 1_u32..6, any::<bool>()), 0..8),
        batch_events_max in 1_usize..40,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let recorder = Recorder::new("recorder");
            for (key, version, times, panics) in &faults {
                let fault = if *panics { Fault::Panic } else { Fault::Error };
                recorder.fail(&key.to_string(), *version, fault, *times);
            }
            let mut last = std::collections::HashMap::<u8, u64>::new();
            let stream: Vec<_> = events.iter().map(|key| {
                let version = last.entry(*key).or_default();
                *version += 1;
                (key.to_string(), *version)
            }).collect();
            let options = tidings_backbone::projector::Options { batch_events_max, ..quick(2) };
            let (before, after) = stream.split_at(stream.len() / 2);
            world.emit(TURNED, before.to_vec()).await;
            let running = world.start(&recorder, options.clone());
            world.emit(TURNED, after.to_vec()).await;
            running.settle().await;
            while let Some(dead) = world.parked().await.pop() {
                world.redrive_key(&dead.key).await;
                running.settle().await;
            }
            running.stop().await;
            // Offsets of parked events are kept, so the order of application is told by the versions alone.
            let applied = world.applied().await;
            for (key, count) in last {
                let expected: Vec<i64> = (1..=i64::try_from(count).unwrap()).collect();
                assert_eq!(applied[&key.to_string()], expected);
            }
        });
    }
}
