//! Every kind of damage is found as what it is, and is put right.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree};
use tidings_community::relation::counters::Counters;
use tidings_testkit::{database::Engine, on_every_engine};

use super::{Found, compare, counted, repair, repair::difference, set, stored};
use crate::{
    model::{USERS, batches},
    world::{World, block_on, follow, pair, unfollow},
};

on_every_engine!(
    each_damage_is_found_as_what_it_is_and_is_put_right,
    what_cancels_out_in_counts_is_found_by_checksums,
    right_counters_are_not_blamed_for_a_wrong_mirror_nor_wrong_ones_excused,
    what_no_event_can_put_right_is_told_as_that_and_left,
    random_damage_is_found_exactly_and_put_right,
);

/// A small graph, applied to the end: 1 ⇄ 2, 3 → 1, 3 ⇢ 2 ended, 4 → 1.
async fn world(engine: Engine) -> World {
    let world = World::on(engine, 6).await;
    world.decide(&[follow(1, 2), follow(2, 1), follow(3, 1), follow(3, 2), follow(4, 1)]).await;
    world.tick(9);
    world.decide(&[unfollow(3, 2)]).await;
    world.drain().await;
    world
}

/// Repairs what was found: then nothing differs, and no fact has changed but for its version.
async fn put_right(world: &World, found: &Found) {
    let before = world.facts().await;
    world.tick(1_000);
    assert_eq!(repair(world, &found.differences()).await, found.total());
    world.drain().await;
    let after = world.facts().await;
    for (pair, (active, version, created, updated)) in &before {
        let now = after[pair];
        assert_eq!((now.0, now.2, now.3), (*active, *created, *updated), "{pair}");
        assert!(now.1 >= *version);
    }
    assert!(after.iter().all(|(pair, row)| before.contains_key(pair) || !row.0), "no follow came from a repair");
    assert_eq!(world.mirror().await, after);
    let counted = counted(world).await;
    for (id, slots) in stored(world).await {
        assert_eq!(slots, Some(counted.get(&id).copied().unwrap_or_default()), "counters of {id}");
    }
    compare(world).await.assert_clean();
    assert!(world.verify().await.is_clean());
}

async fn each_damage_is_found_as_what_it_is_and_is_put_right(engine: Engine) {
    let malformed = match engine {
        Engine::Sqlite => "UPDATE user_counter SET checksum = 1 WHERE user_id < 3",
        Engine::Mariadb | Engine::Mysql => "UPDATE user_counter SET followers = -1 WHERE user_id < 3",
    };
    let damages: [(&str, &str, u64); 12] = [
        ("DELETE FROM follower WHERE from_user_id = 4", "mirror row missing", 1),
        ("DELETE FROM follower WHERE rel_status = 0", "mirror row missing", 1),
        ("UPDATE follower SET version = 7 WHERE from_user_id = 4", "mirror version", 1),
        ("UPDATE follower SET version = 0 WHERE from_user_id < 3", "mirror version", 2),
        ("UPDATE follower SET updated_at = 7 WHERE from_user_id = 4", "mirror time", 1),
        ("UPDATE follower SET created_at = 7 WHERE from_user_id = 3", "mirror time", 2),
        ("UPDATE follower SET rel_status = 0, version = 9 WHERE from_user_id = 4", "mirror status", 1),
        ("UPDATE follower SET rel_status = 2 WHERE from_user_id = 4", "mirror status", 1),
        ("INSERT INTO follower VALUES (1, 5, 6, 1, 9, 1, 1), (1, 6, 5, 0, 2, 1, 1)", "mirror row without fact", 2),
        ("INSERT INTO follower VALUES (1, 77, 78, 1, 1, 1, 1)", "mirror row without fact", 1),
        ("DELETE FROM user_counter WHERE user_id = 4", "counters missing", 1),
        (malformed, "counters malformed", 2),
    ];
    for (damage, kind, number) in damages {
        let world = world(engine).await;
        compare(&world).await.assert_clean();
        assert!(world.tamper(damage, vec![]).await > 0);
        let found = compare(&world).await;
        assert_eq!(found.kinds(), BTreeMap::from([(kind, number)]), "{damage}: {:#?}", found.differences());
        assert_eq!(found.lagging(), 0);
        put_right(&world, &found).await;
    }
    // A slot that differs, and the row of somebody who has no relations.
    let world = world(engine).await;
    set(&world, 2, Counters { followings: 1, followers: 1, posts: 3, ..Counters::default() }).await;
    set(&world, 6, Counters { followers: 1, ..Counters::default() }).await;
    let found = compare(&world).await;
    assert_eq!(found.kinds(), BTreeMap::from([("counter value", 2)]));
    assert_eq!(found.subjects("relation.counters"), ["2", "6"]);
    put_right(&world, &found).await;
}

async fn what_cancels_out_in_counts_is_found_by_checksums(engine: Engine) {
    let world = world(engine).await;
    let clean = compare(&world).await;
    let mirror = clean.of("relation.mirror");
    assert_eq!((mirror.rows, mirror.shards, mirror.shards_differing), (5, 2, 0));
    // Rows of one shard exchange their states, or one has what the other lacks.
    for damage in [
        "UPDATE follower SET created_at = created_at + CASE from_user_id WHEN 3 THEN 1 WHEN 4 THEN -1 ELSE 0 END \
         WHERE to_user_id = 1",
        "UPDATE follower SET rel_status = 1 - rel_status, version = 3 - version WHERE to_user_id = 2",
    ] {
        assert!(world.tamper(damage, vec![]).await > 0);
        let found = compare(&world).await;
        assert!(found.of("relation.mirror").shards_differing > 0);
        assert_eq!(found.of("relation.mirror").total(), 2, "{:#?}", found.differences());
        put_right(&world, &found).await;
    }
}

async fn right_counters_are_not_blamed_for_a_wrong_mirror_nor_wrong_ones_excused(engine: Engine) {
    let world = world(engine).await;
    world.tamper("DELETE FROM follower WHERE from_user_id = 4", vec![]).await;
    // As wrong as the mirror: of the two of 4 → 1, the counters of 1 agree with it.
    set(&world, 1, Counters { followings: 1, followers: 2, ..Counters::default() }).await;
    let found = compare(&world).await;
    assert_eq!(found.subjects("relation.mirror"), ["4:1"]);
    assert_eq!(found.subjects("relation.counters"), ["1"], "{:#?}", found.differences());
    put_right(&world, &found).await;
}

async fn what_no_event_can_put_right_is_told_as_that_and_left(engine: Engine) {
    let world = world(engine).await;
    world.tamper("UPDATE follower SET version = ? WHERE from_user_id = 4", vec![i64::MAX.into()]).await;
    // Rows of what can be no user, in the way of nobody else.
    world.tamper("INSERT INTO follower VALUES (1, 2, -5, 1, 1, 1, 1), (1, -7, 1, 0, 1, 1, 1)", vec![]).await;
    set(&world, -3, Counters::default()).await;
    world.tamper("DELETE FROM follower WHERE from_user_id = 2", vec![]).await;
    let left = [("counters of no user", 1), ("mirror row of no user", 2), ("mirror version", 1)];
    let with = |more: &[(&'static str, u64)]| left.iter().chain(more).copied().collect::<BTreeMap<_, _>>();
    let found = compare(&world).await;
    assert_eq!(found.kinds(), with(&[("mirror row missing", 1)]));
    assert_eq!(found.subjects("relation.mirror"), ["2:1"], "only this is for events");
    let told: Vec<_> =
        found.of("relation.mirror").unrepairable.iter().map(|difference| difference.subject.as_str()).collect();
    assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["4:1", "-5:2", "1:-7"]));
    for check in ["relation.mirror", "relation.counters"] {
        assert!(found.note(check).contains("tidings rebuild start relation"), "{check}: {}", found.note(check));
    }
    let before = world.facts().await;
    assert_eq!(repair(&world, &found.differences()).await, 1);
    assert_eq!(repair(&world, &[difference("mirror version", "4:1")]).await, 0, "whoever asks for it");
    world.drain().await;
    assert_eq!(world.facts().await[&pair(4, 1)], before[&pair(4, 1)]);
    let found = compare(&world).await;
    assert_eq!((found.kinds(), found.differences().len()), (with(&[]), 0));
}

/// Damage to a graph of the users of the model.
#[derive(Clone, Debug)]
enum Damage {
    Delete(i64, i64),
    Insert(i64, i64, i64),
    Set(i64, i64, &'static str, i64),
    Counters(i64, u32, u32),
    NoCounters(i64),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let user = || 1..=USERS;
    let column = prop_oneof![Just("rel_status"), Just("version"), Just("created_at"), Just("updated_at")];
    let one = prop_oneof![
        (user(), user()).prop_map(|(from, to)| Damage::Delete(from, to)),
        (user(), user(), 0..2_i64).prop_map(|(from, to, status)| Damage::Insert(from, to, status)),
        (user(), user(), column, 0..2_i64).prop_map(|(from, to, column, value)| Damage::Set(from, to, column, value)),
        (user(), 0..4_u32, 0..4_u32)
            .prop_map(|(id, followings, followers)| Damage::Counters(id, followings, followers)),
        user().prop_map(Damage::NoCounters),
    ];
    proptest::collection::vec(one, 0..12)
}

impl Damage {
    async fn happen(&self, world: &World) {
        let key = |from: i64, to: i64| vec![from.into(), to.into()];
        match *self {
            Self::Delete(from, to) => {
                let sql = "DELETE FROM follower WHERE from_user_id = ? AND to_user_id = ?";
                world.tamper(sql, key(from, to)).await;
            }
            Self::Insert(from, to, status) => {
                if world.mirror().await.keys().any(|pair| pair.from.get() == from && pair.to.get() == to) {
                    return;
                }
                let args = vec![to.into(), from.into(), status.into()];
                world.tamper("INSERT INTO follower VALUES (1, ?, ?, ?, 3, 5, 5)", args).await;
            }
            Self::Set(from, to, column, value) => {
                let sql = format!("UPDATE follower SET {column} = ? WHERE from_user_id = ? AND to_user_id = ?");
                world.tamper(&sql, [vec![value.into()], key(from, to)].concat()).await;
            }
            Self::Counters(id, followings, followers) => {
                set(world, id, Counters { followings, followers, ..Counters::default() }).await;
            }
            Self::NoCounters(id) => {
                world.tamper("DELETE FROM user_counter WHERE user_id = ?", vec![id.into()]).await;
            }
        }
    }
}

/// What differs, by the plainest look at all rows.
async fn wrong(world: &World) -> (BTreeSet<String>, BTreeSet<String>) {
    let (facts, mirror) = (world.facts().await, world.mirror().await);
    let pairs: BTreeSet<_> = facts.keys().chain(mirror.keys()).collect();
    let pairs = pairs.into_iter().filter(|pair| facts.get(pair) != mirror.get(pair)).map(ToString::to_string).collect();
    let (stored, counted) = (stored(world).await, counted(world).await);
    let is_wrong = |id: &i64| {
        let expected = counted.get(id).copied().unwrap_or_default();
        stored.get(id).map_or(expected != [0; 5], |found| *found != Some(expected))
    };
    (pairs, (1..=USERS).filter(is_wrong).map(|id| id.to_string()).collect())
}

async fn check_damage(
    engine: Engine,
    batches: &[Vec<tidings_community::relation::facts::Command>],
    damages: &[Damage],
) {
    let world = World::on(engine, USERS).await;
    for batch in batches {
        world.tick(1);
        world.decide(batch).await;
    }
    world.drain().await;
    for damage in damages {
        damage.happen(&world).await;
    }
    let (pairs, users) = wrong(&world).await;
    let found = compare(&world).await;
    assert_eq!(found.subjects("relation.mirror").into_iter().collect::<BTreeSet<_>>(), pairs, "{damages:?}");
    assert_eq!(found.subjects("relation.counters").into_iter().collect::<BTreeSet<_>>(), users, "{damages:?}");
    assert_eq!(found.total(), (pairs.len() + users.len()) as u64);
    put_right(&world, &found).await;
}

/// Some of what the next test tries many more of.
async fn random_damage_is_found_exactly_and_put_right(engine: Engine) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..5 {
        let (batches, damages) = (batches(), damages()).new_tree(&mut runner).unwrap().current();
        check_damage(engine, &batches, &damages).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the graph, and whatever is done to mirror and counters.
    #[test]
    fn for_any_damage_exactly_what_differs_is_found(batches in batches(), damages in damages()) {
        block_on(check_damage(Engine::Sqlite, &batches, &damages));
    }
}
