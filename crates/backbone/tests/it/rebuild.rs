//! A projection is built anew beside the one that is read: exactly, whatever happens meanwhile.

mod lamps;
mod wishes;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use tidings_backbone::{
    Error,
    idempotency::IdempotencyKey,
    journey,
    log::Offset,
    parking,
    projector::{
        Generation, Options,
        rebuild::{Rebuilds, Refusal, Source, Start, State, Wish},
    },
    retention::{self, Retention},
};
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use self::lamps::{Lamps, NAME, Projection, actor, rebuild, until};
use crate::{kafka::eventually, world::quick};

on_every_engine!(
    a_rebuild_under_load_is_exact_and_readers_see_one_generation_whole,
    a_rebuild_that_is_stopped_again_and_again_ends_exact,
    from_facts_there_is_neither_gap_nor_double,
    where_the_log_no_longer_reaches_back_it_is_made_from_facts,
    a_rebuild_is_held_up_goes_on_and_is_given_up,
    a_poison_event_in_what_is_built_is_no_reason_to_switch_before_it_is_mended,
    under_its_plain_name_the_lot_of_what_readers_are_given_is_found,
    who_holds_it_up_while_it_is_checked_holds_up_the_switch,
    what_fails_while_it_is_checked_is_not_switched_over,
    a_rebuild_whose_events_are_gone_from_the_log_says_so,
    two_processes_share_a_rebuild,
    what_differs_from_facts_is_not_given_to_readers_unless_forced,
    a_replay_in_place_applies_what_was_missed_and_nothing_twice,
);
on_every_server!(a_process_that_writes_to_the_old_generation_after_the_switch_leaves_nothing);

/// Turns lamps until it is told to stop; all of them were turned once before it begins.
fn load(lamps: &Arc<Lamps>) -> (Arc<AtomicBool>, tokio::task::JoinHandle<()>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (lamps, stopped) = (Arc::clone(lamps), Arc::clone(&stop));
    let task = tokio::spawn(async move {
        let mut round = 0;
        while !stopped.load(Ordering::SeqCst) {
            lamps.turn((0..5).map(|number| (round * 7 + number) % 60)).await;
            round += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    (stop, task)
}

async fn a_rebuild_under_load_is_exact_and_readers_see_one_generation_whole(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    for _ in 0..4 {
        lamps.turn(0..50).await;
    }
    running.settle().await;
    // By hand: lamps that nobody will turn again are lost, and one is wrong.
    lamps.world.execute("DELETE FROM lamp_view WHERE name IN ('lamp 48', 'lamp 49')").await;
    let (stop, writing) = load(&lamps);
    let (reading, readers) = (Arc::clone(&lamps), Arc::clone(&stop));
    let reader = tokio::spawn(async move {
        let mut seen = std::collections::BTreeSet::new();
        while !readers.load(Ordering::SeqCst) {
            let (generation, shown) = reading.shown().await;
            seen.insert(generation);
            match generation {
                1 => assert!(shown.len() >= 48 && !shown.contains_key("lamp 49"), "{shown:?}"),
                _ => assert!(shown.len() >= 50, "generation {generation} is not whole: {shown:?}"),
            }
        }
        seen
    });
    // A lamp that is ahead of its fact would be found.
    let rebuilt = rebuild(&running.handle.rebuilds()).await;
    assert_eq!((rebuilt.generation, rebuilt.is_from_facts()), (Generation(2), false));
    stop.store(true, Ordering::SeqCst);
    writing.await.unwrap();
    assert!(reader.await.unwrap().contains(&1));
    running.settle().await;
    lamps.assert_whole(2).await;
    // Numbers are not used again.
    assert_eq!(rebuild(&running.handle.rebuilds()).await.generation, Generation(3));
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(3).await;
}

async fn a_rebuild_that_is_stopped_again_and_again_ends_exact(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    for _ in 0..40 {
        lamps.turn(0..60).await;
    }
    let small = Options { batch_events_max: 40, ..quick(2) };
    let running = lamps.start_on(lamps.world.db.clone(), &projection, small.clone());
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    let start = Start { events_per_second: 900, ..Start::default() };
    rebuilds.start(NAME, start, &actor(), None).await.unwrap();
    running.stop().await;
    let (stop, writing) = load(&lamps);
    for _ in 0..3 {
        let running = lamps.start_on(lamps.world.db.clone(), &projection, small.clone());
        let before = lamps.positions("lamps@2").await;
        eventually("some progress", async || lamps.positions("lamps@2").await > before).await;
        running.stop().await;
    }
    stop.store(true, Ordering::SeqCst);
    writing.await.unwrap();
    let running = lamps.start(&projection);
    until(&rebuilds, State::Done).await;
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(2).await;
}

async fn from_facts_there_is_neither_gap_nor_double(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    for _ in 0..3 {
        lamps.turn(0..60).await;
    }
    running.settle().await;
    lamps.world.execute("DELETE FROM lamp_view").await;
    // So slow that many lamps are turned between two chunks, before and after they are copied.
    projection.seed_rows.store(3, Ordering::SeqCst);
    let (stop, writing) = load(&lamps);
    let wish = Wish { source: Source::Facts, ..Wish::default() };
    let rebuilds = running.handle.rebuilds();
    rebuilds.start(NAME, Start { wish, events_per_second: 60, hold: false }, &actor(), None).await.unwrap();
    until(&rebuilds, State::Seeding).await;
    eventually("half of it", async || rebuilds.find(NAME).await.unwrap().is_some_and(|rebuild| rebuild.seeded > 20))
        .await;
    running.stop().await;
    let running = lamps.start(&projection);
    until(&rebuilds, State::Applying).await;
    // Lamps are turned faster than it was allowed to go.
    rebuilds.resume(NAME, Some(0), &actor(), None).await.unwrap();
    let rebuilt = until(&rebuilds, State::Done).await;
    assert!(rebuilt.is_from_facts());
    assert_eq!(rebuilt.seeded, 60);
    stop.store(true, Ordering::SeqCst);
    writing.await.unwrap();
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(2).await;
}

async fn where_the_log_no_longer_reaches_back_it_is_made_from_facts(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    for _ in 0..3 {
        lamps.turn(0..60).await;
    }
    running.settle().await;
    match &lamps.broker {
        None => lamps.world.execute("DELETE FROM outbox WHERE seq < 100").await,
        Some(broker) => broker.delete_before("switch", 5).await,
    }
    let rebuilt = rebuild(&running.handle.rebuilds()).await;
    assert!(rebuilt.is_from_facts());
    lamps.turn(0..60).await;
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(2).await;

    // Without facts it says what is missing, and leaves all as it was.
    let without = Arc::new(Projection { lacks_facts: true, ..Projection::default() });
    let running = lamps.start(&without);
    let rebuilds = running.handle.rebuilds();
    let facts = Wish { source: Source::Facts, ..Wish::default() };
    let refused = rebuilds.start(NAME, Start { wish: facts, ..Start::default() }, &actor(), None).await.unwrap_err();
    assert!(matches!(refused, Error::Rebuild { refusal: Refusal::NoFacts, .. }), "{refused}");
    rebuilds.start(NAME, Start::default(), &actor(), None).await.unwrap();
    let failed = until(&rebuilds, State::Failed).await;
    assert!(failed.report.contains("but the log starts at"), "{}", failed.report);
    rebuilds.cancel(NAME, &actor(), None).await.unwrap();
    until(&rebuilds, State::Cancelled).await;
    lamps.turn(0..60).await;
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(2).await;
}

fn key(action: &str) -> IdempotencyKey {
    IdempotencyKey { scope: "admin".to_owned(), key: action.to_owned(), fingerprint: [7; 32] }
}

async fn a_rebuild_is_held_up_goes_on_and_is_given_up(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    for _ in 0..10 {
        lamps.turn(0..60).await;
    }
    let running = lamps.start(&projection);
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    assert!(matches!(
        rebuilds.pause(NAME, &actor(), None).await,
        Err(Error::Rebuild { refusal: Refusal::NoneUnderWay, .. })
    ));
    rebuilds
        .start(NAME, Start { events_per_second: 100, hold: true, ..Start::default() }, &actor(), None)
        .await
        .unwrap();
    let again = rebuilds.start(NAME, Start::default(), &actor(), None).await;
    assert!(matches!(again, Err(Error::Rebuild { refusal: Refusal::UnderWay(_), .. })), "{again:?}");
    until(&rebuilds, State::Applying).await;
    let paused = rebuilds.pause(NAME, &actor(), Some(&key("pause"))).await.unwrap();
    // Whoever was under way has come to rest when two looks find the same.
    let before = std::sync::Mutex::new(Vec::new());
    eventually("rest", async || {
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        let at = lamps.positions("lamps@2").await;
        std::mem::replace(&mut *before.lock().unwrap(), at.clone()) == at
    })
    .await;
    let before = before.into_inner().unwrap();
    assert!(before.iter().map(|at| at.0).sum::<i64>() < 590, "it was held up on the way: {before:?}");
    let statuses = running.handle.statuses().await.unwrap();
    let names: Vec<_> = statuses.iter().map(|status| (status.name.as_str(), status.is_live)).collect();
    assert_eq!(names, [("lamps", true), ("lamps@2", false)]);
    running.settle().await;

    // Also whoever is started anew holds it up; and goes on when he is told to.
    running.stop().await;
    let running = lamps.start(&projection);
    rebuilds.resume(NAME, None, &actor(), None).await.unwrap();
    let again = rebuilds.pause(NAME, &actor(), Some(&key("pause"))).await.unwrap();
    assert_eq!(again, paused, "a repeated request is answered as the first, and holds nothing up");
    let ready = until(&rebuilds, State::Ready).await;
    assert!(ready.report.contains("0 lamps differ"), "{}", ready.report);
    assert_eq!(lamps.shown().await.0, 1);
    rebuilds.switch(NAME, false, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    lamps.assert_whole(2).await;

    who_asks_for_the_same_again_is_answered_as_before(&rebuilds).await;
    lamps.turn(0..60).await;
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(2).await;
}

/// No rebuild is under way before, and none afterwards.
async fn who_asks_for_the_same_again_is_answered_as_before(rebuilds: &Rebuilds) {
    // Of those who ask for the same at once, one begins it; and who is refused, is refused once more.
    let refused = rebuilds.cancel(NAME, &actor(), Some(&key("cancel"))).await;
    assert!(matches!(refused, Err(Error::Rebuild { refusal: Refusal::NoneUnderWay, .. })), "{refused:?}");
    let (start, begin) = (|| Start { hold: true, ..Start::default() }, key("start"));
    let who = actor();
    let begun = join_all((0..3).map(|_| rebuilds.start(NAME, start(), &who, Some(&begin)))).await;
    let first = begun[0].as_ref().unwrap();
    assert!(begun.iter().all(|other| other.as_ref().unwrap() == first), "{begun:?}");
    until(rebuilds, State::Ready).await;
    let refused = rebuilds.cancel(NAME, &actor(), Some(&key("cancel"))).await;
    assert!(matches!(refused, Err(Error::Rebuild { refusal: Refusal::NoneUnderWay, .. })), "{refused:?}");
    let other = IdempotencyKey { fingerprint: [8; 32], ..key("cancel") };
    let reused = rebuilds.cancel(NAME, &actor(), Some(&other)).await;
    assert!(matches!(reused, Err(Error::Rebuild { refusal: Refusal::KeyReused, .. })), "{reused:?}");
    rebuilds.cancel(NAME, &actor(), None).await.unwrap();
    until(rebuilds, State::Cancelled).await;
    assert_eq!(&rebuilds.start(NAME, start(), &actor(), Some(&begin)).await.unwrap(), first);
    assert!(rebuilds.find(NAME).await.unwrap().unwrap().state.is_finished(), "nothing was begun");
}

async fn a_poison_event_in_what_is_built_is_no_reason_to_switch_before_it_is_mended(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    for _ in 0..3 {
        lamps.turn(0..20).await;
    }
    projection.faults.lock().unwrap().push((Generation(2), "lamp 7".to_owned(), 2));
    let running = lamps.start(&projection);
    let rebuilds = running.handle.rebuilds();
    running.settle().await;
    rebuilds.start(NAME, Start::default(), &actor(), None).await.unwrap();
    let failed = until(&rebuilds, State::Failed).await;
    assert!(failed.report.contains("1 key is dead"), "{}", failed.report);
    assert_eq!(lamps.shown().await, (1, lamps.facts().await));
    let refused = rebuilds.switch(NAME, false, &actor(), None).await;
    assert!(matches!(refused, Err(Error::Rebuild { refusal: Refusal::DeadKeys(1), .. })), "{refused:?}");

    projection.faults.lock().unwrap().clear();
    let filter = parking::Filter::one("lamps@2", "lamp 7");
    lamps.world.redrive(&parking::Redrive { filter, ..Default::default() }).await.unwrap();
    rebuilds.resume(NAME, None, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    running.settle().await;
    running.stop().await;
    assert!(lamps.world.parked().await.is_empty());
    lamps.assert_whole(2).await;
}

async fn under_its_plain_name_the_lot_of_what_readers_are_given_is_found(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    lamps.turn(0..20).await;
    let running = lamps.start(&projection);
    running.settle().await;
    rebuild(&running.handle.rebuilds()).await;
    let fails = |name: &str| (Generation(2), name.to_owned(), 2);
    projection.faults.lock().unwrap().extend([fails("lamp 7"), fails("lamp 8")]);
    lamps.turn(0..20).await;
    let dead = parking::Filter {
        projector: Some(NAME.to_owned()),
        state: Some(parking::State::Dead),
        ..parking::Filter::default()
    };
    let db = &lamps.world.db;
    let found = async || parking::list(db.read().await.unwrap().conn(), &dead, None, 10).await.unwrap();
    eventually("two dead keys", async || found().await.len() == 2).await;
    assert_eq!(found().await[0].projector, "lamps@2");

    projection.faults.lock().unwrap().retain(|fault| fault.1 != "lamp 7");
    let redrive = parking::Redrive { filter: parking::Filter::one(NAME, "lamp 7"), ..Default::default() };
    let plan = parking::plan(db.read().await.unwrap().conn(), &redrive).await.unwrap().unwrap();
    assert_eq!(plan.keys.len(), 1);
    lamps.world.redrive(&redrive).await.unwrap();
    eventually("one dead key", async || lamps.world.parked().await.len() == 1).await;

    let (waiting, _) = parking::events(db.read().await.unwrap().conn(), NAME, "lamp 8", None, 10).await.unwrap();
    let discard = parking::Discard {
        projector: NAME.to_owned(),
        key: "lamp 8".to_owned(),
        which: parking::Which::At(None, waiting[0].offset),
        reason: "it is broken".parse().unwrap(),
    };
    assert_eq!(parking::find(db.read().await.unwrap().conn(), &discard).await.unwrap().unwrap(), waiting[0]);
    let discarded = parking::discard(db, &discard, &actor(), None, lamps.world.clock.now()).await.unwrap().unwrap();
    assert!(discarded.freed);
    assert!(found().await.is_empty());
    running.settle().await;
    running.stop().await;
    assert_eq!((lamps.shown().await.1["lamp 7"], lamps.shown().await.1["lamp 8"]), (2, 1));
}

async fn who_holds_it_up_while_it_is_checked_holds_up_the_switch(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    lamps.turn(0..20).await;
    let running = lamps.start(&projection);
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    let held = projection.check_gate.lock().await;
    rebuilds.start(NAME, Start::default(), &actor(), None).await.unwrap();
    until(&rebuilds, State::Checking).await;
    assert!(rebuilds.pause(NAME, &actor(), None).await.unwrap().is_paused);
    drop(held);
    // Long enough for whoever would switch all the same.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rebuilds.find(NAME).await.unwrap().unwrap().state, State::Checking);
    assert_eq!(lamps.shown().await.0, 1);
    rebuilds.resume(NAME, None, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(2).await;
}

async fn what_fails_while_it_is_checked_is_not_switched_over(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    lamps.turn(0..20).await;
    let running = lamps.start(&projection);
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    let held = projection.check_gate.lock().await;
    rebuilds.start(NAME, Start::default(), &actor(), None).await.unwrap();
    until(&rebuilds, State::Checking).await;
    projection.faults.lock().unwrap().push((Generation(2), "lamp 7".to_owned(), 2));
    lamps.turn(0..20).await;
    eventually("a dead key", async || lamps.world.parked().await.iter().any(|key| key.state == parking::State::Dead))
        .await;
    drop(held);
    let failed = until(&rebuilds, State::Failed).await;
    assert!(failed.report.contains("1 key is dead"), "{}", failed.report);
    assert_eq!(lamps.shown().await, (1, lamps.facts().await));
    rebuilds.switch(NAME, true, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    assert_eq!(lamps.shown().await.0, 2);
    running.stop().await;
}

async fn a_rebuild_whose_events_are_gone_from_the_log_says_so(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    for _ in 0..3 {
        lamps.turn(0..60).await;
    }
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    rebuilds.start(NAME, Start { events_per_second: 1, ..Start::default() }, &actor(), None).await.unwrap();
    until(&rebuilds, State::Applying).await;
    running.stop().await;
    match &lamps.broker {
        None => lamps.world.execute("DELETE FROM outbox WHERE seq < 150").await,
        Some(broker) => broker.delete_before("switch", 20).await,
    }
    let running = lamps.start(&projection);
    let failed = until(&rebuilds, State::Failed).await;
    assert!(failed.report.contains("but the log starts at"), "{}", failed.report);
    rebuilds.cancel(NAME, &actor(), None).await.unwrap();
    until(&rebuilds, State::Cancelled).await;
    lamps.turn(0..60).await;
    running.settle().await;
    running.stop().await;
    lamps.assert_whole(1).await;
}

async fn two_processes_share_a_rebuild(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let (one, two) = (Projection::new(), Projection::new());
    for _ in 0..10 {
        lamps.turn(0..60).await;
    }
    let first = lamps.start(&one);
    let second = lamps.start_on(lamps.world.reopen().await, &two, quick(2));
    first.settle().await;
    let (stop, writing) = load(&lamps);
    let rebuilds = first.handle.rebuilds();
    rebuilds.start(NAME, Start { events_per_second: 600, ..Start::default() }, &actor(), None).await.unwrap();
    until(&rebuilds, State::Applying).await;
    // Whoever leads may be the one that ends here; the other one takes over.
    first.stop().await;
    rebuilds.resume(NAME, Some(0), &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    stop.store(true, Ordering::SeqCst);
    writing.await.unwrap();
    second.settle().await;
    second.stop().await;
    lamps.assert_whole(2).await;
}

async fn what_differs_from_facts_is_not_given_to_readers_unless_forced(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    lamps.turn(0..20).await;
    let running = lamps.start(&projection);
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    rebuilds.start(NAME, Start { hold: true, ..Start::default() }, &actor(), None).await.unwrap();
    until(&rebuilds, State::Ready).await;
    lamps.world.execute("UPDATE lamp_view SET effects = 9 WHERE generation = 2 AND name = 'lamp 3'").await;
    rebuilds.switch(NAME, false, &actor(), None).await.unwrap();
    let failed = until(&rebuilds, State::Failed).await;
    assert_eq!(failed.report, "1 lamps differ");
    assert_eq!(lamps.shown().await.0, 1);
    // What was forced and held up before readers were given it is checked again when it goes on.
    let held = projection.check_gate.lock().await;
    rebuilds.resume(NAME, None, &actor(), None).await.unwrap();
    until(&rebuilds, State::Checking).await;
    rebuilds.switch(NAME, true, &actor(), None).await.unwrap();
    assert!(rebuilds.pause(NAME, &actor(), None).await.unwrap().is_paused);
    drop(held);
    rebuilds.resume(NAME, None, &actor(), None).await.unwrap();
    until(&rebuilds, State::Failed).await;
    rebuilds.switch(NAME, true, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    assert_eq!(lamps.shown().await.0, 2);
    running.stop().await;
}

async fn a_replay_in_place_applies_what_was_missed_and_nothing_twice(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let projection = Projection::new();
    let running = lamps.start(&projection);
    let id = lamps.turn(0..20).await[5];
    for _ in 0..2 {
        lamps.turn(0..20).await;
    }
    running.settle().await;
    lamps.world.execute("DELETE FROM lamp_view WHERE name = 'lamp 5'").await;
    let journey = async || running.handle.journey(id).await.unwrap().unwrap().projectors;
    assert_eq!(journey().await.len(), 1);
    let (stop, writing) = load(&lamps);
    let rebuilds = running.handle.rebuilds();
    let wish = Wish { in_place: true, ..Wish::default() };
    rebuilds.start(NAME, Start { wish, ..Start::default() }, &actor(), None).await.unwrap();
    let before = lamps.facts().await;
    let replayed = until(&rebuilds, State::Done).await;
    stop.store(true, Ordering::SeqCst);
    writing.await.unwrap();
    running.settle().await;
    let stages = journey().await;
    let [live, replay] = &stages[..] else { panic!("{stages:?}") };
    assert_eq!((live.is_replay, live.is_live, live.state), (false, true, journey::State::Applied));
    assert_eq!((replay.is_replay, replay.is_live, replay.state), (true, false, journey::State::Applied));
    let took = (replayed.finished_at.unwrap().0 - replayed.started_at.0).max(1).unsigned_abs();
    assert_eq!((replay.at, replay.resolution), (replayed.finished_at, Some(Duration::from_millis(took))));
    let handle = running.handle.clone();
    running.stop().await;
    assert!(lamps.shown().await.1["lamp 5"] >= 3, "{before:?}");
    // A moment before its end it is no rebuild's any more, and never the one that readers are given.
    let replay = "INSERT INTO projector_position (projector, part, log_offset, updated_at) \
                  VALUES ('lamps@replay', 'switch/0', 1, 1)";
    lamps.world.execute(replay).await;
    let names: Vec<String> = handle.statuses().await.unwrap().into_iter().map(|status| status.identity).collect();
    assert_eq!(names, ["lamps"]);
    let odd = "SELECT COUNT(*) FROM lamp_view WHERE effects <> version OR generation <> 1";
    assert_eq!(lamps.world.count(odd).await, 0);
}

async fn a_process_that_writes_to_the_old_generation_after_the_switch_leaves_nothing(engine: Engine) {
    let lamps = Arc::new(Lamps::on(engine).await);
    let (stale, fresh) = (Projection::new(), Projection::new());
    lamps.turn(0..60).await;
    let first = lamps.start_on(lamps.world.reopen().await, &stale, quick(2));
    let second = lamps.start(&fresh);
    first.settle().await;
    let rebuilds = second.handle.rebuilds();
    rebuilds.start(NAME, Start { hold: true, ..Start::default() }, &actor(), None).await.unwrap();
    until(&rebuilds, State::Ready).await;
    // Both hang in the middle of a transaction on generation 1, and readers are given the next one meanwhile.
    let held = (stale.gate.lock().await, fresh.gate.lock().await);
    lamps.turn(0..60).await;
    rebuilds.switch(NAME, false, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    drop(held);
    lamps.turn(0..60).await;
    first.settle().await;
    second.settle().await;
    first.stop().await;
    second.stop().await;
    lamps.assert_whole(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_from_the_log_that_what_is_built_needs() {
    let lamps = Arc::new(Lamps::on(Engine::Sqlite).await);
    let projection = Projection::new();
    lamps.turn(0..60).await;
    let running = lamps.start(&projection);
    running.settle().await;
    let rebuilds = running.handle.rebuilds();
    rebuilds.start(NAME, Start::default(), &actor(), None).await.unwrap();
    rebuilds.pause(NAME, &actor(), None).await.unwrap();
    rebuilds.resume(NAME, None, &actor(), None).await.unwrap();
    until(&rebuilds, State::Done).await;
    // The old one's position is gone, and holds nothing up; nor is the live one taken for unknown.
    lamps.turn(0..60).await;
    running.settle().await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let options = retention::Options {
        keep_events: Some(Duration::from_millis(1)),
        keep_answers: Duration::from_secs(1),
        keep_audit: Some(Duration::from_secs(1)),
        keep_trail: Duration::from_hours(1),
        round_gap: Duration::from_secs(1),
        projectors: vec![NAME],
    };
    let retention = Retention::new(lamps.world.db.clone(), lamps.world.clock.clone(), options);
    assert_eq!(retention.round().await.unwrap(), 120);

    lamps.turn(0..60).await;
    running.settle().await;
    let held = Start { hold: true, events_per_second: 1, ..Start::default() };
    rebuilds
        .start(NAME, Start { wish: Wish { source: Source::Offset(121), ..Wish::default() }, ..held }, &actor(), None)
        .await
        .unwrap();
    until(&rebuilds, State::Applying).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let gone = retention.round().await.unwrap();
    assert!(gone < 60, "{gone} went, and what is built has applied a few");
    assert_eq!(lamps.positions("lamps").await, Vec::<Offset>::new());
    running.stop().await;
}
