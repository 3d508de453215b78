//! What a rebalance leaves alone.

use std::time::Duration;

use tidings_backbone::{limits::PROJECTOR_BACKOFF_MIN, projector::State};
use tidings_testkit::{database::Engine, on_every_server};

use super::{Broker, TYPE, all, broker::eventually, events, settle};
use crate::{
    said::Said,
    world::{Recorder, World, quick},
};

on_every_server!(partitions_that_stay_with_a_process_are_not_begun_anew_when_another_one_joins);

/// While nothing can be applied, the task of each partition pauses longer after each try, and one that is begun anew
/// begins with the shortest pause.
async fn partitions_that_stay_with_a_process_are_not_begun_anew_when_another_one_joins(engine: Engine) {
    let broker = Broker::new(3).await;
    let world = World::on(engine).await.reading(&broker).await;
    let name = format!("steady on {engine:?}").leak();
    let (said, recorder) = (Said::by(name), Recorder::new(name));
    let pauses =
        |pause: Duration| said.lines().into_iter().filter(|line| line.pause_ms == Some(pause.as_millis())).count();
    let later = PROJECTOR_BACKOFF_MIN * 8;
    let first = world.start(&recorder, quick(1));
    broker.append(world.events(TYPE, events(30, 1..=1)));
    settle(&first).await;
    world.execute("ALTER TABLE applied RENAME TO hidden").await;
    broker.append(world.events(TYPE, events(30, 2..=2)));
    eventually("the task of each partition to have paused some times", async || pauses(later) == 3).await;
    assert_eq!(pauses(PROJECTOR_BACKOFF_MIN), 3, "{:?}", said.lines());

    let second = world.start(&recorder, quick(1));
    let shares = async || second.handle.statuses().await.unwrap()[0].state == State::BackingOff;
    eventually("a partition of the second process", shares).await;
    eventually("its task to have paused as often", async || pauses(later) == 4).await;
    assert_eq!(pauses(PROJECTOR_BACKOFF_MIN), 4, "one partition has moved: {:?}", said.lines());
    world.execute("ALTER TABLE hidden RENAME TO applied").await;
    settle(&first).await;
    settle(&second).await;
    assert_eq!(pauses(PROJECTOR_BACKOFF_MIN), 4, "{:?}", said.lines());
    first.stop().await;
    second.stop().await;
    assert_eq!((world.applied_by_key().await, world.parked().await), (all(30, 2), vec![]));
}
