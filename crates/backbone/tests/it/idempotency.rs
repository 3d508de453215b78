//! Guarantee 9 and `Idempotency-Key`: a repetition gets the first answer and changes nothing.

use futures::future::join_all;
use tidings_backbone::{idempotency::IdempotencyKey, ledger::SubmitError};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::World;

on_every_engine!(
    a_repetition_gets_the_first_answer_even_after_the_fact_changed,
    concurrent_repetitions_have_one_effect_and_one_answer,
    the_same_key_for_something_else_is_refused_and_changes_nothing,
    the_same_key_of_another_scope_is_another_key,
    a_refusal_is_repeated_too,
    a_stored_answer_of_another_version_fails_its_own_request_and_nobody_elses,
);

fn key(scope: &str, fingerprint: u8) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { scope: scope.to_owned(), key: "k".to_owned(), fingerprint: [fingerprint; 32] })
}

fn on() -> (String, i64) {
    ("lamp".to_owned(), 1)
}

async fn a_repetition_gets_the_first_answer_even_after_the_fact_changed(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    assert_eq!(ledger.submit(on(), key("ada", 1)).await.unwrap(), Ok(true));
    assert_eq!(ledger.submit(("lamp".to_owned(), 0), None).await.unwrap(), Ok(true));
    assert_eq!(ledger.submit(on(), key("ada", 1)).await.unwrap(), Ok(true));
    assert_eq!(world.count("SELECT is_on FROM switch").await, 0, "the repetition changed the fact");
}

async fn concurrent_repetitions_have_one_effect_and_one_answer(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let answers = join_all((0..200).map(|_| ledger.submit(on(), key("ada", 1)))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap() == Ok(true)));
    assert_eq!(world.count("SELECT COUNT(*) FROM outbox").await, 1);
}

async fn the_same_key_for_something_else_is_refused_and_changes_nothing(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    ledger.submit(on(), key("ada", 1)).await.unwrap().unwrap();
    let other = ledger.submit(("radio".to_owned(), 1), key("ada", 2)).await;
    assert!(matches!(other, Err(SubmitError::KeyReused)));
    let together = join_all([
        ledger.submit(("a".to_owned(), 1), key("bob", 1)),
        ledger.submit(("b".to_owned(), 1), key("bob", 2)),
    ])
    .await;
    assert_eq!(together.iter().filter(|answer| matches!(answer, Err(SubmitError::KeyReused))).count(), 1);
    assert_eq!(world.count("SELECT COUNT(*) FROM switch").await, 2);
}

async fn the_same_key_of_another_scope_is_another_key(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    assert_eq!(ledger.submit(on(), key("ada", 1)).await.unwrap(), Ok(true));
    assert_eq!(ledger.submit(on(), key("bob", 1)).await.unwrap(), Ok(false));
}

async fn a_refusal_is_repeated_too(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let nameless = (String::new(), 1);
    let first = ledger.submit(nameless.clone(), key("ada", 1)).await.unwrap();
    assert_eq!(ledger.submit(nameless, key("ada", 1)).await.unwrap(), first);
}

async fn a_stored_answer_of_another_version_fails_its_own_request_and_nobody_elses(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    ledger.submit(on(), key("ada", 1)).await.unwrap().unwrap();
    world.execute("UPDATE idempotency_key SET answer = '{\"Done\":{\"a\":1}}'").await;
    let (repeated, other) =
        tokio::join!(ledger.submit(on(), key("ada", 1)), ledger.submit(("radio".to_owned(), 1), None));
    assert!(matches!(repeated, Err(SubmitError::Failed(_))));
    assert_eq!(other.unwrap(), Ok(true), "decided twice, the second answer would be `false`");
}
