//! Mirror and counters built anew: the next generation comes to what the live one is, whatever happens meanwhile.

use std::collections::BTreeMap;

use proptest::{prelude::*, strategy::ValueTree};
use tidings_backbone::{
    Durability,
    audit::Actor,
    log::{Log, Offset, Part},
    projector::{
        Generation, Options, Projector, Runtime, Target, position,
        rebuild::{Check, Generations, Start, State},
    },
};
use tidings_community::relation::{
    EVENT_TYPES,
    counters::CounterReader,
    facts::Command,
    lists::Lists,
    projection::{NAME, RelationProjector},
    read::Page,
    top_page::TopPages,
};
use tidings_testkit::{database::Engine, on_every_engine};
use tokio_util::sync::CancellationToken;

use crate::{
    model::{USERS, batches},
    world::{World, block_on, follow, unfollow, user},
};

on_every_engine!(
    random_interleavings_come_to_the_same,
    a_generation_is_removed_in_steps_and_no_other_is_touched,
    what_is_kept_of_an_old_generation_is_not_served_as_the_new_ones,
);

const NEXT: Target = Target { generation: Generation(2), is_live: false };

fn generations() -> &'static dyn Generations {
    RelationProjector.generations().unwrap()
}

/// What happens while a generation is built.
#[derive(Clone, Debug)]
enum Move {
    Decide(Vec<Command>),
    ApplyToLive(usize),
    /// Facts are copied, or, where they all are, events applied.
    Build(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => batches().prop_map(|batches| Move::Decide(batches.into_iter().flatten().take(6).collect())),
        2 => (1_usize..10).prop_map(Move::ApplyToLive),
        3 => (1_usize..8).prop_map(Move::Build),
    ];
    proptest::collection::vec(one, 1..24)
}

/// A generation that is being built from facts, or from the log.
struct Building {
    is_seeded: bool,
    cursor: Option<String>,
    at: Offset,
}

impl Building {
    /// Notes where the log stands; from then on facts are read.
    async fn begin(world: &World, from_facts: bool) -> Self {
        let at = if from_facts { Log::Embedded(world.db.clone()).extent().await.unwrap().head } else { Offset(0) };
        Self { is_seeded: !from_facts, cursor: None, at }
    }

    /// Does some more; answers whether there was anything to do.
    async fn go_on(&mut self, world: &World, limit: usize) -> bool {
        let mut tx = world.db.write(Durability::Rebuildable).await.unwrap();
        if !self.is_seeded {
            let seeded = generations().seed(NEXT.generation, self.cursor.as_deref(), limit, tx.conn()).await.unwrap();
            (self.is_seeded, self.cursor) = (seeded.next.is_none(), seeded.next);
            tx.commit().await.unwrap();
            return true;
        }
        let batch = tidings_backbone::log::read_after(&mut tx.conn(), self.at, limit).await.unwrap();
        let Some(last) = batch.last() else { return false };
        self.at = last.offset;
        let mine: Vec<_> = batch.into_iter().filter(|it| it.event.event_type.starts_with("relation.")).collect();
        RelationProjector.apply(&mine, NEXT, tx.conn()).await.unwrap();
        tx.commit().await.unwrap();
        true
    }
}

/// Rows of the mirror and counters of a generation.
pub(crate) async fn built(world: &World, generation: i64) -> (Vec<Vec<i64>>, BTreeMap<i64, Vec<i64>>) {
    let sql = "SELECT to_user_id, from_user_id, rel_status, version, created_at, updated_at FROM follower \
               WHERE generation = ? ORDER BY to_user_id, from_user_id";
    let mirror = world.query(sql, vec![generation.into()]).await;
    let columns = match world.engine {
        Engine::Sqlite => "slots",
        Engine::Mariadb | Engine::Mysql => "followings, followers",
    };
    let sql = format!("SELECT user_id, {columns} FROM user_counter WHERE generation = ?");
    let mut tx = world.db.read().await.unwrap();
    let mut counters = BTreeMap::new();
    for row in tx.conn().fetch("testing", sql, vec![generation.into()]).await.unwrap() {
        let numbers: Vec<i64> = match world.engine {
            Engine::Sqlite => {
                row.bytes(1).unwrap().chunks(4).map(|slot| i64::from(slot[3]) + 256 * i64::from(slot[2])).collect()
            }
            Engine::Mariadb | Engine::Mysql => vec![row.int(1).unwrap(), row.int(2).unwrap(), 0, 0, 0],
        };
        // Who has no relations need not have a row.
        if numbers.iter().any(|number| *number != 0) {
            counters.insert(row.int(0).unwrap(), numbers);
        }
    }
    (mirror, counters)
}

async fn check_moves(engine: Engine, before: &[Vec<Command>], moves: Vec<Move>, from_facts: bool) {
    let world = World::on(engine, USERS).await;
    for batch in before {
        world.tick(1);
        world.decide(batch).await;
    }
    world.apply_next(5).await;
    let mut building = Building::begin(&world, from_facts).await;
    for next in moves {
        match next {
            Move::Decide(batch) => {
                world.tick(1);
                world.decide(&batch).await;
            }
            Move::ApplyToLive(limit) => drop(world.apply_next(limit).await),
            Move::Build(limit) => drop(building.go_on(&world, limit).await),
        }
    }
    while building.go_on(&world, 9).await {}
    world.drain().await;
    let (live, next) = (built(&world, 1).await, built(&world, 2).await);
    assert_eq!(next, live);

    // And so the check says, which sees what is on its way.
    world.tick(1);
    world.decide(&[follow(1, 2), unfollow(1, 2), follow(2, 3)]).await;
    let sql = "INSERT INTO projector_position (projector, part, log_offset, updated_at) \
               VALUES ('relation@2', 'outbox/0', ?, 0)";
    world.tamper(sql, vec![building.at.0.into()]).await;
    let log = Log::Embedded(world.db.clone());
    let (generation, event_types, patience) = (NEXT.generation, EVENT_TYPES, std::time::Duration::from_secs(60));
    let check = Check { db: &world.db, log: &log, generation, identity: "relation@2", event_types, patience };
    let checked = generations().check(&check).await.unwrap();
    assert_eq!((checked.differences, checked.in_flight), (0, 0), "{}", checked.report);
}

/// Some of what the next test tries many more of.
async fn random_interleavings_come_to_the_same(engine: Engine) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for round in 0..6 {
        let (before, moves) = (batches(), moves()).new_tree(&mut runner).unwrap().current();
        check_moves(engine, &before, moves, round % 3 > 0).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However commands, the live projector and the building of the next generation take turns.
    #[test]
    fn for_any_interleaving_the_new_generation_equals_the_live_one(
        before in batches(),
        moves in moves(),
        from_facts: bool,
    ) {
        block_on(check_moves(Engine::Sqlite, &before, moves, from_facts));
    }
}

async fn a_generation_is_removed_in_steps_and_no_other_is_touched(engine: Engine) {
    let world = World::on(engine, 12).await;
    let commands: Vec<_> = (2..=12).map(|from| follow(from, 1)).collect();
    world.decide(&commands).await;
    world.drain().await;
    let mut building = Building::begin(&world, true).await;
    while building.go_on(&world, 100).await {}
    let before = built(&world, 1).await;
    assert_eq!(built(&world, 2).await, before);
    let mut steps = 0;
    loop {
        let mut tx = world.db.write(Durability::Rebuildable).await.unwrap();
        let removed = generations().remove(NEXT.generation, 4, tx.conn()).await.unwrap();
        tx.commit().await.unwrap();
        assert!(removed <= 4);
        if removed == 0 {
            break;
        }
        steps += 1;
    }
    assert_eq!(steps, 3 + 3);
    assert_eq!(built(&world, 2).await, (Vec::new(), BTreeMap::new()));
    assert_eq!(built(&world, 1).await, before);
}

async fn what_is_kept_of_an_old_generation_is_not_served_as_the_new_ones(engine: Engine) {
    let world = World::on(engine, 30).await;
    let lists = Lists::new(world.db.clone(), TopPages::new(3));
    let followers = async || {
        let list = lists.followers(user(1), &Page::first(50)).await.unwrap().unwrap();
        list.entries.iter().map(|entry| entry.user_id.get()).collect::<Vec<_>>()
    };
    let mut building = Building::begin(&world, false).await;
    for from in 2..=20 {
        world.tick(1);
        world.done(follow(from, 1)).await;
        world.drain().await;
        // The old generation is wrong, and its first page is kept again and again.
        world.tamper("DELETE FROM follower WHERE generation = 1 AND from_user_id = 3", vec![]).await;
        assert!(!followers().await.contains(&3));
        while building.go_on(&world, 100).await {}
        world.tamper("UPDATE projector_generation SET live = 2", vec![]).await;
        let shown = followers().await;
        assert_eq!(shown.len() as i64, from - 1, "{shown:?}");
        world.tamper("UPDATE projector_generation SET live = 1", vec![]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupted_mirror_is_right_after_a_rebuild_under_load() {
    let world = std::sync::Arc::new(World::on(Engine::Sqlite, 60).await);
    for from in 1..=60 {
        let commands: Vec<_> =
            (1..=60).filter(|to| to % 4 == from % 4 && *to != from).map(|to| follow(from, to)).collect();
        world.decide(&commands).await;
    }
    let runtime = Runtime::new(world.db.clone(), Log::Embedded(world.db.clone()), tidings_backbone::Clock::system())
        .with(std::sync::Arc::new(RelationProjector), Options::default());
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    let running = tokio::spawn(runtime.run(shutdown.clone()));
    assert!(handle.settle(std::time::Duration::from_secs(60)).await.unwrap());
    world.tamper("DELETE FROM follower WHERE (from_user_id * 7 + to_user_id) % 5 = 0", vec![]).await;
    world.tamper("UPDATE user_counter SET slots = x'00'", vec![]).await;
    world.tamper("UPDATE follower SET rel_status = 0 WHERE from_user_id = 9", vec![]).await;
    assert!(world.verify().await.total() > 100);

    let rebuilds = handle.rebuilds();
    rebuilds.start(NAME, Start::default(), &Actor::new("cli:ada"), None).await.unwrap();
    let mut round = 0;
    let done = loop {
        world.tick(1);
        let change = |from: i64, to: i64| if round % 2 == 0 { unfollow(from, to) } else { follow(from, to) };
        world.decide(&(1..=50).map(|from| change(from, from % 4 + 4 * (round / 2 % 10) + 4)).collect::<Vec<_>>()).await;
        round += 1;
        let rebuild = rebuilds.find(NAME).await.unwrap().unwrap();
        assert_ne!(rebuild.state, State::Failed, "{}", rebuild.report);
        if rebuild.state.is_finished() {
            break rebuild;
        }
    };
    assert!(done.report.ends_with("0 differences"), "{}", done.report);
    assert!(handle.settle(std::time::Duration::from_secs(60)).await.unwrap());
    let report = world.verify().await;
    assert!(report.is_clean(), "{report:?}");
    assert!(world.query("SELECT COUNT(*) FROM follower WHERE generation = 1", vec![]).await == [[0]]);
    let counters = CounterReader::new(world.db.clone()).read(user(5)).await.unwrap().unwrap();
    assert!(counters.followers > 0);
    let mut tx = world.db.read().await.unwrap();
    assert!(position(&mut tx.conn(), NAME, &Part::outbox()).await.unwrap().is_none());
    shutdown.cancel();
    running.await.unwrap().unwrap();
}
