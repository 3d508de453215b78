//! Old events go, but never past a projector; a projector that comes too late is told.

mod load;

use std::time::Duration;

use tidings_backbone::{
    Clock,
    log::Offset,
    projector::{MissingHistory, Options, State},
    retention::{self, Retention},
};
use tidings_event::Timestamp;

use tidings_testkit::{database::Engine, on_every_engine, on_every_server};
use tokio::sync::watch;

use crate::world::{Recorder, World, quick};

on_every_engine!(
    old_answers_go_in_batches_and_young_ones_stay,
    old_audit_goes_in_batches_while_others_write_and_the_young_stays,
);
on_every_server!(nothing_goes_before_the_relay_has_published_it);

const TURNED: &str = "switch.turned";
const HOUR: Duration = Duration::from_hours(1);

fn retention(world: &World) -> Retention {
    let options = retention::Options {
        keep_events: Some(HOUR),
        keep_answers: HOUR,
        keep_audit: Some(HOUR),
        keep_trail: Duration::from_hours(1),
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

async fn old_answers_go_in_batches_and_young_ones_stay(engine: Engine) {
    let world = World::on_with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
    let rows = (0..12_000_i64)
        .map(|number| {
            let at = world.clock.now().0 - i64::from(number % 2 == 0) * 2 * 3_600_000;
            ["ada".into(), number.to_string().into(), vec![1].into(), "{}".into(), at.into()]
        })
        .collect();
    let head = "INSERT INTO idempotency_key (scope, idem_key, fingerprint, answer, created_at) VALUES";
    tx.conn().execute_rows("storing", head, rows, "").await.unwrap();
    tx.commit().await.unwrap();
    retention(&world).round().await.unwrap();
    assert_eq!(world.count("SELECT COUNT(*) FROM idempotency_key").await, 6_000);
}

async fn old_audit_goes_in_batches_while_others_write_and_the_young_stays(engine: Engine) {
    let world = World::on_with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let store = async |count: i64, at: i64| {
        let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
        let rows = (0..count).map(|_| [at.into(), "ada".into(), "test".into(), "{}".into()]).collect();
        let head = "INSERT INTO audit (created_at, actor, action, details) VALUES";
        tx.conn().execute_rows("storing", head, rows, "").await.unwrap();
        tx.commit().await.unwrap();
    };
    let now = world.clock.now().0;
    store(3_000, now - 2 * 3_600_000).await;
    store(1_000, now).await;
    // Each batch is a commit of its own, so that nobody waits for the whole.
    let mut commits = world.db.commits();
    let before = *commits.borrow_and_update();
    let writing = async {
        for _ in 0..20 {
            store(10, now).await;
        }
    };
    let retention = retention(&world);
    let (removed, ()) = tokio::join!(retention.round(), writing);
    removed.unwrap();
    let batches = *commits.borrow() - before - 20;
    assert!(batches >= 7, "{batches} commits for 3,000 rows");
    assert_eq!(world.count("SELECT COUNT(*) FROM audit").await, 1_200);
}

async fn nothing_goes_before_the_relay_has_published_it(engine: Engine) {
    let world = World::on_with_clock(engine, Clock::manual(Timestamp(1_000_000))).await;
    for _ in 0..12 {
        emit(&world, 1_000).await;
    }
    world.clock.advance(2 * HOUR);
    emit(&world, 10).await;
    assert_eq!(retention(&world).round().await.unwrap(), 0, "nobody says what is published");
    let (say, published) = watch::channel(None);
    let retention = retention(&world).published(published);
    assert_eq!(retention.round().await.unwrap(), 0, "the relay does not know yet");
    let at = |offset: i64| format!("SELECT seq FROM outbox ORDER BY seq LIMIT 1 OFFSET {offset}");
    let mut tx = world.db.read().await.unwrap();
    let seq = tx.conn().fetch_optional("looking", at(5_999), vec![]).await.unwrap().unwrap().int(0).unwrap();
    say.send(Some(Offset(seq))).unwrap();
    assert_eq!(retention.round().await.unwrap(), 6_000);
    say.send(Some(Offset(i64::MAX))).unwrap();
    assert_eq!(retention.round().await.unwrap(), 6_000, "ten are young");
    assert_eq!(world.count("SELECT COUNT(*) FROM outbox").await, 10);
}
