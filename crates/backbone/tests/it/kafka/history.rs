//! Events that retention has removed: of those that were applied nobody misses any, of others everybody.

use tidings_backbone::projector::{Options, State};
use tidings_testkit::{database::Engine, on_every_engine};

use super::{Broker, TYPE, all, broker::eventually, events, settle};
use crate::world::{Recorder, World};

on_every_engine!(a_partition_that_was_idle_until_retention_emptied_it_goes_on_and_one_with_unread_events_stops);

async fn a_partition_that_was_idle_until_retention_emptied_it_goes_on_and_one_with_unread_events_stops(engine: Engine) {
    let broker = Broker::new(1).await;
    let world = World::on(engine).await.reading(&broker).await;
    let recorder = Recorder::new("recorder");
    let running = world.start(&recorder, Options::default());
    broker.append(world.events(TYPE, events(3, 1..=1)));
    settle(&running).await;
    running.stop().await;
    // Offset 3 is the end of the transaction; a process that only looks on notes that nothing else is behind 2.
    let noted =
        async || world.count("SELECT log_offset * 10 + COALESCE(clear_to, 0) FROM projector_position").await == 23;
    let running = world.start(&recorder, Options::default());
    eventually("a note of the transaction's end", noted).await;
    running.stop().await;
    broker.delete_before("switch", 4).await;

    let running = world.start(&recorder, Options::default());
    broker.append(world.events(TYPE, events(3, 2..=2)));
    settle(&running).await;
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(3, 2));

    // What nobody has read is missing, however far the note goes: of another position it says nothing.
    world.execute("UPDATE projector_position SET clear_from = log_offset - 1, clear_to = 99").await;
    broker.append(world.events(TYPE, events(3, 3..=3)));
    broker.delete_before("switch", 12).await;
    let running = world.start(&recorder, Options::default());
    let stopped = async || running.handle.statuses().await.unwrap()[0].state == State::Stopped;
    eventually("the projector to stop", stopped).await;
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(3, 2));
}
