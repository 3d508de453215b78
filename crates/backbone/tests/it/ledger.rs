//! Guarantees 1 and 2: an event exists if and only if its fact committed and changed.

mod contention;

use futures::future::join_all;
use tidings_event::{Event, Timestamp};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::World;

on_every_engine!(
    a_thousand_identical_commands_at_once_are_one_row_and_one_event,
    one_bad_command_fails_alone,
    a_refused_command_changes_nothing_and_says_why,
    an_outbox_that_refuses_the_event_takes_the_fact_with_it,
    what_was_accepted_before_a_shutdown_is_decided_and_later_commands_are_told,
    a_transaction_that_is_dropped_leaves_neither_fact_nor_event,
    a_decision_that_panics_fails_alone_and_the_ledger_lives_on,
    an_event_that_no_reader_could_take_is_refused_and_takes_its_fact_with_it,
);

const FACTS: &str = "SELECT COUNT(*) FROM switch WHERE is_on = 1";
const EVENTS: &str = "SELECT COUNT(*) FROM outbox";

async fn a_thousand_identical_commands_at_once_are_one_row_and_one_event(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let answers = join_all((0..1_000).map(|_| ledger.submit(("lamp".to_owned(), 1), None))).await;
    let changed = answers.into_iter().filter(|answer| answer.as_ref().unwrap() == &Ok(true)).count();
    assert_eq!((changed, world.count(FACTS).await, world.count(EVENTS).await), (1, 1, 1));
}

async fn one_bad_command_fails_alone(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    // 2 breaks a CHECK constraint: the database refuses the whole transaction.
    let commands = (0..100).map(|number| (format!("lamp {number}"), if number == 42 { 2 } else { 1 }));
    let answers = ledger.submit_all(commands).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 42, "{number}: {answer:?}");
    }
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (99, 99));
}

async fn a_refused_command_changes_nothing_and_says_why(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let refused = ledger.submit((String::new(), 1), None).await.unwrap();
    assert_eq!(refused, Err("a switch needs a name".to_owned()));
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (0, 0));
}

async fn an_outbox_that_refuses_the_event_takes_the_fact_with_it(engine: Engine) {
    let world = World::on(engine).await;
    world
        .execute(match engine {
            Engine::Sqlite => "CREATE TRIGGER no_events BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'full'); END",
            Engine::Mariadb | Engine::Mysql => "ALTER TABLE outbox ADD CONSTRAINT no_events CHECK (version < 0)",
        })
        .await;
    let (ledger, _worker, _shutdown) = world.ledger();
    assert!(ledger.submit(("lamp".to_owned(), 1), None).await.is_err());
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (0, 0));
}

async fn what_was_accepted_before_a_shutdown_is_decided_and_later_commands_are_told(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, worker, shutdown) = world.ledger();
    let accepted: Vec<_> = (0..50)
        .map(|number| {
            let ledger = ledger.clone();
            tokio::spawn(async move { ledger.submit((format!("lamp {number}"), 1), None).await })
        })
        .collect();
    world.until("the first commit", async || world.count(FACTS).await > 0).await;
    shutdown.cancel();
    worker.await.unwrap();
    let done = join_all(accepted).await.into_iter().filter(|answer| answer.as_ref().unwrap().is_ok()).count();
    assert_eq!(i64::try_from(done).unwrap(), world.count(FACTS).await);
    assert!(ledger.submit(("late".to_owned(), 1), None).await.is_err());
}

async fn a_transaction_that_is_dropped_leaves_neither_fact_nor_event(engine: Engine) {
    let world = World::on(engine).await;
    let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
    tx.conn().execute("x", "INSERT INTO switch (name, is_on) VALUES ('lamp', 1)", vec![]).await.unwrap();
    let event = world.event("switch.turned", "lamp", 1);
    tidings_backbone::outbox::emit(tx.conn(), vec![event]).await.unwrap();
    drop(tx);
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (0, 0));
}

async fn a_decision_that_panics_fails_alone_and_the_ledger_lives_on(engine: Engine) {
    let world = World::on(engine).await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let commands = (0..50).map(|number| (if number == 17 { "panic".to_owned() } else { format!("lamp {number}") }, 1));
    let answers = ledger.submit_all(commands).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 17, "{number}: {answer:?}");
    }
    assert_eq!(ledger.submit(("later".to_owned(), 1), None).await.unwrap(), Ok(true));
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (50, 50));
}

async fn an_event_that_no_reader_could_take_is_refused_and_takes_its_fact_with_it(engine: Engine) {
    let world = World::on(engine).await;
    let good = || world.event("switch.turned", "lamp", 1);
    let spoil: [fn(&mut Event); 11] = [
        |event| event.key = String::new(),
        |event| event.key = "line\nbreak".to_owned(),
        |event| event.key = "k".repeat(256),
        |event| event.event_type = String::new(),
        |event| event.aggregate_id = "\u{0}".to_owned(),
        |event| event.aggregate_type = String::new(),
        |event| event.schema_version = 0,
        |event| event.version = u64::MAX,
        |event| event.occurred_at = Timestamp(i64::MAX),
        |event| drop(event.metadata.other.insert("request_id".to_owned(), "twice".into())),
        |event| event.payload = serde_json::value::to_raw_value(&"x".repeat(300_000)).unwrap(),
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        let mut event = good();
        spoil(&mut event);
        let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
        let refused = tidings_backbone::outbox::emit(tx.conn(), vec![good(), event]).await;
        assert!(refused.is_err_and(|error| error.is_fault_of_data()), "{number}");
        drop(tx);
        assert_eq!(world.count(EVENTS).await, 0);
    }
}

mod several_processes {
    //! Two ledgers on one database, as two processes have them.

    use tidings_backbone::{idempotency::IdempotencyKey, ledger::SubmitError};
    use tidings_testkit::on_every_server;

    use super::*;
    use crate::{
        proxy::{Cut, Proxy},
        world,
    };

    on_every_server!(
        identical_commands_to_two_ledgers_are_one_row_and_one_event,
        an_idempotency_key_has_one_answer_whichever_ledger_is_asked,
        a_commit_whose_answer_is_lost_is_unknown_and_never_repeated_without_a_key,
    );

    async fn identical_commands_to_two_ledgers_are_one_row_and_one_event(engine: Engine) {
        let world = World::on(engine).await;
        let (one, _worker, _shutdown) = world.ledger();
        let (two, _worker, _shutdown) = world.ledger_on(world.reopen().await);
        for lamp in 0..20 {
            let submit =
                |number: usize| if number.is_multiple_of(2) { &one } else { &two }.submit((format!("{lamp}"), 1), None);
            let answers = join_all((0..50).map(submit)).await;
            let changed = answers.into_iter().filter(|answer| answer.as_ref().unwrap() == &Ok(true)).count();
            assert_eq!(changed, 1);
        }
        assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (20, 20));
    }

    async fn an_idempotency_key_has_one_answer_whichever_ledger_is_asked(engine: Engine) {
        let world = World::on(engine).await;
        let (one, _worker, _shutdown) = world.ledger();
        let (two, _worker, _shutdown) = world.ledger_on(world.reopen().await);
        for lamp in 0..20 {
            let key = IdempotencyKey { scope: "ada".to_owned(), key: lamp.to_string(), fingerprint: [1; 32] };
            let submit = |number: usize| {
                let ledger = if number.is_multiple_of(2) { &one } else { &two };
                ledger.submit((format!("{lamp}"), 1), Some(key.clone()))
            };
            let answers = join_all((0..50).map(submit)).await;
            assert!(answers.into_iter().all(|answer| answer.unwrap() == Ok(true)));
        }
        assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (20, 20));
    }

    async fn a_commit_whose_answer_is_lost_is_unknown_and_never_repeated_without_a_key(engine: Engine) {
        let world = World::on(engine).await;
        let proxy = Proxy::before(&world.database).await;
        let (ledger, _worker, _shutdown) = world.ledger_on(world::open(&proxy.place).await);
        let submit = |lamp: &str, key: Option<&str>| {
            let key =
                key.map(|key| IdempotencyKey { scope: "ada".to_owned(), key: key.to_owned(), fingerprint: [1; 32] });
            ledger.submit((lamp.to_owned(), 1), key)
        };
        let mut events = 0;
        for (cut, committed) in [(Cut::AfterServer, 1), (Cut::BeforeServer, 0)] {
            proxy.arm(cut);
            let plain = submit(&format!("{cut:?}"), None).await;
            assert!(matches!(plain, Err(SubmitError::Unknown)), "{plain:?}");
            events += committed;
            assert_eq!(world.count(EVENTS).await, events, "{cut:?}");

            proxy.arm(cut);
            let keyed = submit(&format!("{cut:?} with a key"), Some(&format!("{cut:?}"))).await;
            assert_eq!(keyed.unwrap(), Ok(true), "the answer is the first one's, or a new one's");
            events += 1;
            assert_eq!(world.count(EVENTS).await, events, "{cut:?} with a key");
        }
    }
}
