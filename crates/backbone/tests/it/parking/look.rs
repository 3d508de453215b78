//! Looking at the parking lot: pages that skip and repeat nothing, and a store that is away.

use std::time::Duration;

use tidings_backbone::{
    Clock,
    parking::{self, Filter},
    projector::State,
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, version, versions};
use crate::world::{Fault, Recorder, quick};

on_every_engine!(
    pages_of_keys_and_of_events_join_without_gap_or_repetition,
    a_dead_letter_store_that_is_away_is_waited_for_and_nothing_is_dropped,
);

async fn pages_of_keys_and_of_events_join_without_gap_or_repetition(engine: Engine) {
    // The clock stands still, so that all keys were parked at one moment.
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let recorder = Recorder::new("recorder");
    for key in 0..25 {
        recorder.fail(&format!("k{key}"), 1, Fault::Error, 1);
    }
    site.emit((0..25).flat_map(|key| versions(&format!("k{key}"), 1..=3).collect::<Vec<_>>())).await;
    let running = site.start(&recorder, quick(1));
    running.settle().await;
    running.stop().await;
    let whole = site.parked().await;
    assert_eq!(whole.len(), 25);
    let first = &whole[0];
    assert_eq!((first.event_type.as_str(), first.waiting), ("switch.turned", 3));
    assert_eq!(first.died_at, Some(first.parked_at));
    assert_eq!(first.event_id, site.waiting(&first.key).await[0].event_id);

    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let mut tx = site.db.read().await.unwrap();
        let page = parking::list(tx.conn(), &Filter::default(), after.as_ref(), 7).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.mark());
        keys.extend(page);
    }
    assert_eq!(keys, whole);

    let (mut events, mut after) = (Vec::<parking::WaitingEvent>::new(), None);
    loop {
        let mut tx = site.db.read().await.unwrap();
        let place = after.as_ref().map(|(part, offset)| (part, *offset));
        let (page, more) = parking::events(tx.conn(), "recorder", "k3", place, 2).await.unwrap();
        after = page.last().map(|event| (event.part.clone(), event.offset));
        events.extend(page);
        if !more {
            break;
        }
    }
    assert_eq!(events.iter().map(version).collect::<Vec<_>>(), [1, 2, 3]);
}

async fn a_dead_letter_store_that_is_away_is_waited_for_and_nothing_is_dropped(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 2, Fault::Error, u32::MAX);
    let running = site.start(&recorder, quick(1));
    site.emit(versions("a", 1..=1)).await;
    running.settle().await;
    site.execute("ALTER TABLE parked_event RENAME TO away").await;
    site.emit(versions("a", 2..=3).chain(versions("b", 1..=3))).await;
    let waits = async || running.handle.statuses().await.is_err();
    assert!(waits().await, "what is parked cannot be told");
    assert!(!running.handle.settle(Duration::from_millis(300)).await.unwrap_or(false));
    assert_eq!(site.count("SELECT COUNT(*) FROM parked_key").await, 0, "no key without its event");
    site.execute("ALTER TABLE away RENAME TO parked_event").await;
    running.settle().await;
    assert!(running.handle.statuses().await.unwrap().iter().all(|status| status.state == State::Running));
    let parked = site.only_parked().await;
    assert_eq!((parked.key.as_str(), parked.waiting), ("a", 2));
    recorder.fail("a", 2, Fault::Error, 0);
    site.redrive_key("a").await;
    running.settle().await;
    running.stop().await;
    let applied = site.applied().await;
    assert_eq!((&applied["a"][..], &applied["b"][..]), (&[1, 2, 3][..], &[1, 2, 3][..]));
}
