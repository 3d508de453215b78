//! What holds where the outbox is the log holds on partitions too, with each engine behind the projector.

use std::time::Duration;

use tidings_backbone::projector::{Gaps, Options, State};
use tidings_testkit::{database::Engine, on_every_engine};

use super::{Broker, TYPE, all, events, settle};
use crate::world::{Fault, Recorder, World, quick};

on_every_engine!(
    a_batch_of_500_with_one_poison_event_applies_499_and_the_position_is_where_it_would_be,
    unknown_types_are_passed_over_and_a_renamed_projector_leaves_a_visible_position_behind,
    a_key_that_is_being_retried_when_its_partition_moves_loses_and_doubles_nothing,
);

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

async fn a_key_that_is_being_retried_when_its_partition_moves_loses_and_doubles_nothing(engine: Engine) {
    let (broker, world) = on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("k3", 1, Fault::Error, u32::MAX);
    let (first, longest) = (Duration::from_millis(5), Duration::from_millis(20));
    let options = Options { gaps: Gaps { attempts_max: 100_000, first, longest }, ..Options::default() };
    let mut running = world.start(&recorder, options.clone());
    for version in 1..=4 {
        broker.append(world.events(TYPE, events(5, version..=version)));
        let others = i64::try_from(4 * version).unwrap();
        let tried = recorder.tries_alone("k3", 1);
        let is_retried = async || {
            let applied = world.count("SELECT COUNT(*) FROM applied").await;
            applied == others && recorder.tries_alone("k3", 1) > tried + 2
        };
        super::broker::eventually("retries beside the other keys", is_retried).await;
        // The next process takes the partition over while the key waits for its next try.
        let next = world.start(&recorder, options.clone());
        std::mem::replace(&mut running, next).stop().await;
    }
    recorder.fail("k3", 1, Fault::Error, 0);
    settle(&running).await;
    running.stop().await;
    assert_eq!((world.applied_by_key().await, world.parked().await), (all(5, 4), vec![]));
}
