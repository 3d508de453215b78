//! One process at a time does a run, on time, and whoever ends is replaced.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tidings_backbone::{
    Clock,
    reconcile::{Options, Reconciler, Refusal, RepairState, Run, State, Trigger},
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};

use super::{
    refusal,
    site::{Lights, Site, actor, options},
};
use crate::kafka::eventually;

on_every_engine!(
    a_run_is_due_by_the_clock_once_over_all_processes,
    one_process_does_a_run_and_another_one_replaces_it_when_it_was_killed,
    who_was_frozen_and_lost_its_run_touches_nothing_of_its_successor,
    a_run_whose_processes_end_again_and_again_has_failed,
    few_differences_are_repaired_at_once_and_many_wait_for_an_operator,
    a_repair_that_was_killed_goes_on_and_repairs_nothing_twice,
);

fn every_hour() -> Options {
    Options { every: Some(Duration::from_hours(1)), ..options() }
}

async fn runs(reconciler: &Reconciler) -> Vec<Run> {
    reconciler.control().list(None, 100).await.unwrap()
}

async fn a_run_is_due_by_the_clock_once_over_all_processes(engine: Engine) {
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let site = Site::on_with_clock(engine, clock.clone()).await;
    let other = site.world.reopen().await;
    let (one, two) = (site.reconciler(every_hour()), site.reconciler_on(other, every_hour()));
    assert!(!one.round().await.unwrap(), "it has only begun");
    for hour in 1..=3 {
        clock.advance(Duration::from_mins(59));
        assert!(!one.round().await.unwrap());
        clock.advance(Duration::from_mins(1));
        let (first, second) = tokio::join!(one.round(), two.round());
        assert!(first.unwrap() || second.unwrap());
        let found = runs(&one).await;
        assert_eq!(found.len(), hour, "{found:?}");
        assert_eq!((found[0].trigger, found[0].actor.as_deref()), (Trigger::Schedule, None));
        assert_ne!(found[0].state, State::Running);
    }
    // Of one projector alone the others, and the log, have nothing.
    clock.advance(Duration::from_mins(59));
    one.run_now(Some(super::site::NAME), &actor()).await.unwrap();
    clock.advance(Duration::from_mins(1));
    assert!(one.round().await.unwrap());
    let never = site.reconciler(options());
    clock.advance(Duration::from_hours(100));
    assert!(!never.round().await.unwrap());
}

/// Begins a run in a task of its own, that hangs while lights are compared.
async fn begun(site: &Arc<Site>, options: Options) -> tokio::task::JoinHandle<()> {
    let compared = site.lights.compared.load(Ordering::SeqCst);
    let reconciler = site.reconciler(options);
    let task = tokio::spawn(async move { drop(reconciler.run_now(None, &actor()).await) });
    eventually("the comparison to begin", async || site.lights.compared.load(Ordering::SeqCst) > compared).await;
    task
}

async fn one_process_does_a_run_and_another_one_replaces_it_when_it_was_killed(engine: Engine) {
    let site = Arc::new(Site::on(engine).await);
    let relay = site.relay();
    let brief = Options { lease: Duration::from_secs(4), ..options() };
    let gate = site.lights.gate.lock().await;
    let first = begun(&site, brief.clone()).await;
    let second = site.reconciler_on(site.world.reopen().await, brief.clone());
    let id = runs(&second).await[0].id.clone();
    // Longer than a lease: who lives keeps it.
    for _ in 0..5 {
        assert!(!second.round().await.unwrap(), "the first one does it");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(refusal(second.control().start(None, &actor(), None).await), Refusal::UnderWay { id: id.clone() });
    first.abort();
    drop(first.await);
    drop(gate);
    eventually("the lease to end", async || second.round().await.unwrap()).await;
    let run = second.control().find(&id).await.unwrap().unwrap();
    assert_eq!((run.state, run.differences), (State::Done, 0), "{run:?}");
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

/// As a process that was stopped for longer than its lease, and goes on with what it had found before.
async fn who_was_frozen_and_lost_its_run_touches_nothing_of_its_successor(engine: Engine) {
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let site = Site::on_with_clock(engine, clock.clone()).await;
    let (relay, running) = (site.relay(), site.start());
    running.settle().await;
    site.world.execute("INSERT INTO light (name, version) VALUES ('a', 1), ('b', 1), ('c', 1)").await;
    let lights = Arc::new(Lights::default());
    // It found nothing, since it could not compare.
    lights.is_broken.store(true, Ordering::SeqCst);
    let gate = lights.gate.lock().await;
    let patient = Options { lease: Duration::from_hours(1), ..options() };
    let frozen = site.reconciler_of(Arc::clone(&lights), site.world.reopen().await, patient);
    let task = tokio::spawn(async move { frozen.run_now(None, &actor()).await.unwrap() });
    eventually("the comparison to begin", async || lights.compared.load(Ordering::SeqCst) > 0).await;
    clock.advance(Duration::from_hours(2));
    let reconciler = site.reconciler(options());
    assert!(reconciler.round().await.unwrap(), "the lease has ended");
    let run = runs(&reconciler).await.remove(0);
    assert_eq!((run.state, run.differences), (State::Done, 3), "{run:?}");
    drop(gate);
    assert_eq!(task.await.unwrap(), run);
    let repaired = reconciler.repair_now(&run.id, &actor()).await.unwrap();
    assert_eq!(repaired.repair.events, 3, "{repaired:?}");
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

async fn a_run_whose_processes_end_again_and_again_has_failed(engine: Engine) {
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let site = Arc::new(Site::on_with_clock(engine, clock.clone()).await);
    let relay = site.relay();
    let gate = site.lights.gate.lock().await;
    let first = begun(&site, options()).await;
    first.abort();
    for _ in 0..2 {
        clock.advance(Duration::from_secs(20));
        let compared = site.lights.compared.load(Ordering::SeqCst);
        let next = site.reconciler(options());
        let task = tokio::spawn(async move { drop(next.round().await) });
        eventually("another process", async || site.lights.compared.load(Ordering::SeqCst) > compared).await;
        task.abort();
    }
    clock.advance(Duration::from_secs(20));
    let last = site.reconciler(options());
    assert!(last.round().await.unwrap());
    let run = runs(&last).await.remove(0);
    assert_eq!((run.state, run.error.is_some()), (State::Failed, true), "{run:?}");
    drop(gate);
    assert_eq!(last.run_now(None, &actor()).await.unwrap().state, State::Done);

    // One that nobody does is given up for the next one.
    let wish = last.control().start(None, &actor(), None).await.unwrap();
    clock.advance(Duration::from_secs(61));
    let next = last.control().start(None, &actor(), None).await.unwrap();
    let given_up = last.control().find(&wish.id).await.unwrap().unwrap();
    assert_eq!(given_up.state, State::Failed);
    assert!(given_up.error.unwrap().starts_with("nobody did it"));
    assert!(last.round().await.unwrap());
    assert_eq!(last.control().find(&next.id).await.unwrap().unwrap().state, State::Done);
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

async fn few_differences_are_repaired_at_once_and_many_wait_for_an_operator(engine: Engine) {
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let site = Site::on_with_clock(engine, clock.clone()).await;
    let (relay, running) = (site.relay(), site.start());
    let reconciler = site.reconciler(Options { repair_max: 2, ..every_hour() });
    site.world.execute("INSERT INTO light (name, version) VALUES ('a', 1), ('b', 1), ('c', 1)").await;
    clock.advance(Duration::from_hours(1));
    assert!(reconciler.round().await.unwrap());
    let run = runs(&reconciler).await.remove(0);
    assert_eq!((run.differences, run.repair.state), (3, RepairState::Possible), "{run:?}");
    site.world.execute("DELETE FROM light WHERE name = 'c'").await;
    clock.advance(Duration::from_hours(1));
    assert!(reconciler.round().await.unwrap());
    let run = runs(&reconciler).await.remove(0);
    assert_eq!((run.differences, run.repair.state, run.repair.events), (2, RepairState::Done, 2), "{run:?}");
    assert_eq!(site.audit().await, [("reconcile.repaired".to_owned(), "tidings:reconcile".to_owned())]);
    // What an operator asked for is repaired when he says so.
    site.world.execute("INSERT INTO light (name, version) VALUES ('d', 1)").await;
    running.settle().await;
    let asked = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((asked.differences, asked.repair.state), (1, RepairState::Possible), "{asked:?}");
    // Of what runs before it found nothing is kept, since nobody may repair it.
    let kept = site.world.rows("SELECT subject, run FROM reconciliation_difference").await;
    assert_eq!(kept.iter().map(|(_, run)| *run).collect::<Vec<_>>(), [asked.seq], "{kept:?}");
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}

async fn a_repair_that_was_killed_goes_on_and_repairs_nothing_twice(engine: Engine) {
    let site = Arc::new(Site::on(engine).await);
    let (relay, running) = (site.relay(), site.start());
    site.turn(0..1_200).await;
    running.settle().await;
    site.world.execute("DELETE FROM light_view").await;
    let brief = Options { lease: Duration::from_secs(2), ..options() };
    let reconciler = site.reconciler(brief.clone());
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!(run.differences, 1_200, "{run:?}");
    assert_eq!(run.checks.iter().map(|found| found.examples.len()).sum::<usize>(), 20);
    let (mine, id) = (site.reconciler(brief.clone()), run.id.clone());
    let gate = site.lights.repair_gate.lock().await;
    let task = tokio::spawn(async move { drop(mine.repair_now(&id, &actor()).await) });
    let repaired = async |batches| site.lights.repaired.load(Ordering::SeqCst) >= batches;
    eventually("the first batch", async || repaired(1).await).await;
    // It is let go for one batch, and killed within the second.
    drop(gate);
    eventually("the second batch", async || repaired(2).await).await;
    task.abort();
    drop(task.await);
    eventually("the lease to end", async || reconciler.round().await.unwrap()).await;
    let run = reconciler.control().find(&run.id).await.unwrap().unwrap();
    assert_eq!((run.repair.state, run.repair.events), (RepairState::Done, 1_200), "{run:?}");
    assert!(site.facts().await.values().all(|version| *version == 2), "a light was repaired twice, or not at all");
    running.settle().await;
    assert_eq!(site.shown().await, site.facts().await);
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}
