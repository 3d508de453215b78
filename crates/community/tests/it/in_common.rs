//! Common follows of two users.

use tidings_community::{UserId, relation::read};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::{World, follow, unfollow, user};

on_every_engine!(
    common_follows_are_those_that_both_follow_now,
    common_follows_page_in_order_of_users,
    with_an_unknown_user_nothing_is_common,
);

/// Ids of a page of common follows, and where it goes on.
async fn common(
    world: &World,
    a: i64,
    b: i64,
    limit: u32,
    after: Option<UserId>,
) -> Option<(Vec<i64>, Option<UserId>)> {
    let mut tx = world.db.read().await.unwrap();
    let list = read::common(&mut tx.conn(), user(a), user(b), limit, after).await.unwrap()?;
    Some((list.entries.iter().map(|entry| entry.user_id.get()).collect(), list.next))
}

async fn common_follows_are_those_that_both_follow_now(engine: Engine) {
    let world = World::on(engine, 6).await;
    for to in 3..=6 {
        world.decide(&[follow(1, to), follow(2, to)]).await;
    }
    world.decide(&[unfollow(1, 4), unfollow(2, 5), follow(1, 2), follow(2, 1)]).await;
    assert_eq!(common(&world, 1, 2, 10, None).await, Some((vec![3, 6], None)));
    assert_eq!(common(&world, 1, 3, 10, None).await, Some((vec![], None)));
}

async fn common_follows_page_in_order_of_users(engine: Engine) {
    let world = World::on(engine, 9).await;
    for to in (3..=9).rev() {
        world.decide(&[follow(1, to), follow(2, to)]).await;
        world.tick(1);
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let (ids, next) = common(&world, 1, 2, 3, after).await.unwrap();
        seen.extend(ids);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [3, 4, 5, 6, 7, 8, 9]);
}

async fn with_an_unknown_user_nothing_is_common(engine: Engine) {
    let world = World::on(engine, 1).await;
    assert_eq!(common(&world, 1, 9, 10, None).await, None);
    assert_eq!(common(&world, 9, 1, 10, None).await, None);
}
