//! What follows from facts is compared with them: what differs is found exactly, what is only on its way is not, and
//! events put it right.

mod held;
mod path;
mod site;
mod turns;
mod waiting;

use std::{
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::join_all;
use tidings_backbone::{
    Clock, Error,
    idempotency::IdempotencyKey,
    projector::Generation,
    reconcile::{Comparison, Found, Options, Refusal, RepairState, Run, State, Trigger},
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};

use self::site::{NAME, Site, TURNED, actor, options};

on_every_engine!(
    what_differs_from_facts_is_found_exactly_and_repaired_by_events_while_writes_go_on,
    only_what_the_last_run_found_is_repaired_and_not_for_ever,
    a_repeated_key_begins_one_run,
    a_check_that_fails_is_told_and_the_others_are_made,
    what_a_projector_has_yet_to_begin_with_is_not_settled,
    the_last_hundred_runs_are_kept,
);

/// What the check of lights found.
pub(crate) fn lights(run: &Run) -> &Found {
    run.checks.iter().find(|found| found.check == "lights.view").unwrap()
}

async fn what_differs_from_facts_is_found_exactly_and_repaired_by_events_while_writes_go_on(engine: Engine) {
    let site = Arc::new(Site::on(engine).await);
    let (relay, running) = (site.relay(), site.start());
    for _ in 0..2 {
        site.turn(0..60).await;
    }
    running.settle().await;
    // With writes going on there always is something on its way.
    let reconciler = site.reconciler(Options { relay_late: std::time::Duration::from_mins(1), ..options() });
    let clean = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((clean.state, clean.differences, clean.repair.state), (State::Done, 0, RepairState::None), "{clean:?}");
    assert!(clean.finished_at.is_some() && clean.trigger == Trigger::Operator);

    // By hand: lights that nobody turns meanwhile are lost, behind, and ahead.
    site.world.execute("DELETE FROM light_view WHERE name IN ('light 51', 'light 52')").await;
    site.world.execute("UPDATE light_view SET version = 1 WHERE name IN ('light 53', 'light 54', 'light 55')").await;
    site.world.execute("UPDATE light_view SET version = 77 WHERE name = 'light 56'").await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writing, stopped) = (Arc::clone(&site), Arc::clone(&stop));
    let writer = tokio::spawn(async move {
        while !stopped.load(Ordering::SeqCst) {
            writing.turn(0..50).await;
        }
    });
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((run.state, run.differences), (State::Done, 6), "{run:?}");
    let found = lights(&run);
    let kinds: Vec<_> = found.kinds.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(kinds, [("light missing", 2), ("light wrong", 4)]);
    let subjects: Vec<_> = found.examples.iter().map(|example| example.subject.as_str()).collect();
    assert_eq!(subjects, ["light 51", "light 52", "light 53", "light 54", "light 55", "light 56"]);
    assert_eq!(run.repair.state, RepairState::Possible);

    let repaired = reconciler.repair_now(&run.id, &actor()).await.unwrap();
    assert_eq!((repaired.repair.state, repaired.repair.events), (RepairState::Done, 6), "{repaired:?}");
    stop.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    running.settle().await;
    assert_eq!(site.shown().await, site.facts().await);
    let clean = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((clean.state, clean.differences), (State::Done, 0), "{clean:?}");
    let told: Vec<_> = site.audit().await;
    let expected = ["reconcile.repair", "reconcile.repaired"].map(|action| (action.to_owned(), "cli:ada".to_owned()));
    assert_eq!(told, expected);
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

fn refusal<T: std::fmt::Debug>(done: tidings_backbone::Result<T>) -> Refusal {
    match done {
        Err(Error::Reconcile(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

async fn only_what_the_last_run_found_is_repaired_and_not_for_ever(engine: Engine) {
    // A fact without its event, so that nothing need run.
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let site = Site::on_with_clock(engine, clock.clone()).await;
    let (relay, running) = (site.relay(), site.start());
    let control = site.reconciler(options()).control();
    assert_eq!(refusal(control.repair("no such run", &actor(), None).await), Refusal::UnknownRun);
    assert_eq!(refusal(control.start(Some("nobody"), &actor(), None).await), Refusal::UnknownProjector);
    let reconciler = site.reconciler(options());
    // What no event can put right is told, and is nothing to repair.
    site.world.execute("INSERT INTO light (name, version) VALUES ('light 0', 1000000)").await;
    let broken = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((broken.differences, broken.repair.state), (1, RepairState::None), "{broken:?}");
    assert_eq!(lights(&broken).examples[0].subject, "light 0");
    site.world.execute("UPDATE light SET name = 'light 1', version = 4").await;
    let only = reconciler.run_now(Some(NAME), &actor()).await.unwrap();
    assert_eq!((only.checks.len(), only.projector.as_deref()), (1, Some(NAME)));
    let first = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((first.checks.len() > 1, first.differences), (true, 1), "{first:?}");
    assert_eq!(refusal(reconciler.repair_now(&only.id, &actor()).await), Refusal::NothingToRepair);
    assert_eq!(control.find(&only.id).await.unwrap().unwrap().repair.state, RepairState::None);
    clock.advance(std::time::Duration::from_hours(25));
    assert_eq!(refusal(reconciler.repair_now(&first.id, &actor()).await), Refusal::TooOld);
    let again = reconciler.run_now(None, &actor()).await.unwrap();
    let repaired = reconciler.repair_now(&again.id, &actor()).await.unwrap();
    assert_eq!(repaired.repair.events, 1);
    assert_eq!(refusal(reconciler.repair_now(&again.id, &actor()).await), Refusal::NothingToRepair);
    assert_eq!(site.facts().await["light 1"], 5);
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

async fn a_repeated_key_begins_one_run(engine: Engine) {
    let site = Site::on(engine).await;
    let control = site.reconciler(options()).control();
    let key = IdempotencyKey { scope: "admin".to_owned(), key: "k".to_owned(), fingerprint: [7; 32] };
    let who = actor();
    let begun = join_all((0..3).map(|_| control.start(None, &who, Some(&key)))).await;
    let run = control.start(None, &who, Some(&key)).await.unwrap();
    assert!(begun.iter().all(|begun| begun.as_ref().is_ok_and(|begun| *begun == run)), "{begun:?}");
    let other = IdempotencyKey { fingerprint: [8; 32], ..key.clone() };
    assert_eq!(refusal(control.start(None, &actor(), Some(&other)).await), Refusal::KeyReused);
    assert_eq!(refusal(control.start(None, &actor(), None).await), Refusal::UnderWay { id: run.id.clone() });
    assert_eq!(control.list(None, 10).await.unwrap(), slice::from_ref(&run));

    // Who was refused is told so once more, whatever has become of the run since.
    let key = IdempotencyKey { key: "repair".to_owned(), ..key };
    let under_way = Refusal::UnderWay { id: run.id.clone() };
    assert_eq!(refusal(control.repair(&run.id, &who, Some(&key)).await), under_way);
    let done = "UPDATE reconciliation SET active = NULL, state = 'done', repair_state = 'possible', \
                finished_at = started_at";
    site.world.execute(done).await;
    assert_eq!(refusal(control.repair(&run.id, &who, Some(&key)).await), under_way);
    let key = IdempotencyKey { key: "another".to_owned(), ..key };
    let repairs = join_all((0..3).map(|_| control.repair(&run.id, &who, Some(&key)))).await;
    assert!(repairs.iter().all(|repair| repair.as_ref().is_ok_and(|run| run.is_active())), "{repairs:?}");
    assert_eq!(site.audit().await.len(), 1, "asked for once");
}

async fn a_check_that_fails_is_told_and_the_others_are_made(engine: Engine) {
    let site = Site::on(engine).await;
    let relay = site.relay();
    site.lights.is_broken.store(true, Ordering::SeqCst);
    let reconciler = site.reconciler(options());
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((run.state, run.differences), (State::Failed, 0));
    assert!(run.error.as_ref().unwrap().contains("told to fail"), "{run:?}");
    let failed = run.checks.iter().find(|found| found.check == NAME).unwrap();
    assert!(failed.note.as_ref().unwrap().starts_with("could not be compared"), "{failed:?}");
    assert!(run.checks.iter().any(|found| found.check == "log" && found.note.is_none() == relay.is_some()), "{run:?}");
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

async fn what_a_projector_has_yet_to_begin_with_is_not_settled(engine: Engine) {
    let site = Site::on(engine).await;
    let relay = site.relay();
    site.turn(0..40).await;
    let (db, log, generation) = (&site.world.db, &site.world.log, Generation::FIRST);
    let patience = std::time::Duration::from_mins(1);
    let comparison = Comparison { db, log, generation, identity: NAME, event_types: &[TURNED], patience };
    let (settled, running) = tokio::join!(comparison.settle(), async { site.start() });
    assert!(settled.unwrap());
    assert_eq!(site.shown().await, site.facts().await, "it was settled before it began");
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

async fn the_last_hundred_runs_are_kept(engine: Engine) {
    if engine != Engine::Sqlite {
        return;
    }
    let site = Site::on(engine).await;
    let reconciler = site.reconciler(options());
    let mut ids = Vec::new();
    for _ in 0..103 {
        ids.push(reconciler.run_now(None, &actor()).await.unwrap().id);
    }
    ids.reverse();
    let control = reconciler.control();
    let first = control.list(None, 60).await.unwrap();
    let rest = control.list(first.last().map(|run| run.seq), 60).await.unwrap();
    let kept: Vec<_> = first.iter().chain(&rest).map(|run| run.id.clone()).collect();
    assert_eq!(kept, ids[..100]);
}
