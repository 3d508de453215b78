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

mod several_processes {
    //! Ledgers of several processes on one database.

    use futures::future::join_all;
    use tidings_community::user::facts::{Refusal, Registry};
    use tidings_testkit::{database::Engine, on_every_server};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::world::register;

    on_every_server!(
        a_thousand_identical_follows_to_two_ledgers_are_one_row_and_one_event,
        events_of_a_key_stand_in_the_order_of_their_versions_whoever_decided_them,
        commands_of_a_follower_are_decided_in_their_order_while_batches_overlap,
        ordinals_are_dense_and_handles_unique_whoever_registers,
    );

    /// A ledger with a handle on the database of its own.
    async fn process(world: &World) -> (Ledger<Relation>, JoinHandle<()>) {
        let (ledger, worker) = Ledger::new(Relation::new(world.ids.clone()), world.reopen().await, world.clock.clone());
        (ledger, tokio::spawn(worker.run(CancellationToken::new())))
    }

    async fn a_thousand_identical_follows_to_two_ledgers_are_one_row_and_one_event(engine: Engine) {
        let world = World::on(engine, 2).await;
        let ledgers = [process(&world).await.0, process(&world).await.0];
        let answers = join_all((0..1_000).map(|number| ledgers[number % 2].submit(follow(1, 2), None))).await;
        let changed = answers.into_iter().filter(|answer| answer.as_ref().unwrap().as_ref().unwrap().changed).count();
        assert_eq!(changed, 1);
        assert_eq!(world.relation_events().await.len(), 1);
        assert_eq!(world.facts().await.len(), 1);
        assert_eq!(world.facts().await[&pair(1, 2)].1, 1);
    }

    async fn events_of_a_key_stand_in_the_order_of_their_versions_whoever_decided_them(engine: Engine) {
        let world = World::on(engine, 20).await;
        let ledgers = [process(&world).await.0, process(&world).await.0, process(&world).await.0];
        let clients = (0..30_i64).map(|client| {
            let ledgers = ledgers.clone();
            tokio::spawn(async move {
                for round in 0..60_i64 {
                    let (from, to) = ((client * 3 + round) % 10 + 1, (client + round * 7) % 10 + 11);
                    let command = if (client + round) % 2 == 0 { follow(from, to) } else { unfollow(from, to) };
                    let ledger = &ledgers[usize::try_from(client + round).unwrap() % 3];
                    ledger.submit(command, None).await.unwrap().unwrap();
                }
            })
        });
        for client in join_all(clients).await {
            client.unwrap();
        }
        let mut versions = std::collections::BTreeMap::new();
        for recorded in world.relation_events().await {
            let event = recorded.event;
            let last = versions.entry(event.aggregate_id.clone()).or_insert(0);
            assert_eq!(event.version, *last + 1, "{} at {}", event.aggregate_id, recorded.offset.0);
            *last = event.version;
        }
        for (pair, (_, version, ..)) in world.facts().await {
            assert_eq!(versions[&pair.to_string()], u64::try_from(version).unwrap());
        }
        world.drain().await;
        assert!(world.verify().await.is_clean());
    }

    /// Each command turns over what the one before it of the same follower left: in any other order one of them
    /// would change nothing.
    async fn commands_of_a_follower_are_decided_in_their_order_while_batches_overlap(engine: Engine) {
        const FOLLOWERS: i64 = 3_000;
        let world = World::on(engine, FOLLOWERS + 1).await;
        let (ledger, _worker) = process(&world).await;
        let mut is_following = vec![false; FOLLOWERS as usize];
        let mut random = 1_u64;
        let commands: Vec<_> = (0..12_000)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let follower = (random >> 33) as i64 % FOLLOWERS;
                let is_following = &mut is_following[follower as usize];
                *is_following = !*is_following;
                let change = if *is_following { follow } else { unfollow };
                change(follower + 1, FOLLOWERS + 1)
            })
            .collect();
        for answer in ledger.submit_all(commands).await {
            assert!(answer.unwrap().unwrap().changed);
        }
        let active = world.facts().await.values().filter(|(is_active, ..)| *is_active).count();
        assert_eq!(active, is_following.into_iter().filter(|is_following| *is_following).count());
    }

    async fn ordinals_are_dense_and_handles_unique_whoever_registers(engine: Engine) {
        let world = World::on(engine, 0).await;
        let mut ledgers = Vec::new();
        for _ in 0..3 {
            let (ledger, worker) =
                Ledger::new(Registry::new(world.ids.clone()), world.reopen().await, world.clock.clone());
            tokio::spawn(worker.run(CancellationToken::new()));
            ledgers.push(ledger);
        }
        // Every name is asked for three times, by each of the ledgers, for a user of any id.
        let asked = (0..300).map(|number| {
            let ledger = &ledgers[number % 3];
            ledger.submit(register(None, &format!("user{}", number / 3)), None)
        });
        let answers = join_all(asked).await;
        let taken = answers.iter().filter(|answer| answer.as_ref().unwrap() == &Err(Refusal::HandleTaken)).count();
        assert_eq!(taken, 200);
        let rows = world.query("SELECT id, ordinal FROM account ORDER BY ordinal", vec![]).await;
        assert_eq!(rows, (0..100).map(|ordinal| vec![ordinal + 1, ordinal]).collect::<Vec<_>>());
    }
}
