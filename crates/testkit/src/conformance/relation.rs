//! Follow and unfollow, and what their caller sees.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    World,
    caller::sent,
    model::{Change, Outcome},
};

/// A thousand requests of one user are more than a bucket holds.
pub const SETTINGS: &[(&str, &str)] = super::NO_RATE_LIMIT;

/// Twice is once, for follow and unfollow, and a version for each change.
pub async fn following_is_idempotent_and_versions_rise_with_each_change(world: &World) {
    world.register(1..=2).await;
    let ada = world.user(1).await;
    let before = world.head().await;
    for round in 0..3 {
        let followed = Outcome { changed: true, following: true, version: 2 * round + 1 };
        assert_eq!(ada.follow(2).await, followed);
        assert_eq!(ada.follow(2).await, Outcome { changed: false, ..followed });
        let ended = Outcome { changed: true, following: false, version: 2 * round + 2 };
        assert_eq!(ada.unfollow(2).await, ended);
        assert_eq!(ada.unfollow(2).await, Outcome { changed: false, ..ended });
    }
    assert_eq!(world.head().await - before, 6, "an event for each change and none besides");
}

/// However many ask for the same at once, one of them changes something.
pub async fn a_thousand_concurrent_identical_follows_are_one_row_one_event_and_one_count(world: &World) {
    world.register(1..=2).await;
    let ada = world.user(1).await;
    let before = world.head().await;
    let answers = join_all((0..1_000).map(|_| ada.change(Change::Follow, 2))).await;
    let outcomes: Vec<Outcome> = answers.iter().map(|answer| answer.outcome()).collect();
    assert!(outcomes.iter().all(|outcome| outcome.following && outcome.version == 1));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.changed).count(), 1);
    assert_eq!(world.events(before).await.len(), 1);
    world.drain().await;
    assert_eq!(world.followers(2).await, [1]);
    assert_eq!((world.counters(1).await, world.counters(2).await), ((1, 0), (0, 1)));
}

/// Oneself, an unknown user, ids out of range, as an unregistered caller: each is told, none is written.
pub async fn what_cannot_be_followed_is_refused_and_leaves_no_event(world: &World) {
    world.register(1..=2).await;
    let before = world.head().await;
    let (ada, stranger) = (world.user(1).await, world.user(99).await);
    for change in [Change::Follow, Change::Unfollow] {
        ada.change(change, 1).await.is_problem(422, "yourself");
        ada.change(change, 3).await.is_problem(404, "unknown-user");
        ada.change(change, i64::MAX as u64).await.is_problem(404, "unknown-user");
        stranger.change(change, 2).await.is_problem(404, "unknown-user");
        ada.change(change, i64::MAX as u64 + 1).await.is_bad("user_id");
        ada.change(change, u64::MAX).await.is_bad("user_id");
    }
    for wrong in ["-1", "+1", "1.0", "1e3", "0x1", "01", "%20", "a", "184467440737095516150", "1%2F2"] {
        let request = ada.request(reqwest::Method::PUT, &format!("/v1/me/following/{wrong}"));
        sent(request).await.is_bad("user_id");
    }
    assert_eq!(world.head().await, before);
    world.drain().await;
    assert_eq!((world.counters(1).await, world.counters(2).await), ((0, 0), (0, 0)));
}

/// It is no error, and no event.
pub async fn unfollowing_somebody_never_followed_changes_nothing(world: &World) {
    world.register(1..=2).await;
    let before = world.head().await;
    let nothing = Outcome { changed: false, following: false, version: 0 };
    assert_eq!(world.user(1).await.unfollow(2).await, nothing);
    assert_eq!(world.head().await, before);
    assert_eq!(world.user(1).await.follow(2).await.version, 1);
}

/// In the answer, the status and his own list, however far behind the projections are.
pub async fn a_writer_sees_his_own_write_at_once(world: &World) {
    world.register(1..=30).await;
    let ada = world.user(1).await;
    for to in 2..=30 {
        ada.follow(to).await;
        let status = ada.read(&format!("/v1/me/relations?ids={to}")).await;
        assert_eq!(status["items"][0]["following"], true, "{status}");
        let list = ada.read("/v1/users/1/following?limit=1").await;
        assert_eq!(list["items"][0]["user_id"], to.to_string(), "{list}");
        if to % 3 == 0 {
            ada.unfollow(to).await;
            let status = ada.read(&format!("/v1/me/relations?ids={to}")).await;
            assert_eq!(status["items"][0]["following"], false, "{status}");
            let list = ada.read("/v1/users/1/following?limit=1").await;
            assert_ne!(list["items"][0]["user_id"], to.to_string(), "{list}");
        }
    }
}

/// Both directions of each, unknown users too, and one too many is an error.
pub async fn the_status_of_a_hundred_users_is_told_in_the_order_asked(world: &World) {
    world.register(1..=60).await;
    let ada = world.user(1).await;
    for to in (2..=60).step_by(2) {
        ada.follow(to).await;
    }
    for from in (3..=60).step_by(3) {
        world.user(from).await.follow(1).await;
    }
    // 101 to 61 are unknown; the order is neither that of the ids nor that of the follows.
    let asked: Vec<u64> = (2..=101).rev().map(|id| if id % 7 == 0 { 103 - id } else { id }).collect();
    assert_eq!(asked.len(), 100);
    let text: Vec<String> = asked.iter().map(u64::to_string).collect();
    let answer = ada.read(&format!("/v1/me/relations?ids={}", text.join(","))).await;
    let known = |id: u64| (2..=60).contains(&id);
    let expected: Vec<Value> = asked
        .iter()
        .map(|&id| {
            let (following, followed_by) = (known(id) && id % 2 == 0, known(id) && id % 3 == 0);
            let mutual = following && followed_by;
            json!({ "user_id": id.to_string(), "following": following, "followed_by": followed_by, "mutual": mutual })
        })
        .collect();
    assert_eq!(answer["items"], json!(expected));
    let tally = expected.iter().fold(BTreeMap::new(), |mut tally: BTreeMap<bool, u32>, item| {
        *tally.entry(item["mutual"] == true).or_default() += 1;
        tally
    });
    assert!(tally.len() == 2, "some are mutual and some are not: {tally:?}");
    ada.get(&format!("/v1/me/relations?ids={},102", text.join(","))).await.is_bad("ids");
}
