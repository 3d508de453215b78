//! Lists: whole, fenced, moved on.

use std::time::Duration;

use tidings_backbone::projector::Projector;
use tidings_community::relation::{
    hot::Options,
    read::{Page, Start},
};
use tidings_testkit::{database::Engine, on_every_engine};

use super::{HotWorld, QUICK};
use crate::world::{FIRST, follow, unfollow, user};

on_every_engine!(
    pages_come_from_redis_once_the_list_is_there,
    lists_of_one_moment_page_by_mark_as_the_database_does,
    a_cold_list_after_one_new_follow_shows_the_whole_list,
    a_commit_of_the_projector_moves_a_list_on,
    a_list_that_missed_a_commit_is_not_served_and_loaded_anew,
    numbers_of_a_transaction_that_failed_are_never_used,
    a_writer_sees_his_own_write_before_any_projector_does,
    a_write_of_a_process_that_cannot_reach_redis_is_seen_by_one_that_can,
);

/// User 1 has the followers 2 to 13 and follows 2 to 5; one moment for every three of them.
async fn world(options: Options) -> Option<HotWorld> {
    world_on(Engine::Sqlite, options).await
}

async fn world_on(engine: Engine, options: Options) -> Option<HotWorld> {
    let hot = HotWorld::on(engine, 20, options).await?;
    for from in 2..=13 {
        hot.decide(&[follow(from, 1)]).await;
        if from <= 5 {
            hot.decide(&[follow(1, from)]).await;
        }
        if from % 3 == 0 {
            hot.world.tick(1);
        }
    }
    hot.drain().await;
    Some(hot)
}

/// Changes the tables behind everybody's back, so that an answer from Redis can be told.
async fn hide(hot: &HotWorld, id: i64) {
    for (table, owner) in [("follower", "to_user_id"), ("following", "from_user_id")] {
        let sql = format!("UPDATE {table} SET rel_status = 2 WHERE {owner} = ? AND rel_status = 1");
        assert!(hot.world.tamper(&sql, vec![id.into()]).await > 0);
    }
}

async fn pages_come_from_redis_once_the_list_is_there(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    hot.check(1).await;
    hot.warm(1).await;
    hot.check(1).await;
    let page = Page::new(5, Start::Offset(3)).unwrap();
    let (followers, followings) = (hot.followers(1, &page).await, hot.followings(1, &page).await);
    hide(&hot, 1).await;
    assert_eq!((hot.followers(1, &page).await, hot.followings(1, &page).await), (followers, followings));
    assert!(hot.number("PTTL", "uf:fans:1").await > 500_000, "it goes by itself");
}

async fn lists_of_one_moment_page_by_mark_as_the_database_does(engine: Engine) {
    let Some(hot) = HotWorld::on(engine, 40, QUICK).await else { return };
    let commands: Vec<_> = (2..=30).map(|from| follow(from, 1)).collect();
    hot.decide(&commands).await;
    hot.drain().await;
    hot.warm(1).await;
    let mut page = Page::first(4);
    let mut seen = Vec::new();
    loop {
        let list = hot.followers(1, &page).await.unwrap();
        assert_eq!(Some(&list), hot.world.followers(user(1), &page).await.as_ref());
        seen.extend(list.entries.iter().map(|entry| entry.user_id.get()));
        // Whoever goes does not take the place away after which the next page begins.
        let last = *seen.last().unwrap();
        hot.decide(&[unfollow(last, 1)]).await;
        hot.drain().await;
        let Some(next) = list.next else { break };
        page = Page::new(4, Start::After(next)).unwrap();
    }
    assert_eq!(seen, (2..=30).rev().collect::<Vec<_>>());
}

async fn a_cold_list_after_one_new_follow_shows_the_whole_list(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    hot.decide(&[follow(14, 1), follow(1, 14)]).await;
    hot.drain().await;
    assert_eq!(hot.number("EXISTS", "uf:fans:1").await, 0, "a commit makes no list");
    hot.check(1).await;
    hot.warm(1).await;
    hot.check(1).await;
    assert_eq!(hot.followers(1, &Page::first(100)).await.unwrap().entries.len(), 13);
}

async fn a_commit_of_the_projector_moves_a_list_on(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    hot.warm(1).await;
    hot.world.tick(1);
    hot.decide(&[follow(14, 1), unfollow(7, 1), unfollow(2, 1), follow(2, 1)]).await;
    hot.world.tick(1);
    hot.decide(&[unfollow(9, 1)]).await;
    hot.drain().await;
    let expected = hot.world.followers(user(1), &Page::first(100)).await;
    hide(&hot, 1).await;
    assert_eq!(hot.followers(1, &Page::first(100)).await, expected, "from Redis, and as it is now");
}

async fn a_list_that_missed_a_commit_is_not_served_and_loaded_anew(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    hot.warm(1).await;
    hot.decide(&[follow(14, 1)]).await;
    hot.apply(100).await.unwrap();
    // The projector died here. The next commit finds a list that is two steps old.
    hot.check(1).await;
    hot.decide(&[follow(15, 1)]).await;
    hot.drain().await;
    hot.check(1).await;
    hot.warm(1).await;
    hot.check(1).await;
}

async fn numbers_of_a_transaction_that_failed_are_never_used(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    hot.warm(1).await;
    hot.decide(&[follow(14, 1), follow(15, 1)]).await;
    let events = hot.world.relation_events().await;
    let [first, second] = &events[events.len() - 2..] else { panic!() };
    // Applied together and rolled back; then only the first is, by a smaller batch.
    let mut tx = hot.world.db.write(tidings_backbone::Durability::Rebuildable).await.unwrap();
    hot.projector.apply(&[first.clone(), second.clone()], FIRST, tx.conn()).await.unwrap();
    tx.rollback().await.unwrap();
    let (_, applied) = hot.apply(1).await.unwrap();
    hot.projector.committed(&applied).await;
    hot.check(1).await;
    hot.drain().await;
    hot.check(1).await;
}

async fn a_writer_sees_his_own_write_before_any_projector_does(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    for command in [follow(1, 15), unfollow(1, 3), unfollow(1, 15), follow(1, 3)] {
        hot.warm(1).await;
        hot.world.tick(1);
        hot.decide(&[command]).await;
        hot.check(1).await;
    }
}

async fn a_write_of_a_process_that_cannot_reach_redis_is_seen_by_one_that_can(engine: Engine) {
    let Some(hot) = world_on(engine, QUICK).await else { return };
    for command in [follow(1, 15), unfollow(1, 3)] {
        hot.warm(1).await;
        hot.world.tick(1);
        hot.world.decide_by(&hot.cut_off, &[command]).await;
        assert_eq!(hot.number("EXISTS", "uf:flws:1").await, 1, "it is still there, and old");
        hot.check(1).await;
    }
    hot.drain().await;
    hot.check(1).await;
}

#[tokio::test]
async fn nothing_is_loaded_while_a_fence_stands() {
    let fenced = Options { fence_time: Duration::from_secs(600), ..QUICK };
    let Some(hot) = HotWorld::new(5, fenced).await else { return };
    hot.decide(&[follow(1, 2)]).await;
    hot.drain().await;
    for _ in 0..3 {
        hot.check(1).await;
    }
    assert_eq!(hot.number("EXISTS", "uf:flws:1").await, 0);
    assert_eq!(hot.number("EXISTS", "uf:fans:1").await, 1, "followers need no fence");
}

#[tokio::test]
async fn of_a_long_list_the_beginning_is_served_and_the_rest_is_the_databases() {
    let Some(hot) = world(Options { list_entries_max: 6, ..QUICK }).await else { return };
    hot.warm(1).await;
    assert_eq!(hot.number("ZCARD", "uf:fans:1").await, 7, "six lines and the head");
    hot.check(1).await;
    let page = Page::first(5);
    let expected = hot.followers(1, &page).await;
    hide(&hot, 1).await;
    assert_eq!(hot.followers(1, &page).await, expected, "from Redis");
    let beyond = Page::new(3, Start::Offset(4)).unwrap();
    assert_eq!(hot.followers(1, &beyond).await, hot.world.followers(user(1), &beyond).await);
}

#[tokio::test]
async fn a_list_that_grows_long_keeps_its_beginning_and_no_more() {
    let Some(hot) = world(Options { list_entries_max: 14, ..QUICK }).await else { return };
    hot.warm(1).await;
    assert_eq!(hot.number("ZCARD", "uf:fans:1").await, 13, "twelve lines and the head");
    for from in 14..=19 {
        hot.decide(&[follow(from, 1)]).await;
        hot.world.tick(1);
        hot.drain().await;
        hot.check(1).await;
    }
    assert_eq!(hot.number("ZCARD", "uf:fans:1").await, 15, "fourteen lines and the head");
    // It is no longer the whole list, and grows no more at its end.
    hot.decide(&[unfollow(19, 1), unfollow(2, 1)]).await;
    hot.drain().await;
    hot.check(1).await;
    assert_eq!(hot.number("ZCARD", "uf:fans:1").await, 14);
}

#[tokio::test]
async fn an_unknown_user_has_no_list_and_a_lonely_one_an_empty_one() {
    let Some(hot) = world(QUICK).await else { return };
    for _ in 0..3 {
        assert_eq!(hot.followers(99, &Page::first(5)).await, None);
        assert_eq!(hot.followings(99, &Page::first(5)).await, None);
        assert_eq!(hot.followers(20, &Page::first(5)).await.unwrap().entries, []);
    }
    // He has had a follower, so there is a number to keep it by: his empty list is kept, and grows without
    // being loaded again.
    hot.decide(&[follow(2, 19), unfollow(2, 19)]).await;
    hot.drain().await;
    hot.warm(19).await;
    hot.check(19).await;
    hot.decide(&[follow(3, 19)]).await;
    hot.drain().await;
    assert!(hot.number("PTTL", "uf:fans:19").await > 0);
    hot.check(19).await;
}
