//! What is on its way is no difference.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tidings_community::relation::counters::Counters;
use tidings_testkit::{database::Engine, on_every_engine};

use super::{compare, set};
use crate::{
    verify::park,
    world::{World, follow, unfollow},
};

on_every_engine!(
    lag_is_waited_for_and_is_no_difference,
    a_projector_that_has_yet_to_begin_is_only_behind,
    what_is_parked_is_lagging_and_what_is_wrong_beside_it_is_found,
    nothing_is_found_while_the_same_pairs_turn_again_and_again,
);

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

/// Takes as long as a comparison waits for a projector.
#[tokio::test]
async fn while_the_projector_stands_still_nothing_is_told_as_wrong() {
    let world = World::on(Engine::Sqlite, 30).await;
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    world.drain().await;
    world.decide(&[unfollow(2, 1), follow(21, 1)]).await;
    set(&world, 5, Counters { followings: 9, ..Counters::default() }).await;
    let found = compare(&world).await;
    assert_eq!((found.total(), found.of("relation.mirror").lagging), (0, 2), "{:#?}", found.differences());
    // What cannot be told from what is on its way is found once the projector has caught up.
    assert_eq!(found.of("relation.counters").lagging, 1);
    world.drain().await;
    assert_eq!(compare(&world).await.subjects("relation.counters"), ["5"]);
}

async fn a_projector_that_has_yet_to_begin_is_only_behind(engine: Engine) {
    let world = World::on(engine, 30).await;
    world.decide(&(2..=20).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    let found = compare(&world).await;
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
