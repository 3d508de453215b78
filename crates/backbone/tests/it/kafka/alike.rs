//! What holds where the outbox is the log holds on partitions too, with each server behind the projector.

use std::time::Duration;

use tidings_backbone::{
    Clock,
    limits::{PROJECTOR_BACKOFF_MAX, PROJECTOR_BACKOFF_MIN},
    parking,
    projector::{Gaps, Options, State},
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use super::{Broker, TYPE, all, broker::eventually, events, settle};
use crate::{
    parking::site::Site,
    said::Said,
    world::{Fault, Recorder, World, quick},
};

on_every_server!(
    a_batch_of_500_with_one_poison_event_applies_499_and_the_position_is_where_it_would_be,
    unknown_types_are_passed_over_and_a_renamed_projector_leaves_a_visible_position_behind,
    a_key_that_backs_off_while_its_partition_moves_keeps_its_attempts_and_loses_and_doubles_nothing,
    an_event_that_hangs_is_parked_dead_and_one_that_fails_once_is_applied_once,
);
on_every_engine!(while_the_database_refuses_each_pause_is_longer_and_said_once_and_then_it_goes_on_by_itself);

const POSITION: &str = "SELECT log_offset FROM projector_position";

async fn on(engine: Engine) -> (Broker, World) {
    let broker = Broker::new(1).await;
    let world = World::on(engine).await.reading(&broker).await;
    (broker, world)
}

async fn a_batch_of_500_with_one_poison_event_applies_499_and_the_position_is_where_it_would_be(engine: Engine) {
    let (broker, world) = on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("k250", 1, Fault::Error, u32::MAX);
    broker.append(world.events(TYPE, events(500, 1..=1)));
    let running = world.start(&recorder, quick(1));
    settle(&running).await;
    running.stop().await;
    let mut expected = all(500, 1);
    expected.remove("k250");
    assert_eq!(world.applied_by_key().await, expected);
    assert_eq!(world.parked().await.iter().map(|key| key.key.as_str()).collect::<Vec<_>>(), ["k250"]);
    assert_eq!(world.count(POSITION).await, 499, "the culprit must not hold the position");
}

async fn unknown_types_are_passed_over_and_a_renamed_projector_leaves_a_visible_position_behind(engine: Engine) {
    let (broker, world) = on(engine).await;
    broker.append(world.events(TYPE, events(2, 1..=1)));
    // From a newer writer; the last of the partition, so that only the position tells that they were passed.
    broker.append(world.events("switch.painted", events(3, 1..=1)));
    let running = world.start(&Recorder::new("old name"), quick(3));
    settle(&running).await;
    running.stop().await;
    assert_eq!((world.applied_by_key().await, world.count(POSITION).await), (all(2, 1), 5));
    let running = world.start(&Recorder::new("new name"), quick(3));
    settle(&running).await;
    let statuses = running.handle.statuses().await.unwrap();
    let seen = |name: &str| statuses.iter().find(|status| status.name == name).map(|seen| (seen.state, seen.position));
    assert_eq!(seen("old name"), Some((State::Unregistered, tidings_backbone::log::Offset(6))));
    assert_eq!(seen("new name"), Some((State::Running, tidings_backbone::log::Offset(6))));
    running.stop().await;
}

async fn a_key_that_backs_off_while_its_partition_moves_keeps_its_attempts_and_loses_and_doubles_nothing(
    engine: Engine,
) {
    const ATTEMPTS: u32 = 3;
    let clock = Clock::manual(Timestamp(1_000_000_000));
    let broker = Broker::new(2).await;
    let world = World::on_with_clock(engine, clock.clone()).await.reading(&broker).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("k3", 1, Fault::Error, u32::MAX);
    let gap = Duration::from_secs(1);
    let gaps = Gaps { attempts_max: ATTEMPTS, first: gap, longest: gap };
    let options = Options { gaps, ..Options::default() };
    let mut running = world.start(&recorder, options.clone());
    let mut tried_at_first = None;
    for attempt in 1..=ATTEMPTS {
        broker.append(world.events(TYPE, events(5, u64::from(attempt)..=u64::from(attempt))));
        let is_tried = async || {
            let attempts = world.parked().await.first().map_or(0, |key| key.attempts);
            let others = world.count("SELECT COUNT(*) FROM applied").await;
            (attempts, others) == (attempt, i64::from(4 * attempt))
        };
        eventually("one try more, beside the other keys", is_tried).await;
        let tried = recorder.tries_alone("k3", 1);
        assert_eq!(tried, *tried_at_first.get_or_insert(tried) + attempt - 1, "nobody tries before its time");
        if attempt < ATTEMPTS {
            // The key waits for its next try while a second process joins, takes its share, and then all of it.
            let next = world.start(&recorder, options.clone());
            let shares = async || next.handle.statuses().await.unwrap()[0].state == State::Running;
            eventually("a partition of the second process", shares).await;
            std::mem::replace(&mut running, next).stop().await;
            clock.advance(2 * gap);
        }
    }
    let parked = world.parked().await;
    assert_eq!((parked.len(), parked[0].state, parked[0].waiting), (1, parking::State::Dead, u64::from(ATTEMPTS)));

    recorder.fail("k3", 1, Fault::Error, 0);
    assert!(world.redrive_key("k3").await);
    settle(&running).await;
    running.stop().await;
    assert_eq!((world.applied_by_key().await, world.parked().await), (all(5, i64::from(ATTEMPTS)), vec![]));
}

async fn an_event_that_hangs_is_parked_dead_and_one_that_fails_once_is_applied_once(engine: Engine) {
    let (broker, world) = on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("k1", 2, Fault::Hang, u32::MAX);
    broker.append(world.events(TYPE, events(3, 1..=3)));
    let options = Options { apply_time_max: Duration::from_millis(400), ..quick(2) };
    let running = world.start(&recorder, options);
    settle(&running).await;
    let mut expected = all(3, 3);
    expected.insert("k1".to_owned(), vec![1]);
    assert_eq!(world.applied_by_key().await, expected);
    let parked = world.parked().await;
    assert_eq!((parked.len(), parked[0].key.as_str(), parked[0].waiting), (1, "k1", 2));
    assert_eq!((parked[0].state, parked[0].attempts), (parking::State::Dead, 2));
    assert_eq!(parked[0].error, "a batch of 1 events was not applied within 400 ms");

    recorder.fail("k1", 2, Fault::Hang, 0);
    recorder.fail("k2", 4, Fault::Error, 1);
    assert!(world.redrive_key("k1").await);
    broker.append(world.events(TYPE, events(3, 4..=5)));
    settle(&running).await;
    running.stop().await;
    assert_eq!((world.applied_by_key().await, world.parked().await), (all(3, 5), vec![]));
}

async fn while_the_database_refuses_each_pause_is_longer_and_said_once_and_then_it_goes_on_by_itself(engine: Engine) {
    let site = Site::on(engine).await;
    let name = format!("refused by {engine:?}").leak();
    let (said, recorder) = (Said::by(name), Recorder::new(name));
    let running = site.start(&recorder, quick(1));
    for (version, pauses_min) in [(1, 5), (2, 2)] {
        settle(&running).await;
        let (calls_before, said_before) = (recorder.calls(), said.lines().len());
        site.execute("ALTER TABLE applied RENAME TO hidden").await;
        site.emit(events(1, version..=version)).await;
        let waits = async || {
            let state = running.handle.statuses().await.unwrap()[0].state;
            state == State::BackingOff && said.lines().len() >= said_before + pauses_min
        };
        eventually("some pauses", waits).await;
        site.execute("ALTER TABLE hidden RENAME TO applied").await;
        settle(&running).await;
        let pauses: Vec<_> = said.lines()[said_before..].iter().filter_map(|line| line.pause_ms).collect();
        let (first, longest) = (PROJECTOR_BACKOFF_MIN.as_millis(), PROJECTOR_BACKOFF_MAX.as_millis());
        let doubled: Vec<_> = (0..pauses.len()).map(|step| (first << step).min(longest)).collect();
        assert_eq!((&pauses, said.lines().len()), (&doubled, said_before + pauses.len()), "{:?}", said.lines());
        // One for each pause, one that works, and one more: on a partition the first try is followed by one alone.
        let calls = (recorder.calls() - calls_before) as usize;
        assert!(calls <= pauses.len() + 2, "{calls} tries with {} pauses", pauses.len());
    }
    running.stop().await;
    assert_eq!((site.applied().await, site.parked().await), (all(1, 2), vec![]));
}
