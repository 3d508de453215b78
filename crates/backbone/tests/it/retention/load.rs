//! The clean-up beside writers, a relay where there is one, and a projector, none of which makes a pause.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
};

use futures::future::join_all;
use tidings_backbone::{Clock, Durability, log::Offset, outbox};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};
use tokio::sync::watch;

use super::{HOUR, TURNED, retention};
use crate::{
    kafka::Broker,
    world::{PATIENCE, Recorder, World, quick},
};

on_every_engine!(beside_writers_without_a_pause_the_cleanup_costs_no_event_and_no_position);

const WRITERS: usize = 4;
/// Events of one transaction.
const EVENTS: usize = 20;
/// Rounds of the clean-up that find something, and transactions of each writer, before it is enough.
const ROUNDS_MIN: u64 = 15;

/// The writers, until somebody says that it is enough; each has a key of its own. Answers how many versions each
/// key has.
async fn write(world: &World, is_enough: &Cell<bool>) -> Vec<u64> {
    let write_on = async |writer: usize| {
        let mut version = 0;
        while !is_enough.get() || version < ROUNDS_MIN * EVENTS as u64 {
            let versions = (0..EVENTS).map(|_| {
                version += 1;
                (format!("k{writer}"), version)
            });
            let events = world.events(TURNED, versions.collect::<Vec<_>>());
            let answer = ["ada".into(), events[0].id.to_string().into(), vec![1].into(), "{}".into()];
            let [scope, key, fingerprint, text] = answer;
            let mut tx = world.db.write(Durability::Full).await.unwrap();
            outbox::emit(tx.conn(), events).await.unwrap();
            let head = "INSERT INTO idempotency_key (scope, idem_key, fingerprint, answer, created_at) VALUES";
            let row = [scope, key, fingerprint, text, world.clock.now().0.into()];
            tx.conn().execute_rows("storing", head, vec![row], "").await.unwrap();
            tx.commit().await.unwrap();
        }
        version
    };
    join_all((0..WRITERS).map(write_on)).await
}

/// A relay: what is committed goes to the log in order, and it says up to where. Ends with the last of `events`, once
/// their number is known.
async fn relay(world: &World, broker: &Broker, say: &watch::Sender<Option<Offset>>, events: &AtomicU64) {
    let (mut last, mut published) = (Offset(0), 0);
    while published < events.load(Ordering::SeqCst) {
        let page = world.log.read_on(last, 1_000).await.unwrap();
        let Some(end) = page.last() else {
            tokio::task::yield_now().await;
            continue;
        };
        (last, published) = (end.offset, published + page.len() as u64);
        let events = page.into_iter().map(|recorded| recorded.event);
        tokio::task::block_in_place(|| broker.append_relayed(events, last.0.unsigned_abs()));
        say.send_replace(Some(last));
    }
}

async fn beside_writers_without_a_pause_the_cleanup_costs_no_event_and_no_position(engine: Engine) {
    let clock = Clock::manual(Timestamp(1_000_000_000));
    let world = World::on_with_clock(engine, clock.clone()).await;
    let broker = if engine == Engine::Sqlite { None } else { Some(Broker::new(3).await) };
    let world = match &broker {
        Some(broker) => world.reading(broker).await,
        None => {
            world.record_order().await;
            world
        }
    };
    let (say, published) = watch::channel(None);
    let retention = retention(&world).published(published);
    let recorder = Recorder::new("recorder");
    let running = world.start(&recorder, quick(1));

    let (is_enough, events) = (Cell::new(false), AtomicU64::new(u64::MAX));
    let writing = async {
        let versions = write(&world, &is_enough).await;
        events.store(versions.iter().sum(), Ordering::SeqCst);
        versions
    };
    let relaying = async {
        if let Some(broker) = &broker {
            relay(&world, broker, &say, &events).await;
        }
    };
    let cleaning = async {
        let mut rounds = 0;
        while rounds < ROUNDS_MIN {
            // All that there is becomes old at once, and the next that is written is young.
            clock.advance(2 * HOUR);
            rounds += u64::from(retention.round().await.unwrap() > 0);
            tokio::task::yield_now().await;
        }
        is_enough.set(true);
    };
    let all = async { tokio::join!(writing, relaying, cleaning) };
    let (versions, ..) = tokio::time::timeout(PATIENCE, all).await.unwrap();
    running.settle().await;
    running.stop().await;

    // Whoever comes back finds its position in the log, though all before it is gone.
    clock.advance(2 * HOUR);
    retention.round().await.unwrap();
    let left = "SELECT (SELECT COUNT(*) FROM outbox) + (SELECT COUNT(*) FROM idempotency_key) \
                + (SELECT COUNT(*) FROM projector_trail)";
    assert_eq!(world.count(left).await, 0, "all of it is old, and nobody needs it any more");
    let running = world.start(&recorder, quick(1));
    let next = versions.iter().enumerate().map(|(writer, last)| (format!("k{writer}"), last + 1)).collect::<Vec<_>>();
    match &broker {
        None => world.emit(TURNED, next).await,
        Some(broker) => tokio::task::block_in_place(|| broker.append(world.events(TURNED, next))),
    }
    running.settle().await;
    running.stop().await;
    let applied = world.applied_by_key().await;
    for (writer, last) in versions.into_iter().enumerate() {
        let expected: Vec<i64> = (1..=i64::try_from(last).unwrap() + 1).collect();
        assert_eq!(applied[&format!("k{writer}")], expected);
    }
}
