//! Thousands of rows corrupted by hand while writes go on: exactly those are found, and put right.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tidings_community::relation::counters::Counters;
use tidings_testkit::{database::Engine, on_every_engine};
use tokio::{sync::Mutex, task::JoinHandle};

use super::{compare, repair};
use crate::world::{World, follow, unfollow};

on_every_engine!(three_thousand_damaged_pairs_and_counters_are_found_exactly_under_writes_and_put_right);

/// Those who only toggle, all the time.
const WRITERS: std::ops::RangeInclusive<i64> = 8_001..=8_040;
/// Whom the damaged pairs concern, and the writers too.
const HUBS: i64 = 6_001;
const USERS: i64 = 8_040;

struct Traffic {
    is_over: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
}

impl Traffic {
    /// Writes and their projector. Who emits takes turns, so that the outbox is in the order of commits.
    fn start(world: &Arc<World>, turn: &Arc<Mutex<()>>) -> Self {
        let (is_over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writing = {
            let (world, turn, is_over, rounds) =
                (Arc::clone(world), Arc::clone(turn), Arc::clone(&is_over), Arc::clone(&rounds));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let round = i64::try_from(rounds.fetch_add(1, Ordering::Relaxed)).unwrap();
                    world.tick(1);
                    let change = if round % 2 == 0 { follow } else { unfollow };
                    let to = |from: i64| {
                        if from % 2 == 0 { HUBS + (from + round / 2) % 50 } else { 8_001 + (from + 7) % 40 }
                    };
                    let commands: Vec<_> = WRITERS.map(|from| change(from, to(from))).collect();
                    let _turn = turn.lock().await;
                    world.decide(&commands).await;
                }
            })
        };
        let applying = {
            let (world, is_over) = (Arc::clone(world), Arc::clone(&is_over));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    if world.apply_next(500).await == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        Self { is_over, rounds, tasks: vec![writing, applying] }
    }

    async fn stop(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.rounds.load(Ordering::Relaxed)
    }
}

/// Damages a thousand rows each by deleting, adding and changing; answers the pairs and users.
async fn damage(world: &World) -> (BTreeSet<String>, BTreeSet<String>) {
    let between = "AND from_user_id BETWEEN ? AND ?";
    for (sql, from, to) in [
        ("DELETE FROM follower WHERE to_user_id < 6051", 3_001, 4_000),
        ("UPDATE follower SET rel_status = 0 WHERE to_user_id < 6051", 4_001, 4_300),
        ("UPDATE follower SET version = version + 5 WHERE to_user_id < 6051", 4_301, 4_600),
        ("UPDATE follower SET updated_at = updated_at + 1 WHERE to_user_id < 6051", 4_601, 4_800),
        ("UPDATE follower SET created_at = created_at - 1 WHERE to_user_id < 6051", 4_801, 5_000),
    ] {
        let number = world.tamper(&format!("{sql} {between}"), vec![i64::into(from), i64::into(to)]).await;
        assert_eq!(number, (to - from + 1) as u64, "{sql}");
    }
    // Rows that no fact is behind, in each status.
    let values: Vec<String> =
        (0..1_000).map(|at| format!("(1, {}, {}, {}, 1, 5, 5)", HUBS + at % 50, 5_001 + at, at % 2)).collect();
    assert_eq!(world.tamper(&format!("INSERT INTO follower VALUES {}", values.join(", ")), vec![]).await, 1_000);
    let pairs = (3_001..=6_000).map(|from| format!("{from}:{}", HUBS + (from - 3_001) % 50)).collect();

    assert_eq!(world.tamper("DELETE FROM user_counter WHERE user_id <= 1000", vec![]).await, 1_000);
    let counters = Counters { followings: 3, followers: 2, ..Counters::default() };
    let (slots, checksum) = counters.encode();
    let hex: String = slots.iter().map(|byte| format!("{byte:02x}")).collect();
    let (change, insert) = match world.engine {
        Engine::Sqlite => (format!("slots = x'{hex}', checksum = {checksum}"), format!("x'{hex}', {checksum}, 1")),
        Engine::Mariadb | Engine::Mysql => ("followings = followings + 2".to_owned(), "3, 2, 0, 0, 0, 1".to_owned()),
    };
    let sql = format!("UPDATE user_counter SET {change} WHERE user_id BETWEEN 1001 AND 2000");
    assert_eq!(world.tamper(&sql, vec![]).await, 1_000);
    let values: Vec<String> = (2_001..=3_000).map(|id| format!("(1, {id}, {insert})")).collect();
    assert_eq!(world.tamper(&format!("INSERT INTO user_counter VALUES {}", values.join(", ")), vec![]).await, 1_000);
    (pairs, (1..=3_000).map(|id| id.to_string()).collect())
}

async fn three_thousand_damaged_pairs_and_counters_are_found_exactly_under_writes_and_put_right(engine: Engine) {
    let world = Arc::new(World::on(engine, USERS).await);
    // The first two thousand have counters, the third has none; those after them are the followers of the pairs.
    let follows = (1..=2_000).chain(3_001..=5_000).map(|from| {
        if from <= 2_000 { follow(from, 7_000 + from % 50) } else { follow(from, HUBS + (from - 3_001) % 50) }
    });
    for batch in follows.collect::<Vec<_>>().chunks(1_000) {
        world.decide(batch).await;
    }
    world.drain().await;
    let turn = Arc::new(Mutex::new(()));
    let traffic = Traffic::start(&world, &turn);

    for _ in 0..3 {
        let found = compare(&world).await;
        assert_eq!(found.total(), 0, "no false alarm: {:#?}", found.differences());
    }
    let (pairs, users) = damage(&world).await;
    let found = compare(&world).await;
    let of = |check| found.subjects(check).into_iter().collect::<BTreeSet<_>>();
    let (found_pairs, found_users) = (of("relation.mirror"), of("relation.counters"));
    assert_eq!(found_pairs.symmetric_difference(&pairs).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(found_users.symmetric_difference(&users).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!((found.of("relation.mirror").total(), found.of("relation.counters").total()), (3_000, 3_000));

    let before = world.facts().await;
    for differences in found.differences().chunks(500) {
        let _turn = turn.lock().await;
        assert_eq!(repair(&world, differences).await, 500);
    }
    let found = compare(&world).await;
    assert_eq!(found.total(), 0, "{:#?}", found.differences());
    for _ in 0..2 {
        let found = compare(&world).await;
        assert_eq!(found.total(), 0, "no false alarm: {:#?}", found.differences());
    }
    let rounds = traffic.stop().await;
    assert!(rounds > 20, "writes went on all the time: {rounds}");
    world.drain().await;
    let facts = world.facts().await;
    for (pair, (active, _, created, updated)) in before.into_iter().filter(|(pair, _)| pair.from.get() <= 6_000) {
        assert_eq!((facts[&pair].0, facts[&pair].2, facts[&pair].3), (active, created, updated), "{pair}");
    }
    assert_eq!(world.mirror().await, facts);
    compare(&world).await.assert_clean();
    assert!(world.verify().await.is_clean());
}
