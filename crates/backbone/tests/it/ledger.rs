//! Guarantees 1 and 2: an event exists if and only if its fact committed and changed.

use futures::future::join_all;
use tidings_event::{Event, Timestamp};

use crate::world::World;

const FACTS: &str = "SELECT COUNT(*) FROM switch WHERE is_on = 1";
const EVENTS: &str = "SELECT COUNT(*) FROM outbox";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_identical_commands_at_once_are_one_row_and_one_event() {
    let world = World::new().await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let answers = join_all((0..1_000).map(|_| ledger.submit(("lamp".to_owned(), 1), None))).await;
    let changed = answers.into_iter().filter(|answer| answer.as_ref().unwrap() == &Ok(true)).count();
    assert_eq!((changed, world.count(FACTS).await, world.count(EVENTS).await), (1, 1, 1));
}

#[tokio::test]
async fn one_bad_command_fails_alone() {
    let world = World::new().await;
    let (ledger, _worker, _shutdown) = world.ledger();
    // 2 breaks a CHECK constraint: the database refuses the whole transaction.
    let commands = (0..100).map(|number| (format!("lamp {number}"), if number == 42 { 2 } else { 1 }));
    let answers = ledger.submit_all(commands).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 42, "{number}: {answer:?}");
    }
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (99, 99));
}

#[tokio::test]
async fn a_refused_command_changes_nothing_and_says_why() {
    let world = World::new().await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let refused = ledger.submit((String::new(), 1), None).await.unwrap();
    assert_eq!(refused, Err("a switch needs a name".to_owned()));
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (0, 0));
}

#[tokio::test]
async fn an_outbox_that_refuses_the_event_takes_the_fact_with_it() {
    let world = World::new().await;
    world.execute("CREATE TRIGGER no_events BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'full'); END").await;
    let (ledger, _worker, _shutdown) = world.ledger();
    assert!(ledger.submit(("lamp".to_owned(), 1), None).await.is_err());
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (0, 0));
}

#[tokio::test]
async fn what_was_accepted_before_a_shutdown_is_decided_and_later_commands_are_told() {
    let world = World::new().await;
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

#[tokio::test]
async fn a_transaction_that_is_dropped_leaves_neither_fact_nor_event() {
    let world = World::new().await;
    let mut tx = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
    tx.conn().execute("x", "INSERT INTO switch (name, is_on) VALUES ('lamp', 1)", vec![]).await.unwrap();
    let event = world.event("switch.turned", "lamp", 1);
    tidings_backbone::outbox::emit(tx.conn(), vec![event]).await.unwrap();
    drop(tx);
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (0, 0));
}

#[tokio::test]
async fn a_decision_that_panics_fails_alone_and_the_ledger_lives_on() {
    let world = World::new().await;
    let (ledger, _worker, _shutdown) = world.ledger();
    let commands = (0..50).map(|number| (if number == 17 { "panic".to_owned() } else { format!("lamp {number}") }, 1));
    let answers = ledger.submit_all(commands).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 17, "{number}: {answer:?}");
    }
    assert_eq!(ledger.submit(("later".to_owned(), 1), None).await.unwrap(), Ok(true));
    assert_eq!((world.count(FACTS).await, world.count(EVENTS).await), (50, 50));
}

#[tokio::test]
async fn an_event_that_no_reader_could_take_is_refused_and_takes_its_fact_with_it() {
    let world = World::new().await;
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
