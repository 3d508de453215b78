//! What is on its way is no difference.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tidings_backbone::{Durability, ledger::Decide as _, log::read_after};
use tidings_community::relation::{counters::Counters, facts::Relation};
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use super::{compare, compare_at_once, repair, set};
use crate::{
    verify::park,
    world::{World, follow, unfollow},
};

on_every_engine!(
    lag_is_waited_for_and_is_no_difference,
    while_the_projector_stands_still_what_no_event_waits_for_is_told_as_wrong,
    a_projector_that_has_yet_to_begin_is_only_behind,
    what_is_parked_is_lagging_and_what_is_wrong_beside_it_is_found,
    nothing_is_found_while_the_same_pairs_turn_again_and_again,
);
on_every_server!(what_is_applied_before_its_commit_is_seen_is_no_difference);

async fn lag_is_waited_for_and_is_no_difference(engine: Engine) {
    let world = World::on(engine, 30).await;
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.drain().await;
    world.decide(&(2..=10).map(|from| unfollow(from, 1)).collect::<Vec<_>>()).await;
    world.decide(&(21..=30).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    let mut comparing = std::pin::pin!(compare(&world));
    // It goes on looking whether all is applied.
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut comparing).await;
    assert!(early.is_err(), "it waits for what is on its way");
    let (found, ()) = tokio::join!(comparing, world.drain());
    found.assert_clean();
    assert!(found.of("relation.mirror").shards_differing > 0);
}

async fn while_the_projector_stands_still_what_no_event_waits_for_is_told_as_wrong(engine: Engine) {
    let world = World::on(engine, 30).await;
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.drain().await;
    world.decide(&[unfollow(2, 1), follow(21, 1), unfollow(3, 1)]).await;
    let found = compare_at_once(&world).await;
    assert_eq!((found.total(), found.of("relation.mirror").lagging), (0, 3), "{:#?}", found.differences());
    assert!(found.note("relation.mirror").contains("could not be told"));
    // All that is wrong in the counters, of the mirror what nothing waits for.
    world.tamper("DELETE FROM follower WHERE from_user_id = 7", vec![]).await;
    world.tamper("UPDATE follower SET updated_at = 7 WHERE from_user_id = 3", vec![]).await;
    set(&world, 5, Counters { followings: 9, ..Counters::default() }).await;
    set(&world, 2, Counters { followings: 9, ..Counters::default() }).await;
    let found = compare_at_once(&world).await;
    assert_eq!(found.subjects("relation.mirror"), ["7:1"], "{:#?}", found.differences());
    assert_eq!(found.subjects("relation.counters"), ["5"], "{:#?}", found.differences());
    let lagging = |check| found.of(check).lagging;
    assert_eq!((lagging("relation.mirror"), lagging("relation.counters")), (3, 1));
    // Whom a repair concerns that waits is not blamed either.
    assert_eq!(repair(&world, &found.differences()).await, 2);
    let found = compare_at_once(&world).await;
    assert_eq!((found.total(), found.of("relation.mirror").lagging), (0, 4), "{:#?}", found.differences());
    world.drain().await;
    let found = compare(&world).await;
    assert_eq!((found.subjects("relation.counters"), found.lagging()), (vec!["2".to_owned()], 0));
    assert_eq!(found.total(), 1, "{:#?}", found.differences());
}

/// A transaction is in the binlog before its own database shows it; others wait for a replica then.
async fn what_is_applied_before_its_commit_is_seen_is_no_difference(engine: Engine) {
    let world = World::on(engine, 3).await;
    world.decide(&[follow(1, 2), follow(3, 1)]).await;
    world.drain().await;
    let before = world.events().await.last().unwrap().offset;
    let mut unseen = world.db.write(Durability::Full).await.unwrap();
    let relation = Relation::new(world.ids.clone());
    relation.decide(&[&follow(3, 2)], world.clock.now(), unseen.conn()).await.unwrap();
    let events = read_after(&mut unseen.conn(), before, 10).await.unwrap();
    world.apply(&events).await.unwrap();
    let mut comparing = std::pin::pin!(compare(&world));
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut comparing).await;
    assert!(early.is_err(), "it waits for who decides for the follower");
    let seen = async {
        unseen.commit().await.unwrap();
        world.drain().await;
    };
    let (found, ()) = tokio::join!(comparing, seen);
    found.assert_clean();
}

async fn a_projector_that_has_yet_to_begin_is_only_behind(engine: Engine) {
    let world = World::on(engine, 30).await;
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    let found = compare_at_once(&world).await;
    assert_eq!((found.total(), found.of("relation.mirror").lagging), (0, 19), "{:#?}", found.differences());
    world.drain().await;
    compare(&world).await.assert_clean();
}

async fn what_is_parked_is_lagging_and_what_is_wrong_beside_it_is_found(engine: Engine) {
    let world = World::on(engine, 30).await;
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.drain().await;
    world.decide(&[unfollow(5, 1), follow(5, 6), follow(7, 8)]).await;
    for recorded in &world.relation_events().await[19..] {
        match recorded.event.key.as_str() {
            "5" => park(&world, recorded).await,
            _ => world.apply(std::slice::from_ref(recorded)).await.unwrap(),
        }
    }
    world.move_to(world.events().await.last().unwrap().offset).await;
    let found = compare(&world).await;
    assert_eq!((found.total(), found.lagging()), (0, 2), "{:#?}", found.differences());
    world.tamper("UPDATE follower SET version = 9 WHERE from_user_id IN (5, 6)", vec![]).await;
    set(&world, 5, Counters { followings: 4, ..Counters::default() }).await;
    let found = compare(&world).await;
    assert_eq!(found.subjects("relation.mirror"), ["5:1", "6:1"], "{:#?}", found.differences());
    assert_eq!(found.subjects("relation.counters"), ["5"], "{:#?}", found.differences());
    assert_eq!(found.lagging(), 1);
}

async fn nothing_is_found_while_the_same_pairs_turn_again_and_again(engine: Engine) {
    let world = Arc::new(World::on(engine, 12).await);
    world.decide(&[follow(1, 2)]).await;
    world.drain().await;
    let is_over = Arc::new(AtomicBool::new(false));
    let moving = {
        let (world, is_over) = (Arc::clone(&world), Arc::clone(&is_over));
        tokio::spawn(async move {
            let mut round = 0_i64;
            while !is_over.load(Ordering::Relaxed) {
                world.tick(1);
                let change = if round % 2 == 0 { follow } else { unfollow };
                let commands: Vec<_> = (1..=12).map(|from| change(from, (from + round / 2 % 3) % 12 + 1)).collect();
                world.decide(&commands).await;
                // The projector is now ahead of one batch, now behind another.
                world.apply_next(usize::try_from(round % 20).unwrap() + 1).await;
                if round % 4 == 0 {
                    world.drain().await;
                }
                round += 1;
            }
            world.drain().await;
        })
    };
    for _ in 0..6 {
        let found = compare(&world).await;
        assert_eq!(found.total(), 0, "{:#?}", found.differences());
    }
    is_over.store(true, Ordering::Relaxed);
    moving.await.unwrap();
    compare(&world).await.assert_clean();
}
