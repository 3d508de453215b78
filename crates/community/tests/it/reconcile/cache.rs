//! What Redis keeps.

use std::{collections::BTreeMap, time::Duration};

use tidings_backbone::EventIds;
use tidings_community::relation::{
    counters::Counters,
    hot::{Hot, Options},
    read::Page,
    reconcile::RelationReconciled,
};
use tidings_testkit::{database::Engine, on_every_engine};

use super::{compare_by, repair_by, set, stored};
use crate::{
    hot::{HotWorld, QUICK},
    redis,
    world::{follow, unfollow},
};

on_every_engine!(
    what_is_kept_and_would_be_served_wrong_is_found_and_dropped,
    what_is_kept_of_a_user_whose_mirror_is_wrong_is_not_blamed,
    a_row_of_no_user_keeps_no_check_from_being_made,
);

async fn world(engine: Engine) -> Option<(HotWorld, RelationReconciled)> {
    let hot_world = HotWorld::on(engine, 20, QUICK).await?;
    let hot = Hot::with_options(hot_world.redis.clone(), EventIds::from_os(), QUICK);
    let reconciled = RelationReconciled::new(hot_world.world.clock.clone()).with_cache(hot);
    hot_world.decide(&(2..=9).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    hot_world.decide(&(2..=9).map(|to| follow(1, to)).collect::<Vec<_>>()).await;
    hot_world.drain().await;
    Some((hot_world, reconciled))
}

async fn what_is_kept_and_would_be_served_wrong_is_found_and_dropped(engine: Engine) {
    let Some((hot, reconciled)) = world(engine).await else { return };
    for id in [1, 2] {
        hot.warm(id).await;
    }
    let found = compare_by(&hot.world, &reconciled).await;
    found.assert_clean();
    assert_eq!(found.of("relation.cache").rows, 2);

    // The line of user 3 moves in one list, and somebody takes its place in another.
    let member = "\0\0\0\0\0\0\0\u{3}";
    redis::number(&hot.redis, "ZADD", "uf:fans:1", &["17", member]).await;
    redis::number(&hot.redis, "ZREM", "uf:flws:1", &[member]).await;
    redis::number(&hot.redis, "ZADD", "uf:flws:1", &["17", "\0\0\0\0\0\0\0\u{11}"]).await;
    // Counters that were read while the row was wrong.
    let right = stored(&hot.world).await[&2].unwrap();
    set(&hot.world, 2, Counters { followers: 70, ..Counters::default() }).await;
    let believing = Options { counters_time: Duration::from_secs(60), ..QUICK };
    let believing = HotWorld::at(std::sync::Arc::clone(&hot.world), hot.at.clone(), believing);
    redis::number(&hot.redis, "DEL", "ucnt:2", &[]).await;
    assert_eq!(believing.counters.read(crate::world::user(2)).await.unwrap().unwrap().followers, 70);
    set(&hot.world, 2, Counters::from(right)).await;

    let found = compare_by(&hot.world, &reconciled).await;
    let expected = BTreeMap::from([("kept followers", 1), ("kept followings", 1), ("kept counters", 1)]);
    assert_eq!(found.kinds(), expected, "{:#?}", found.differences());
    // It needs no event: what is dropped is read anew.
    assert_eq!(repair_by(&hot.world, &reconciled, &found.differences()).await, 0);
    compare_by(&hot.world, &reconciled).await.assert_clean();
    hot.check(1).await;
    hot.warm(1).await;
    hot.check(1).await;
}

async fn what_is_kept_of_a_user_whose_mirror_is_wrong_is_not_blamed(engine: Engine) {
    let Some((hot, reconciled)) = world(engine).await else { return };
    hot.warm(1).await;
    hot.world.tamper("DELETE FROM follower WHERE from_user_id = 5", vec![]).await;
    let found = compare_by(&hot.world, &reconciled).await;
    assert_eq!(found.kinds(), BTreeMap::from([("mirror row missing", 1)]), "{:#?}", found.differences());
    repair_by(&hot.world, &reconciled, &found.differences()).await;
    hot.drain().await;
    compare_by(&hot.world, &reconciled).await.assert_clean();
    // The list was brought up to date, as after any event.
    assert_eq!(hot.followers(1, &Page::first(50)).await.unwrap().entries.len(), 8);
    hot.check(1).await;
    hot.decide(&[unfollow(5, 1)]).await;
    hot.drain().await;
    hot.check(1).await;
}

async fn a_row_of_no_user_keeps_no_check_from_being_made(engine: Engine) {
    let Some((hot, reconciled)) = world(engine).await else { return };
    hot.warm(1).await;
    // By hand, so that the number of changes stays what it was, and the list is looked at.
    hot.world.tamper("INSERT INTO follower VALUES (1, 1, -5, 1, 1, 1, 1)", vec![]).await;
    let found = compare_by(&hot.world, &reconciled).await;
    assert_eq!(found.kinds(), BTreeMap::from([("mirror row of no user", 1)]), "{:#?}", found.differences());
    assert_eq!(found.of("relation.cache").rows, 1);
    hot.decide(&[unfollow(5, 1)]).await;
    hot.drain().await;
    hot.warm(1).await;
    assert_eq!(hot.followers(1, &Page::first(50)).await.unwrap().entries.len(), 7);
}
