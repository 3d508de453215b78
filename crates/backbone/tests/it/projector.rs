//! Guarantees 4 and 6: every effect happens once, and one bad event never stops other keys.

mod forget;

use std::time::Duration;

use tidings_backbone::{
    log::Offset,
    projector::{self, State},
};

use crate::world::{Fault, PATIENCE, Recorder, World, quick};

const TURNED: &str = "switch.turned";

fn keys(count: u64) -> impl Iterator<Item = (String, u64)> {
    (0..count).map(|number| (format!("key {number}"), 1))
}

#[tokio::test]
async fn events_are_applied_once_in_commit_order_across_restarts() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    for round in 0..5 {
        let running = world.start(&recorder, quick(3));
        world.emit(TURNED, (1..=20).map(|version| ("a".to_owned(), round * 20 + version))).await;
        running.settle().await;
        running.stop().await;
    }
    assert_eq!(world.applied().await["a"], (1..=100).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_batch_of_500_with_one_poison_event_applies_499_and_parks_one() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 250", 1, Fault::Error, u32::MAX);
    world.emit(TURNED, keys(500)).await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 499);
    let parked = world.parked().await;
    assert_eq!(parked.len(), 1);
    assert_eq!((parked[0].key.as_str(), parked[0].error.as_str()), ("key 250", "told to fail"));
    let position = "SELECT log_offset FROM projector_position";
    assert_eq!(world.count(position).await, 500, "the culprit must not hold the position");
}

#[tokio::test]
async fn a_projector_that_panics_parks_the_key_and_lives_on() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 3", 1, Fault::Panic, 1);
    world.emit(TURNED, keys(8)).await;
    let running = world.start(&recorder, quick(3));
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 8);
    assert!(world.parked().await.is_empty());
}

#[tokio::test]
async fn a_dependency_that_is_down_uses_up_no_attempt_and_parks_nothing() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 3", 1, Fault::Dependency, 3);
    world.emit(TURNED, keys(8)).await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 8);
    assert!(world.parked().await.is_empty());
}

#[tokio::test]
async fn unknown_types_are_passed_over_and_the_position_moves() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    world.emit("switch.painted", keys(5)).await;
    world.emit("lamp.broken", keys(5)).await;
    world.emit(TURNED, keys(2)).await;
    let running = world.start(&recorder, quick(3));
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 2);
}

#[tokio::test]
async fn two_runtimes_on_one_database_apply_each_event_once() {
    let world = World::new().await;
    let (first, second) = (Recorder::new("recorder"), Recorder::new("recorder"));
    let (one, two) = (world.start(&first, quick(3)), world.start(&second, quick(3)));
    for version in 1..=50 {
        world.emit(TURNED, [("a".to_owned(), version)]).await;
    }
    one.settle().await;
    one.stop().await;
    world.emit(TURNED, [("a".to_owned(), 51)]).await;
    two.settle().await;
    two.stop().await;
    assert_eq!(world.applied().await["a"], (1..=51).collect::<Vec<i64>>());
}

#[tokio::test]
async fn lag_and_age_are_told_while_the_projector_is_dead() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    let running = world.start(&recorder, quick(3));
    world.emit(TURNED, keys(1)).await;
    running.settle().await;
    let handle = running.handle.clone();
    running.stop().await;
    world.emit(TURNED, keys(7)).await;
    let status = handle.statuses().await.unwrap().remove(0);
    assert_eq!(status.lag_events, 7);
    assert!(status.oldest_age_ms.is_some());
}

#[tokio::test]
async fn a_renamed_projector_leaves_a_visible_position_behind() {
    let world = World::new().await;
    let running = world.start(&Recorder::new("old name"), quick(3));
    world.emit(TURNED, keys(1)).await;
    running.settle().await;
    running.stop().await;
    let running = world.start(&Recorder::new("new name"), quick(3));
    running.settle().await;
    let statuses = running.handle.statuses().await.unwrap();
    let state = |name: &str| statuses.iter().find(|status| status.name == name).map(|status| status.state);
    assert_eq!(state("old name"), Some(State::Unregistered));
    assert_eq!(state("new name"), Some(State::Running));
    running.stop().await;
}

#[tokio::test]
async fn commits_of_another_process_are_noticed() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    let running = world.start(&recorder, quick(3));
    running.settle().await;
    // A second handle on the same file stands for another process: it shares nothing with the first.
    let file = world.database.folder.path().join("test.db");
    let stranger = tidings_backbone::Db::open_sqlite(&file).await.unwrap();
    let mut tx = stranger.write(tidings_backbone::Durability::Full).await.unwrap();
    tidings_backbone::outbox::emit(tx.conn(), vec![world.event(TURNED, "far", 1)]).await.unwrap();
    tx.commit().await.unwrap();
    world.until("the stranger's event is applied", async || world.applied().await.contains_key("far")).await;
    running.stop().await;
}

#[tokio::test]
async fn stopping_in_the_middle_of_a_backlog_never_passes_an_unapplied_event() {
    let world = World::new().await;
    world.emit(TURNED, keys(5_000)).await;
    for _ in 0..4 {
        let running = world.start(&Recorder::new("recorder"), quick(3));
        let before = world.count("SELECT COUNT(*) FROM applied").await;
        world
            .until("some progress", async || {
                let applied = world.count("SELECT COUNT(*) FROM applied").await;
                applied > before || applied == 5_000
            })
            .await;
        running.stop().await;
        let position = world.count("SELECT log_offset FROM projector_position").await;
        assert_eq!(world.count("SELECT COUNT(*) FROM applied").await, position);
    }
    let running = world.start(&Recorder::new("recorder"), quick(3));
    assert!(running.handle.settle(PATIENCE).await.unwrap());
    running.stop().await;
    assert_eq!(world.count("SELECT COUNT(*) FROM applied").await, 5_000);
}

#[tokio::test]
async fn a_batch_that_fails_leaves_nothing_behind_even_with_a_savepoint_of_its_own_open() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 2", 1, Fault::OpenSavepoint, u32::MAX);
    world.emit(TURNED, keys(4)).await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    running.stop().await;
    let applied = world.applied().await;
    assert_eq!(applied.len(), 3);
    assert!(applied.values().all(|versions| versions == &[1]), "{applied:?}");
    assert_eq!(world.parked().await.len(), 1);
}

#[tokio::test]
async fn an_event_that_hangs_is_found_without_blaming_others_and_its_key_is_parked() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 5", 1, Fault::Hang, u32::MAX);
    world.emit(TURNED, keys(8)).await;
    let options = projector::Options { apply_time_max: Duration::from_secs(1), ..quick(2) };
    let running = world.start(&recorder, options);
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 7);
    let parked = world.parked().await;
    assert_eq!((parked.len(), parked[0].key.as_str(), parked[0].attempts), (1, "key 5", 2));
    assert_eq!(parked[0].error, "a batch of 1 events was not applied within 1000 ms");
}

#[tokio::test]
async fn a_panic_after_the_commit_stops_nothing_and_doubles_nothing() {
    let world = World::new().await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 2", 1, Fault::PanicAfterCommit, u32::MAX);
    world.emit(TURNED, keys(4)).await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    world.emit(TURNED, [("later".to_owned(), 1)]).await;
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 5);
}

#[tokio::test]
async fn a_table_that_is_missing_is_nobodys_fault() {
    let world = World::new().await;
    world.execute("ALTER TABLE applied RENAME TO hidden").await;
    world.emit(TURNED, keys(20)).await;
    let running = world.start(&Recorder::new("recorder"), quick(1));
    let handle = running.handle.clone();
    world
        .until("the projector backs off", async || {
            handle.statuses().await.unwrap().iter().any(|status| status.state == State::BackingOff)
        })
        .await;
    assert!(world.parked().await.is_empty());
    world.execute("ALTER TABLE hidden RENAME TO applied").await;
    running.settle().await;
    running.stop().await;
    assert_eq!(world.applied().await.len(), 20);
}

#[tokio::test]
async fn a_row_that_is_no_event_kills_its_key_and_stops_nobody_else() {
    for damage in [
        "UPDATE outbox SET payload = 'not json' WHERE seq = 3",
        "UPDATE outbox SET event_id = X'00' WHERE seq = 3",
        "UPDATE outbox SET version = -1 WHERE seq = 3",
        "UPDATE outbox SET metadata = '[]' WHERE seq = 3",
        "UPDATE outbox SET schema_version = 5000000000 WHERE seq = 3",
        "UPDATE outbox SET payload = X'ff' WHERE seq = 3",
        "UPDATE outbox SET occurred_at = 9223372036854775807 WHERE seq = 3",
        "UPDATE outbox SET aggregate_id = '' WHERE seq = 3",
    ] {
        let world = World::new().await;
        world.emit(TURNED, ["a", "b", "b", "b", "c"].iter().zip(1..).map(|(key, n)| ((*key).to_owned(), n))).await;
        world.execute(damage).await;
        let running = world.start(&Recorder::new("recorder"), quick(3));
        running.settle().await;
        world.emit(TURNED, [("b".to_owned(), 6), ("d".to_owned(), 7)]).await;
        running.settle().await;
        let parked = world.parked().await;
        assert_eq!((parked.len(), parked[0].key.as_str(), parked[0].waiting), (1, "b", 3), "{damage}");
        assert_eq!(parked[0].state, tidings_backbone::parking::State::Dead, "{damage}");
        let applied = world.applied().await;
        assert_eq!((applied["a"].len(), applied["b"].len(), applied["c"].len(), applied["d"].len()), (1, 1, 1, 1));

        // Whoever lists events gets all the others, past the damaged one.
        let offsets: Vec<i64> =
            world.log.read(Offset(0), 3).await.unwrap().iter().map(|recorded| recorded.offset.0).collect();
        assert_eq!(offsets, [1, 2, 4], "{damage}");

        // Whoever redrives the key without mending the row gets it back dead, with its order.
        assert!(world.redrive_key("b").await);
        running.settle().await;
        assert_eq!(world.parked().await[0].waiting, 3, "{damage}");
        running.stop().await;
    }
}

#[tokio::test]
async fn events_that_were_removed_behind_the_position_stop_the_projector() {
    let world = World::new().await;
    world.emit(TURNED, keys(10)).await;
    let running = world.start(&Recorder::new("recorder"), quick(1));
    running.settle().await;
    running.stop().await;
    world.emit(TURNED, keys(10)).await;
    world.execute("DELETE FROM outbox WHERE seq BETWEEN 11 AND 13").await;
    let running = world.start(&Recorder::new("recorder"), quick(1));
    let handle = running.handle.clone();
    let stopped = async || handle.statuses().await.unwrap().iter().any(|status| status.state == State::Stopped);
    while !stopped().await {
        assert!(!running.handle.settle(Duration::from_millis(50)).await.unwrap());
    }
    running.stop().await;
    assert_eq!(world.applied().await.len(), 10);
}

#[tokio::test]
async fn somebody_who_only_looks_sees_another_process_settle() {
    let world = World::new().await;
    let looker = tidings_backbone::Db::open_sqlite(&world.database.folder.path().join("test.db")).await.unwrap();
    let log = tidings_backbone::log::Log::Embedded(looker.clone());
    let looking =
        projector::Runtime::new(looker, log, world.clock.clone()).with(Recorder::new("recorder"), quick(1)).handle();
    world.emit(TURNED, keys(10)).await;
    let settled = tokio::spawn(async move { looking.settle(PATIENCE).await });
    let running = world.start(&Recorder::new("recorder"), quick(1));
    assert!(settled.await.unwrap().unwrap());
    running.stop().await;
}

#[tokio::test]
async fn the_age_of_the_oldest_event_counts_parked_ones() {
    let world = World::with_clock(tidings_backbone::Clock::manual(tidings_event::Timestamp(1_000_000))).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("key 0", 1, Fault::Error, u32::MAX);
    world.emit(TURNED, keys(3)).await;
    let running = world.start(&recorder, quick(1));
    running.settle().await;
    world.clock.advance(Duration::from_secs(60));
    let status = running.handle.statuses().await.unwrap().remove(0);
    assert_eq!((status.lag_events, status.oldest_age_ms), (0, Some(60_000)));
    running.stop().await;
}
