//! Keys that nobody here would write, and no table here has room for.

use std::collections::HashSet;

use tidings_backbone::parking::State;
use tidings_testkit::{database::Engine, on_every_engine};

use super::{Broker, TYPE, all, events, settle};
use crate::world::{Recorder, World, quick};

on_every_engine!(
    records_with_keys_too_long_are_parked_under_keys_that_fit_and_their_partition_goes_on,
    a_row_of_the_outbox_with_a_key_too_long_is_parked_under_one_that_fits,
);

/// 1,020 bytes, 255 characters.
fn long() -> String {
    "🦀".repeat(255)
}

async fn assert_dead_with_fitting_keys(world: &World, count: usize) {
    let parked = world.parked().await;
    assert!(parked.iter().all(|key| key.state == State::Dead && key.key.len() <= 255), "{parked:?}");
    assert_eq!(parked.iter().map(|key| &key.key).collect::<HashSet<_>>().len(), count, "{parked:?}");
}

async fn records_with_keys_too_long_are_parked_under_keys_that_fit_and_their_partition_goes_on(engine: Engine) {
    let broker = Broker::new(1).await;
    let world = World::on(engine).await.reading(&broker).await;
    let (fitting, twin) = ("x".repeat(255), long() + "2");
    broker.append(world.events(TYPE, events(5, 1..=1)));
    // Of 86 bytes, each of which is three when it is shown.
    broker.append_raw("switch", &[0xff; 86], b"{}");
    broker.append_raw("switch", &[b'x'; 300], b"{}");
    broker.append(world.events(TYPE, [(long(), 1), (twin, 1), (long(), 2), (fitting.clone(), 1)]));
    broker.append(world.events(TYPE, events(5, 2..=2)));
    let running = world.start(&Recorder::new("recorder"), quick(3));
    settle(&running).await;
    running.stop().await;
    let mut expected = all(5, 2);
    expected.insert(fitting, vec![1]);
    assert_eq!(world.applied_by_key().await, expected);
    assert_dead_with_fitting_keys(&world, 4).await;
}

async fn a_row_of_the_outbox_with_a_key_too_long_is_parked_under_one_that_fits(engine: Engine) {
    let world = World::on(engine).await;
    world.emit(TYPE, events(3, 1..=1)).await;
    let sql = format!("UPDATE outbox SET event_key = '{}' WHERE seq = 2", long());
    let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
    tx.conn().execute("lengthening a key", sql, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    let running = world.start(&Recorder::new("recorder"), quick(3));
    settle(&running).await;
    running.stop().await;
    let mut expected = all(3, 1);
    expected.remove("k1");
    assert_eq!(world.applied().await, expected);
    assert_dead_with_fitting_keys(&world, 1).await;
}
