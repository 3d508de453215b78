//! Registering users.

use tidings_community::user::{
    facts::{Refusal, Registered},
    read,
};
use tidings_event::payload::{self, Payload};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::{START, World, register, user};

on_every_engine!(
    ordinals_are_dense_in_order_of_decision_also_after_refusals,
    registering_the_same_user_again_changes_nothing,
    a_handle_belongs_to_one_user,
    given_ids_go_past_the_highest_and_never_out_of_range,
    a_new_user_is_one_event_keyed_by_him,
    users_are_found_by_id_and_by_handle,
);

async fn ordinals_are_dense_in_order_of_decision_also_after_refusals(engine: Engine) {
    let world = World::on(engine, 0).await;
    let answers = world
        .register(&[register(Some(70), "a"), register(Some(70), "b"), register(Some(9), "a"), register(Some(9), "c")])
        .await;
    assert_eq!(answers[1], Err(Refusal::UserExists));
    assert_eq!(answers[2], Err(Refusal::HandleTaken));
    world.register(&[register(None, "d")]).await;
    let ordinals = world.query("SELECT id, ordinal FROM account ORDER BY ordinal", vec![]).await;
    assert_eq!(ordinals, [[70, 0], [9, 1], [71, 2]]);
}

async fn registering_the_same_user_again_changes_nothing(engine: Engine) {
    let world = World::on(engine, 0).await;
    let first = world.register(&[register(Some(0), "ada"), register(Some(0), "ada")]).await;
    let again = world.register(&[register(Some(0), "ada")]).await;
    let outcome = |changed| Ok(Registered { user_id: user(0), handle: "ada".parse().unwrap(), ordinal: 0, changed });
    assert_eq!(first, [outcome(true), outcome(false)]);
    assert_eq!(again, [outcome(false)]);
    assert_eq!(world.events().await.len(), 1);
}

async fn a_handle_belongs_to_one_user(engine: Engine) {
    let world = World::on(engine, 0).await;
    world.register(&[register(Some(5), "ada")]).await;
    let answers = world.register(&[register(None, "ada"), register(Some(6), "ada"), register(Some(5), "other")]).await;
    assert_eq!(answers, [Err(Refusal::HandleTaken), Err(Refusal::HandleTaken), Err(Refusal::UserExists)]);
    assert_eq!(world.events().await.len(), 1);
}

async fn given_ids_go_past_the_highest_and_never_out_of_range(engine: Engine) {
    let world = World::on(engine, 0).await;
    let answers = world.register(&[register(None, "a"), register(Some(10), "b"), register(None, "c")]).await;
    let ids: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().user_id.get()).collect();
    assert_eq!(ids, [1, 10, 11]);
    let answers = world.register(&[register(Some(i64::MAX), "d"), register(None, "e")]).await;
    assert_eq!(answers[0].as_ref().unwrap().user_id.get(), i64::MAX);
    assert_eq!(answers[1], Err(Refusal::IdsExhausted));
    assert_eq!(world.register(&[register(None, "f")]).await, [Err(Refusal::IdsExhausted)]);
    assert!(world.register(&[register(Some(12), "f")]).await[0].is_ok());
}

async fn a_new_user_is_one_event_keyed_by_him(engine: Engine) {
    let world = World::on(engine, 0).await;
    world.register(&[register(Some(42), "ada")]).await;
    let events = world.events().await;
    let event = &events[0].event;
    assert_eq!((event.event_type.as_str(), event.key.as_str(), event.version), ("account.registered", "42", 1));
    let payload = payload::Registered::read(event).unwrap();
    assert_eq!((payload.user, payload.handle.as_str(), payload.ordinal), (user(42).into(), "ada", 0));
}

async fn users_are_found_by_id_and_by_handle(engine: Engine) {
    let world = World::on(engine, 3).await;
    let mut tx = world.db.read().await.unwrap();
    let conn = &mut tx.conn();
    let found = read::get(conn, user(2)).await.unwrap().unwrap();
    assert_eq!((found.handle.as_str(), found.ordinal, found.created_at), ("user2", 1, START));
    assert_eq!(read::by_handle(conn, &"user2".parse().unwrap()).await.unwrap(), Some(found));
    assert_eq!(read::get(conn, user(9)).await.unwrap(), None);
    assert_eq!(read::by_handle(conn, &"nobody".parse().unwrap()).await.unwrap(), None);
    let handles = read::handles(conn, &[user(3), user(9), user(1)]).await.unwrap();
    assert_eq!(handles.len(), 2);
    assert_eq!(handles[&user(3)].as_str(), "user3");
}
