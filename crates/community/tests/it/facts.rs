//! Follow and unfollow: what is decided, what is written, what is told.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidings_backbone::{Durability, ledger::Decide, log::Recorded};
use tidings_community::relation::facts::{Outcome, Refusal, Relation};
use tidings_event::{
    Metadata, Timestamp,
    payload::{Followed, Payload, Unfollowed},
};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::{
    model::{Model, USERS, batches},
    world::{START, World, block_on, follow, pair, unfollow, user},
};

on_every_engine!(
    following_twice_is_one_change_and_one_event,
    unfollowing_somebody_never_followed_changes_nothing,
    following_oneself_or_an_unknown_user_is_refused_and_the_rest_of_the_batch_goes_on,
    the_highest_possible_id_is_an_unknown_user_like_any_other,
    events_are_keyed_by_the_follower_and_carry_the_before_image,
    commands_of_one_batch_build_on_each_other_and_each_change_has_its_event,
    an_outbox_that_fails_takes_the_facts_back,
    a_batch_larger_than_a_statement_is_decided_whole,
);

async fn following_twice_is_one_change_and_one_event(engine: Engine) {
    let world = World::on(engine, 2).await;
    let first = world.done(follow(1, 2)).await;
    world.tick(5);
    let second = world.done(follow(1, 2)).await;
    assert_eq!(first, Outcome { changed: true, following: true, version: 1, followed_at: Some(START) });
    assert_eq!(second, Outcome { changed: false, ..first });
    assert_eq!(world.relation_events().await.len(), 1);
    assert_eq!(world.facts().await, BTreeMap::from([(pair(1, 2), (true, 1, START.0, START.0))]));
}

async fn unfollowing_somebody_never_followed_changes_nothing(engine: Engine) {
    let world = World::on(engine, 2).await;
    let outcome = world.done(unfollow(1, 2)).await;
    assert_eq!(outcome, Outcome { changed: false, following: false, version: 0, followed_at: None });
    assert!(world.facts().await.is_empty());
    assert!(world.relation_events().await.is_empty());
}

async fn following_oneself_or_an_unknown_user_is_refused_and_the_rest_of_the_batch_goes_on(engine: Engine) {
    let world = World::on(engine, 2).await;
    let answers = world.decide(&[follow(1, 1), follow(1, 3), follow(1, 2), follow(9, 1), unfollow(3, 3)]).await;
    assert_eq!(answers[0], Err(Refusal::Yourself));
    assert_eq!(answers[1], Err(Refusal::UnknownUser(user(3))));
    assert!(answers[2].as_ref().unwrap().changed);
    assert_eq!(answers[3], Err(Refusal::UnknownUser(user(9))));
    assert_eq!(answers[4], Err(Refusal::Yourself));
    assert_eq!(world.facts().await.len(), 1);
    assert_eq!(world.relation_events().await.len(), 1);
}

async fn the_highest_possible_id_is_an_unknown_user_like_any_other(engine: Engine) {
    let world = World::on(engine, 1).await;
    let answers = world.decide(&[follow(1, i64::MAX), follow(0, 1)]).await;
    assert_eq!(answers, [Err(Refusal::UnknownUser(user(i64::MAX))), Err(Refusal::UnknownUser(user(0)))]);
}

async fn events_are_keyed_by_the_follower_and_carry_the_before_image(engine: Engine) {
    let world = World::on(engine, 2).await;
    let metadata = Metadata { request_id: Some("r-1".to_owned()), ..Metadata::default() };
    let mut command = follow(1, 2);
    command.metadata = metadata.clone();
    world.done(command).await;
    world.tick(7);
    world.done(unfollow(1, 2)).await;

    let events = world.relation_events().await;
    let [Recorded { event: followed, .. }, Recorded { event: unfollowed, .. }] = &events[..] else { panic!() };
    for (event, version) in [(followed, 1), (unfollowed, 2)] {
        assert_eq!(event.key, "1");
        assert_eq!((event.aggregate_type.as_str(), event.aggregate_id.as_str()), ("relation", "1:2"));
        assert_eq!(event.version, version);
    }
    assert_ne!(followed.id, unfollowed.id);
    assert_eq!(followed.metadata, metadata);
    assert_eq!(Followed::read(followed).unwrap().followed_at, START);
    let payload = Unfollowed::read(unfollowed).unwrap();
    assert_eq!((payload.from, payload.to), (user(1).into(), user(2).into()));
    assert_eq!((payload.followed_at, payload.unfollowed_at), (START, Timestamp(START.0 + 7)));
}

async fn commands_of_one_batch_build_on_each_other_and_each_change_has_its_event(engine: Engine) {
    let world = World::on(engine, 2).await;
    let answers = world.decide(&[follow(1, 2), follow(1, 2), unfollow(1, 2), follow(1, 2)]).await;
    let seen: Vec<_> = answers.iter().map(|answer| answer.as_ref().unwrap()).map(|o| (o.changed, o.version)).collect();
    assert_eq!(seen, [(true, 1), (false, 1), (true, 2), (true, 3)]);
    let versions: Vec<_> = world.relation_events().await.iter().map(|recorded| recorded.event.version).collect();
    assert_eq!(versions, [1, 2, 3]);
    assert_eq!(world.facts().await[&pair(1, 2)], (true, 3, START.0, START.0));
}

async fn an_outbox_that_fails_takes_the_facts_back(engine: Engine) {
    let world = World::on(engine, 2).await;
    world.tamper("ALTER TABLE outbox RENAME TO lost", vec![]).await;
    let mut tx = world.db.write(Durability::Full).await.unwrap();
    let relation = Relation::new(world.ids.clone());
    relation.decide(&[&follow(1, 2)], START, tx.conn()).await.unwrap_err();
    drop(tx);
    assert!(world.facts().await.is_empty());
}

async fn a_batch_larger_than_a_statement_is_decided_whole(engine: Engine) {
    let world = World::on(engine, 400).await;
    let commands: Vec<_> = (2..=400).map(|to| follow(1, to)).collect();
    let answers = world.decide(&commands).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().changed));
    assert_eq!(world.facts().await.len(), 399);
    let again = world.decide(&commands).await;
    assert!(again.iter().all(|answer| !answer.as_ref().unwrap().changed));
    assert_eq!(world.relation_events().await.len(), 399);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Answers, rows and events are those of the model, however commands are cut into batches.
    #[test]
    fn any_interleaving_in_any_batches_does_what_the_model_does(batches in batches()) {
        block_on(async {
            let world = World::new(USERS).await;
            let mut model = Model::default();
            for batch in &batches {
                world.tick(1);
                let expected = model.decide_all(batch, world.clock.now());
                prop_assert_eq!(world.decide(batch).await, expected);
            }
            prop_assert_eq!(&world.facts().await, &model.pairs);
            let events: Vec<_> = world.relation_events().await.into_iter().map(|recorded| recorded.event).collect();
            prop_assert_eq!(events.len(), model.events.len());
            for (event, (event_type, pair, version, at)) in events.iter().zip(&model.events) {
                prop_assert_eq!(&event.event_type, event_type);
                prop_assert_eq!(&event.aggregate_id, &pair.to_string());
                prop_assert_eq!(&event.key, &pair.from.to_string());
                prop_assert_eq!((event.version, event.occurred_at.0), (*version, *at));
            }
            Ok(())
        })?;
    }
}
