//! Damage to more rows than a run looks at.

use std::collections::BTreeMap;

use tidings_community::relation::counters::Counters;
use tidings_testkit::{database::Engine, on_every_engine};

use super::compare;
use crate::world::World;

on_every_engine!(of_more_damage_than_a_run_looks_at_all_is_counted_and_no_right_counter_is_blamed);

const USERS: i64 = 330;
/// Pairs of which the first has the lower id.
const HALF: u64 = 54_285;

/// Everybody follows everybody, as if all of it had been applied.
async fn world(engine: Engine) -> World {
    let world = World::on(engine, USERS).await;
    let columns = "from_user_id, to_user_id, rel_status, version, created_at, updated_at";
    let facts = format!(
        "INSERT INTO following ({columns}) SELECT a.id, b.id, 1, 1, 5, 5 FROM account a CROSS JOIN account b \
         WHERE a.id <> b.id"
    );
    assert_eq!(world.tamper(&facts, vec![]).await, 2 * HALF);
    let mirror = format!("INSERT INTO follower (generation, {columns}) SELECT 1, {columns} FROM following");
    assert_eq!(world.tamper(&mirror, vec![]).await, 2 * HALF);
    let counters = Counters { followings: 329, followers: 329, ..Counters::default() };
    let (slots, checksum) = counters.encode();
    let hex: String = slots.iter().map(|byte| format!("{byte:02x}")).collect();
    let counters = match engine {
        Engine::Sqlite => format!("x'{hex}', {checksum}, 1"),
        Engine::Mariadb | Engine::Mysql => "329, 329, 0, 0, 0, 1".to_owned(),
    };
    world.tamper(&format!("INSERT INTO user_counter SELECT 1, id, {counters} FROM account"), vec![]).await;
    world.drain().await;
    world
}

async fn of_more_damage_than_a_run_looks_at_all_is_counted_and_no_right_counter_is_blamed(engine: Engine) {
    let world = world(engine).await;
    compare(&world).await.assert_clean();
    // Each owner's rows of no user come first in his list.
    let nobodies = "INSERT INTO follower SELECT 1, a.id, -b.id, 1, 1, 1, 1 FROM account a CROSS JOIN account b";
    for (damage, number) in [
        ("DELETE FROM follower WHERE from_user_id < to_user_id", HALF),
        ("DELETE FROM following WHERE from_user_id > to_user_id", HALF),
        (nobodies, 108_900),
    ] {
        assert_eq!(world.tamper(damage, vec![]).await, number, "{damage}");
    }
    let found = compare(&world).await;
    let expected =
        [("mirror row missing", HALF), ("mirror row without fact", 100_000 - HALF), ("mirror row of no user", 108_900)];
    assert_eq!(found.kinds(), BTreeMap::from(expected));
    assert_eq!(found.of("relation.mirror").lagging, 2 * HALF - 100_000);
    // They agree with the rows that the mirror lacks, too, of which not all were looked at.
    let counters = found.of("relation.counters");
    assert_eq!((counters.total(), counters.lagging), (0, USERS.unsigned_abs()));
    assert!(found.note("relation.counters").contains("more rows of the mirror differ"));
}
