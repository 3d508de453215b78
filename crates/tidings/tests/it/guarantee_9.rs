//! Guarantee 9: bad input gets a clear error and changes nothing. The shapes that are bad are tried
//! on every route by the walk (`routes`); here is what they leave behind.

use serde_json::json;
use tidings_testkit::{Kind, model::Change, on_every_world};

use crate::{database::Hand, world_on};

/// Every table in which a request could leave something.
const ROWS: &str = "SELECT (SELECT COUNT(*) FROM outbox) + (SELECT COUNT(*) FROM following)
    + (SELECT COUNT(*) FROM follower) + (SELECT COUNT(*) FROM account) + (SELECT COUNT(*) FROM user_counter)
    + (SELECT COUNT(*) FROM parked_event) + (SELECT COUNT(*) FROM idempotency_key)";

on_every_world!(bad_requests_leave_no_row_anywhere, one_bad_request_among_many_fails_alone,);

async fn bad_requests_leave_no_row_anywhere(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=2).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    let before = hand.number(ROWS).await;
    let (user, stranger, admin) = (world.user(1).await, world.user(99).await, world.admin().await);
    for change in [Change::Follow, Change::Unfollow] {
        user.change(change, 1).await.is_problem(422, "yourself");
        user.change(change, 99).await.is_problem(404, "unknown-user");
        user.change(change, u64::MAX).await.is_bad("user_id");
        stranger.change(change, 1).await.is_problem(404, "unknown-user");
        let keyed = user.change_request(change, 2).header("idempotency-key", "a b");
        tidings_testkit::caller::sent(keyed).await.is_bad("idempotency-key");
    }
    for body in
        [json!({ "handle": "u1" }), json!({ "user_id": "1", "handle": "x" }), json!({ "handle": "U" }), json!(1)]
    {
        assert!((400..500).contains(&admin.post("/v1/admin/users", &body).await.status), "{body}");
    }
    for path in ["/v1/users/99/counters", "/v1/users/99/followers", "/v1/users/1/followers?cursor=x"] {
        assert!((400..500).contains(&user.get(path).await.status), "{path}");
    }
    assert_eq!(hand.number(ROWS).await, before);
}

async fn one_bad_request_among_many_fails_alone(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=40).await;
    let callers = futures::future::join_all((1..=40).map(|user| world.user(user))).await;
    // Sent together, so that they are decided together: every third wants what cannot be.
    let target = |user: u64| match user % 3 {
        0 => user,
        1 if user.is_multiple_of(2) => 4_711,
        _ => user % 40 + 1,
    };
    let requests = callers.iter().zip(1..).map(|(caller, user)| caller.change(Change::Follow, target(user)));
    let answers = futures::future::join_all(requests).await;
    let mut followed = 0;
    for (answer, user) in answers.iter().zip(1_u64..) {
        match target(user) {
            4_711 => answer.is_problem(404, "unknown-user"),
            to if to == user => answer.is_problem(422, "yourself"),
            _ => followed += i64::from(answer.outcome().changed),
        }
    }
    // Numbers of events may have gaps where some were decided again.
    let events = Hand::in_database_of(&world).await.number("SELECT COUNT(*) FROM outbox").await;
    assert_eq!(events, 40 + followed);
    world.drain().await;
    world.verify().await;
}
