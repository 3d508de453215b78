//! `Idempotency-Key`: the first answer, once, whatever is repeated.

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::{
    Answer, Caller, World,
    caller::sent,
    model::{Change, User},
};

/// Room for many requests of one user.
pub const SETTINGS: &[(&str, &str)] = super::NO_RATE_LIMIT;

async fn keyed(caller: &Caller<'_>, change: Change, to: User, key: &str) -> Answer {
    sent(caller.change_request(change, to).header("idempotency-key", key)).await
}

/// It is answered from what was stored, and does not do it again.
pub async fn a_repeated_key_gets_the_first_answer_even_after_the_state_changed(world: &World) {
    world.register(1..=2).await;
    let ada = world.user(1).await;
    let first = keyed(&ada, Change::Follow, 2, "a-1").await.json(200);
    assert_eq!((&first["changed"], &first["version"]), (&json!(true), &json!(1)));
    ada.unfollow(2).await;
    let head = world.head().await;
    assert_eq!(keyed(&ada, Change::Follow, 2, "a-1").await.json(200), first);
    assert_eq!(world.head().await, head, "the repetition changed nothing");
    assert_eq!(ada.read("/v1/me/relations?ids=2").await["items"][0]["following"], false);
    // A refusal is an answer like any other.
    keyed(&ada, Change::Follow, 3, "a-2").await.is_problem(404, "unknown-user");
    world.register(3..=3).await;
    keyed(&ada, Change::Follow, 3, "a-2").await.is_problem(404, "unknown-user");
    assert!(keyed(&ada, Change::Follow, 3, "a-3").await.outcome().changed);
    // The server's memory of it is not its process's.
    world.restart().await;
    assert_eq!(keyed(&ada, Change::Follow, 2, "a-1").await.json(200), first);
}

/// Another target, another method: 422.
pub async fn a_key_with_another_body_is_refused_and_changes_nothing(world: &World) {
    world.register(1..=3).await;
    let ada = world.user(1).await;
    keyed(&ada, Change::Follow, 2, "a-1").await.json(200);
    let head = world.head().await;
    keyed(&ada, Change::Follow, 3, "a-1").await.is_problem(422, "idempotency-key-reused");
    keyed(&ada, Change::Unfollow, 2, "a-1").await.is_problem(422, "idempotency-key-reused");
    assert_eq!(world.head().await, head);
    assert_eq!(ada.read("/v1/me/relations?ids=2,3").await["items"][1]["following"], false);
    for wrong in ["", "a b", "\u{e9}", &"a".repeat(256)] {
        let request = ada.change_request(Change::Follow, 3).header("idempotency-key", wrong);
        sent(request).await.is_bad("idempotency-key");
    }
}

/// Two hundred at once.
pub async fn concurrent_requests_of_one_key_have_one_effect_and_one_answer(world: &World) {
    world.register(1..=2).await;
    let ada = world.user(1).await;
    let head = world.head().await;
    let answers = join_all((0..200).map(|_| keyed(&ada, Change::Follow, 2, "a-1"))).await;
    for answer in &answers {
        assert_eq!(answer.json(200), answers[0].json(200), "all are told the same");
    }
    assert!(answers[0].outcome().changed);
    assert_eq!(world.events(head).await.len(), 1);
    // Against others of the same key: one wins, the rest are refused, none does both.
    let targets = join_all((0..100).map(|n| {
        let change = if n % 2 == 0 { Change::Unfollow } else { Change::Follow };
        keyed(&ada, change, 2, "a-2")
    }))
    .await;
    let (won, refused): (Vec<&Answer>, Vec<&Answer>) = targets.iter().partition(|answer| answer.status == 200);
    assert_eq!((won.len(), refused.len()), (50, 50));
    refused.iter().for_each(|answer| answer.is_problem(422, "idempotency-key-reused"));
    world.drain().await;
    world.verify().await;
}

/// A key belongs to who sent it.
pub async fn the_key_of_another_caller_is_another_key(world: &World) {
    world.register(1..=3).await;
    for user in [1, 2] {
        assert!(keyed(&world.user(user).await, Change::Follow, 3, "same").await.outcome().changed);
    }
    let request = world.admin().await.request(Method::POST, "/v1/admin/users").header("idempotency-key", "same");
    sent(request.json(&json!({ "handle": "new" }))).await.json(201);
}

/// A registration without an id would make a new user each time.
pub async fn a_repeated_registration_is_one_user(world: &World) {
    let admin = world.admin().await;
    let register = |handle: &str| {
        let request = admin.request(Method::POST, "/v1/admin/users").header("idempotency-key", "r-1");
        sent(request.json(&json!({ "handle": handle })))
    };
    let answers = join_all((0..20).map(|_| register("ada"))).await;
    for answer in &answers {
        assert_eq!(answer.json(201), answers[0].json(201));
    }
    register("bob").await.is_problem(422, "idempotency-key-reused");
    assert_eq!(world.head().await, 1);
}
