//! Events that retention has removed: of those that were applied nobody misses any, of others everybody.

use tidings_backbone::projector::{MissingHistory, Options, State};
use tidings_testkit::{database::Engine, on_every_server};

use super::{Broker, TYPE, all, broker::eventually, events, settle};
use crate::world::{Recorder, World};

on_every_server!(a_partition_that_was_idle_until_it_was_emptied_goes_on_and_one_with_unread_events_stops_or_as_told);

async fn a_partition_that_was_idle_until_it_was_emptied_goes_on_and_one_with_unread_events_stops_or_as_told(
    engine: Engine,
) {
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
    broker.delete_before("switch", 9).await;
    let running = world.start(&recorder, Options::default());
    let stopped = async || running.handle.statuses().await.unwrap()[0].state == State::Stopped;
    eventually("the projector to stop", stopped).await;
    let detail = running.handle.statuses().await.unwrap()[0].detail.clone().unwrap();
    assert!(detail.ends_with("needs offset 7, but the log starts at 9"), "{detail}");
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(3, 2));

    // Unless it is told to go on with what there is: of three events two.
    let options = Options { on_missing_history: MissingHistory::Earliest, ..Options::default() };
    let running = world.start(&recorder, options);
    settle(&running).await;
    running.stop().await;
    let mut expected = all(3, 3);
    expected.insert("k0".to_owned(), vec![1, 2]);
    assert_eq!(world.applied_by_key().await, expected);
}
