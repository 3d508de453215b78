//! Old events go, but never past a projector; a projector that comes too late is told.

use std::time::Duration;

use tidings_backbone::{
    Clock,
    projector::{MissingHistory, Options, State},
    retention::{self, Retention},
};
use tidings_event::Timestamp;

use crate::world::{Recorder, World, quick};

const TURNED: &str = "switch.turned";
const HOUR: Duration = Duration::from_hours(1);

fn retention(world: &World) -> Retention {
    let options = retention::Options {
        keep_events: Some(HOUR),
        keep_answers: HOUR,
        round_gap: HOUR,
        projectors: vec!["recorder"],
    };
    Retention::new(world.db.clone(), world.clock.clone(), options)
}

async fn emit(world: &World, count: u64) {
    world.emit(TURNED, (0..count).map(|number| (format!("key {number}"), 1))).await;
}

#[tokio::test]
async fn nothing_goes_before_every_projector_has_passed_it() {
    let world = World::with_clock(Clock::manual(Timestamp(1_000_000))).await;
    emit(&world, 10).await;
    world.clock.advance(2 * HOUR);
    assert_eq!(retention(&world).round().await.unwrap(), 0, "the projector has no position yet");
    let running = world.start(&Recorder::new("recorder"), quick(3));
    running.settle().await;
    running.stop().await;
    emit(&world, 5).await;
    world.clock.advance(2 * HOUR);
    assert_eq!(retention(&world).round().await.unwrap(), 10, "five are old but not applied");
}

#[tokio::test]
async fn young_events_stay() {
    let world = World::with_clock(Clock::manual(Timestamp(1_000_000))).await;
    emit(&world, 10).await;
    world.clock.advance(2 * HOUR);
    emit(&world, 10).await;
    let running = world.start(&Recorder::new("recorder"), quick(3));
    running.settle().await;
    running.stop().await;
    assert_eq!(retention(&world).round().await.unwrap(), 10);
    assert_eq!(world.count("SELECT COUNT(*) FROM outbox").await, 10);
}

#[tokio::test]
async fn a_projector_before_the_start_of_the_log_stops_and_says_so_or_goes_on_as_configured() {
    let world = World::new().await;
    emit(&world, 10).await;
    world.execute("DELETE FROM outbox WHERE seq <= 4").await;

    let running = world.start(&Recorder::new("recorder"), quick(3));
    assert!(!running.handle.settle(Duration::from_millis(200)).await.unwrap());
    let status = running.handle.statuses().await.unwrap().remove(0);
    assert_eq!(status.state, State::Stopped);
    let detail = "projector `recorder` needs offset 1, but the log starts at 5";
    assert_eq!(status.detail.as_deref(), Some(detail));
    running.stop().await;
    assert!(world.applied().await.is_empty());

    let options = Options { on_missing_history: MissingHistory::Earliest, ..quick(3) };
    let running = world.start(&Recorder::new("recorder"), options);
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 6);
}

#[tokio::test]
async fn an_event_dated_into_the_future_does_not_hold_up_the_others() {
    let world = World::with_clock(Clock::manual(Timestamp(1_000_000))).await;
    let mut early = world.event(TURNED, "early", 1);
    early.occurred_at = Timestamp(world.clock.now().0 + 1_000 * 3_600_000);
    let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
    tidings_backbone::outbox::emit(tx.conn(), vec![early]).await.unwrap();
    tx.commit().await.unwrap();
    emit(&world, 10).await;
    let running = world.start(&Recorder::new("recorder"), quick(3));
    running.settle().await;
    running.stop().await;
    world.clock.advance(2 * HOUR);
    assert_eq!(retention(&world).round().await.unwrap(), 11);
}
