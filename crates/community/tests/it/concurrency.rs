//! Through the ledger and the runtime, with real concurrency.

use std::sync::Arc;

use tidings_backbone::{
    ledger::Ledger,
    log::Log,
    projector::{Options, Runtime, position},
};
use tidings_community::relation::{
    counters::CounterReader,
    facts::Relation,
    projection::{NAME, RelationProjector},
};
use tokio_util::sync::CancellationToken;

use crate::world::{World, follow, pair, unfollow, user};

/// Runs ledger and projector, does `work`, waits until all of it is applied, and stops both.
async fn serving<F: Future>(world: &World, work: impl FnOnce(Ledger<Relation>) -> F) -> F::Output {
    let (ledger, worker) = Ledger::new(Relation::new(world.ids.clone()), world.db.clone(), world.clock.clone());
    let runtime = Runtime::new(world.db.clone(), Log::Embedded(world.db.clone()), world.clock.clone())
        .with(Arc::new(RelationProjector), Options::default());
    let shutdown = CancellationToken::new();
    let worker = tokio::spawn(worker.run(shutdown.clone()));
    let runtime = tokio::spawn(runtime.run(shutdown.clone()));
    let output = work(ledger).await;
    let head = world.events().await.last().unwrap().offset;
    let mut commits = world.db.commits();
    while {
        let mut tx = world.db.read().await.unwrap();
        position(&mut tx.conn(), NAME, &tidings_backbone::log::Part::outbox()).await.unwrap().unwrap_or_default() < head
    } {
        commits.changed().await.unwrap();
    }
    shutdown.cancel();
    worker.await.unwrap();
    runtime.await.unwrap().unwrap();
    output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_concurrent_identical_follows_are_one_row_one_event_and_one_count() {
    let world = World::new(2).await;
    let changed = serving(&world, |ledger| async move {
        let tasks: Vec<_> = (0..1_000)
            .map(|_| {
                let ledger = ledger.clone();
                tokio::spawn(async move { ledger.submit(follow(1, 2), None).await.unwrap().unwrap().changed })
            })
            .collect();
        let mut changed = 0;
        for task in tasks {
            changed += usize::from(task.await.unwrap());
        }
        changed
    })
    .await;
    assert_eq!(changed, 1);
    assert_eq!(world.relation_events().await.len(), 1);
    assert_eq!(world.facts().await.len(), 1);
    assert_eq!(world.facts().await[&pair(1, 2)].1, 1);
    let counters = CounterReader::new(world.db.clone());
    assert_eq!(counters.read(user(1)).await.unwrap().unwrap().followings, 1);
    assert_eq!(counters.read(user(2)).await.unwrap().unwrap().followers, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn toggles_of_fifty_clients_end_with_facts_mirror_lists_and_counters_agreeing() {
    let world = World::new(50).await;
    serving(&world, |ledger| async move {
        let clients: Vec<_> = (1..=50)
            .map(|from| {
                let ledger = ledger.clone();
                tokio::spawn(async move {
                    for round in 0..40 {
                        let to = (from * 7 + round * 13) % 50 + 1;
                        let command = if round % 3 == 2 { unfollow(from, to) } else { follow(from, to) };
                        let answer = ledger.submit(command, None).await.unwrap();
                        assert_eq!(answer.is_ok(), from != to);
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
    })
    .await;
    assert_eq!(world.mirror().await, world.facts().await);
    let report = world.verify().await;
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.pending_events, 0);
}
