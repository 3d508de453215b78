//! Guarantee 1: an event exists if and only if its fact committed. No path swallows an outbox error.

use futures::future::join_all;
use tidings_testkit::{Kind, model::Change, on_every_world};

use crate::{database::Hand, world_on};

on_every_world!(
    an_outbox_that_refuses_an_event_takes_its_fact_back_and_no_other,
    a_registration_whose_event_is_refused_registers_nobody,
    a_fact_that_cannot_be_written_leaves_no_event,
    a_client_that_leaves_before_its_answer_leaves_fact_and_event_or_neither,
);

async fn an_outbox_that_refuses_an_event_takes_its_fact_back_and_no_other(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=20).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("outbox", "NEW.aggregate_id = '7:1'").await;
    let callers = join_all((2..=20).map(|user| world.user(user))).await;
    // Sent together, so that they are decided together.
    let answers = join_all(callers.iter().map(|caller| caller.change(Change::Follow, 1))).await;
    for (answer, user) in answers.iter().zip(2..) {
        match user {
            7 => answer.is_problem(500, "internal"),
            _ => assert!(answer.outcome().changed),
        }
    }
    assert_eq!(hand.number("SELECT COUNT(*) FROM following WHERE from_user_id = 7").await, 0);
    assert_eq!(hand.uneven_pairs().await, 0);
    let seventh = world.user(7).await;
    assert_eq!(seventh.read("/v1/me/relations?ids=1").await["items"][0]["following"], false);

    hand.admit().await;
    assert_eq!(seventh.follow(1).await.version, 1, "the refused follow left no trace");
    world.drain().await;
    assert_eq!(world.counters(1).await, (0, 19));
    world.verify().await;
}

async fn a_registration_whose_event_is_refused_registers_nobody(kind: Kind) {
    let world = world_on(kind, &[]).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("outbox", "1 = 1").await;
    let admin = world.admin().await;
    let ada = serde_json::json!({ "user_id": "1", "handle": "ada" });
    admin.post("/v1/admin/users", &ada).await.is_problem(500, "internal");
    admin.get("/v1/users/1").await.is_problem(404, "unknown-user");
    hand.admit().await;
    assert_eq!(admin.post("/v1/admin/users", &ada).await.json(201)["ordinal"], 0);
}

async fn a_fact_that_cannot_be_written_leaves_no_event(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=3).await;
    let head = world.head().await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("following", "NEW.to_user_id = 2").await;
    let ada = world.user(1).await;
    ada.change(Change::Follow, 2).await.is_problem(500, "internal");
    assert_eq!(world.head().await, head);
    assert!(ada.follow(3).await.changed);
    assert_eq!(hand.uneven_pairs().await, 0);
}

async fn a_client_that_leaves_before_its_answer_leaves_fact_and_event_or_neither(kind: Kind) {
    let world = world_on(kind, &[("rate.follow_capacity", "100000")]).await;
    world.register(1..=60).await;
    let callers = join_all((2..=60).map(|user| world.user(user))).await;
    // Given up as soon as anything else is ready, which is at every stage of the request.
    for round in 0..20_u32 {
        let requests = join_all(callers.iter().map(|caller| caller.change(Change::Follow, 1)));
        let given_up = async {
            for _ in 0..round * 8 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = requests => {}
            () = given_up => {}
        }
        join_all(callers.iter().map(|caller| caller.unfollow(1))).await;
    }
    world.drain().await;
    assert_eq!(Hand::in_database_of(&world).await.uneven_pairs().await, 0);
    world.verify().await;
}
