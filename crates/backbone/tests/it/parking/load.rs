//! One poison event among a hundred thousand.

use std::collections::HashSet;

use tidings_backbone::parking::State;
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, versions};
use crate::world::{Fault, Recorder, quick};

on_every_engine!(of_a_hundred_thousand_events_one_is_poison_and_its_key_alone_waits,);

async fn of_a_hundred_thousand_events_one_is_poison_and_its_key_alone_waits(engine: Engine) {
    const STEP: usize = 10_000;
    // Of the two servers one shows as much as both.
    let keys = if engine == Engine::Mysql { 10_000 } else { 100_000 };
    let poison = "k4321";
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail(poison, 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, quick(2));
    let events: Vec<_> = (0..keys).map(|key| (format!("k{key}"), 1)).collect();
    for part in events.chunks(STEP) {
        site.emit(part.iter().cloned()).await;
        running.settle().await;
    }
    site.emit(versions(poison, 2..=1_000)).await;
    running.settle().await;
    let parked = site.only_parked().await;
    assert_eq!((parked.key.as_str(), parked.state, parked.waiting), (poison, State::Dead, 1_000));
    let applied = site.applied().await;
    assert_eq!(applied.len(), keys - 1);
    assert!(applied.values().all(|versions| versions == &[1]));

    // What made it fail is mended.
    recorder.fail(poison, 1, Fault::Error, 0);
    assert!(site.redrive_key(poison).await);
    running.settle().await;
    running.stop().await;
    let mut applied = site.applied().await;
    assert_eq!(applied.remove(poison).unwrap(), (1..=1_000).collect::<Vec<i64>>());
    let others: HashSet<Vec<i64>> = applied.into_values().collect();
    assert_eq!(others, HashSet::from([vec![1]]), "nobody else was disturbed, and nothing is doubled");
    assert_eq!(site.parked().await, []);
}
