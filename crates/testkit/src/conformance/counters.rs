//! Counters equal their facts.

use futures::future::join_all;
use serde_json::json;

use crate::World;

/// Every second read of counters is compared with the facts.
pub const SETTINGS: &[(&str, &str)] = &[("rate.follow_capacity", "100000"), ("relation.counter_check_every", "2")];

/// Five slots, and those of the follow graph are what its lists are long.
pub async fn counters_are_the_lengths_of_the_lists(world: &World) {
    world.register(1..=12).await;
    for from in 1..=12 {
        let user = world.user(from).await;
        for to in (1..=12).filter(|to| *to != from && (from * to) % 3 != 1) {
            user.follow(to).await;
        }
        user.unfollow((from + 5) % 12 + 1).await;
    }
    world.drain().await;
    for user in 1..=12 {
        let lists = (world.followings(user).await.len() as u64, world.followers(user).await.len() as u64);
        assert_eq!(world.counters(user).await, lists, "user {user}");
    }
    let all = world.admin().await.read("/v1/users/1/counters").await;
    let (followings, followers) = world.counters(1).await;
    let expected = json!({
        "user_id": "1", "followings": followings, "followers": followers,
        "posts": 0, "likes_received": 0, "favorites_received": 0,
    });
    assert_eq!(all, expected);
    world.admin().await.get("/v1/users/99/counters").await.is_problem(404, "unknown-user");
    assert_eq!(world.metric("tidings_counter_drift_total").await, 0.0);
}

/// Also where they follow each other, and all at once.
pub async fn many_users_toggling_at_once_end_with_everything_agreeing(world: &World) {
    const USERS: u64 = 20;
    world.register(1..=USERS).await;
    let callers = join_all((1..=USERS).map(|user| world.user(user))).await;
    join_all(callers.iter().zip(1..).map(|(caller, from)| async move {
        for round in 0..25 {
            let to = (from + round * 7) % USERS + 1;
            match round % 4 {
                _ if to == from => {}
                3 => drop(caller.unfollow(to).await),
                _ => drop(caller.follow(to).await),
            }
            let (followings, followers) = world.counters(to).await;
            assert!(followings < USERS && followers < USERS, "never below zero, which would be huge");
        }
    }))
    .await;
    world.drain().await;
    world.verify().await;
    for user in 1..=USERS {
        let lists = (world.followings(user).await.len() as u64, world.followers(user).await.len() as u64);
        assert_eq!(world.counters(user).await, lists, "user {user}");
    }
    assert_eq!(world.metric("tidings_counter_drift_total").await, 0.0);
}
