//! Repairs are events like any other: in order with commands, once, and replayed.

use std::{collections::BTreeMap, sync::Arc};

use tidings_backbone::{
    Durability,
    projector::{Generation, Projector, Target},
    reconcile::Difference,
};
use tidings_community::relation::{counters::Counters, projection::RelationProjector};
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use super::{compare, counted, repair, set, stored};
use crate::{
    rebuild::built,
    verify::park,
    world::{World, follow, pair, unfollow},
};

on_every_engine!(
    a_repair_that_is_delivered_again_a_day_later_has_no_effect,
    repair_beside_commands_on_the_same_pairs_loses_nothing,
    a_repair_on_its_way_is_no_difference,
    a_repair_is_replayed_as_the_newest_state,
    what_was_put_right_meanwhile_makes_no_event,
);
on_every_server!(repairs_in_several_partitions_at_once_leave_counters_right);

pub(super) fn difference(kind: &'static str, subject: impl ToString) -> Difference {
    Difference { kind: kind.into(), subject: subject.to_string(), expected: String::new(), found: String::new() }
}

async fn world(engine: Engine) -> World {
    let world = World::on(engine, 6).await;
    world.decide(&[follow(1, 2), follow(2, 1), follow(3, 1), follow(4, 1)]).await;
    world.drain().await;
    world
}

async fn a_repair_that_is_delivered_again_a_day_later_has_no_effect(engine: Engine) {
    let world = world(engine).await;
    world.tamper("UPDATE follower SET rel_status = 0, version = 5 WHERE from_user_id = 4", vec![]).await;
    world.tamper("DELETE FROM user_counter WHERE user_id = 2", vec![]).await;
    let found = compare(&world).await;
    assert_eq!(repair(&world, &found.differences()).await, 2);
    world.drain().await;
    let repairs = world.relation_events().await.split_off(4);
    let types: Vec<_> = repairs.iter().map(|recorded| recorded.event.event_type.as_str()).collect();
    assert_eq!(types, ["relation.restated", "relation.recount_requested"]);
    assert_eq!((repairs[0].event.key.as_str(), repairs[0].event.version), ("4", 6));
    assert_eq!((repairs[1].event.key.as_str(), repairs[1].event.version), ("2", 1));
    world.tick(86_400_000);
    world.done(unfollow(4, 1)).await;
    world.drain().await;
    // A pair stated anew is not stated twice, and nobody's counters move for it.
    set(&world, 1, Counters { followings: 1, followers: 77, ..Counters::default() }).await;
    let before = (world.mirror().await, stored(&world).await);
    world.apply(&repairs).await.unwrap();
    assert_eq!((world.mirror().await, stored(&world).await), before);
    assert_eq!(compare(&world).await.subjects("relation.counters"), ["1"]);
}

async fn repair_beside_commands_on_the_same_pairs_loses_nothing(engine: Engine) {
    let world = Arc::new(World::on(engine, 20).await);
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.drain().await;
    world.tamper("UPDATE follower SET version = 9, rel_status = 0", vec![]).await;
    let differences: Vec<_> = (2..=20).map(|from| difference("mirror status", pair(from, 1))).collect();
    let writing = {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for round in 0..30 {
                let change = if round % 2 == 0 { unfollow } else { follow };
                let commands: Vec<_> = (2..=20).map(|from| change(from, 1)).collect();
                assert!(world.decide(&commands).await.iter().all(|answer| answer.unwrap().changed));
            }
        })
    };
    let mut repairs = 0;
    while !writing.is_finished() {
        repairs += repair(&world, &differences).await;
    }
    writing.await.unwrap();
    repairs += repair(&world, &differences).await;
    assert!(repairs >= 19);
    // Each event has a version above the one before it of its pair, and the last is the fact's.
    let mut versions = BTreeMap::new();
    for recorded in world.relation_events().await {
        let event = recorded.event;
        let last = versions.insert(event.aggregate_id.clone(), event.version);
        assert!(last.is_none_or(|last| last < event.version), "{} {}", event.aggregate_id, event.version);
    }
    let facts = world.facts().await;
    for (pair, (active, version, ..)) in &facts {
        assert!(*active, "the last command was a follow");
        assert_eq!(versions[&pair.to_string()], version.unsigned_abs());
    }
    world.drain().await;
    assert_eq!(world.mirror().await, facts);
    compare(&world).await.assert_clean();
}

async fn a_repair_on_its_way_is_no_difference(engine: Engine) {
    let world = world(engine).await;
    world.tamper("DELETE FROM follower WHERE from_user_id = 4", vec![]).await;
    world.tamper("DELETE FROM user_counter WHERE user_id = 2", vec![]).await;
    let found = compare(&world).await;
    assert_eq!(found.total(), 2);
    repair(&world, &found.differences()).await;
    // The verification takes back what is on its way, and does not know what was before a repair.
    assert!(world.verify().await.is_clean());
    world.done(unfollow(4, 1)).await;
    assert!(world.verify().await.is_clean());
    // The same, where the repairs are parked.
    for recorded in &world.relation_events().await[4..] {
        park(&world, recorded).await;
    }
    let head = world.events().await.last().unwrap().offset;
    world.move_to(head).await;
    let found = compare(&world).await;
    assert_eq!((found.total(), found.of("relation.mirror").lagging), (0, 1), "{:#?}", found.differences());
    assert!(found.of("relation.counters").lagging >= 1);
    assert!(world.verify().await.is_clean());
}

async fn a_repair_is_replayed_as_the_newest_state(engine: Engine) {
    let world = world(engine).await;
    world.tamper("UPDATE follower SET version = 40, rel_status = 0 WHERE from_user_id > 2", vec![]).await;
    world.tamper("INSERT INTO follower VALUES (1, 5, 6, 1, 3, 1, 1)", vec![]).await;
    set(&world, 2, Counters::default()).await;
    let found = compare(&world).await;
    assert_eq!(found.total(), 4);
    repair(&world, &found.differences()).await;
    world.decide(&[unfollow(3, 1), follow(6, 5)]).await;
    world.drain().await;
    compare(&world).await.assert_clean();
    let next = Target { generation: Generation(2), is_live: false };
    for step in world.relation_events().await.chunks(3) {
        let mut tx = world.db.write(Durability::Rebuildable).await.unwrap();
        RelationProjector.apply(step, next, tx.conn()).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(built(&world, 2).await, built(&world, 1).await);
}

async fn what_was_put_right_meanwhile_makes_no_event(engine: Engine) {
    let world = world(engine).await;
    let differences = [difference("mirror status", "4:1"), difference("mirror row missing", "5:6")];
    assert_eq!(repair(&world, &differences).await, 0);
    assert_eq!(world.relation_events().await.len(), 4);
}

/// Partitions apply repairs and follows that concern the same users, each in a transaction of its own.
async fn repairs_in_several_partitions_at_once_leave_counters_right(engine: Engine) {
    let world = Arc::new(World::on(engine, 40).await);
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.drain().await;
    world.tamper("DELETE FROM follower WHERE from_user_id % 2 = 0", vec![]).await;
    set(&world, 1, Counters::default()).await;
    let found = compare(&world).await;
    assert_eq!(found.total(), 11);
    let before = world.relation_events().await.len();
    repair(&world, &found.differences()).await;
    world.decide(&(21..=40).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.decide(&(2..=9).map(|from| unfollow(from, 1)).collect::<Vec<_>>()).await;
    let mut partitions: BTreeMap<i64, Vec<_>> = BTreeMap::new();
    for recorded in world.relation_events().await.split_off(before) {
        partitions.entry(recorded.event.key.parse::<i64>().unwrap() % 6).or_default().push(recorded);
    }
    let tasks = partitions.into_values().map(|events| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for batch in events.chunks(3) {
                // As the runtime does when two transactions wait for each other.
                while world.try_apply(batch).await.is_err() {}
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    world.move_to(world.events().await.last().unwrap().offset).await;
    assert_eq!(world.mirror().await, world.facts().await);
    let counted = counted(&world).await;
    assert_eq!(stored(&world).await[&1], Some(counted[&1]));
    compare(&world).await.assert_clean();
}
