//! The polling relay.

mod noting;
mod trouble;

use mysql_async::prelude::Queryable;
use tidings_backbone::{
    Clock, Db, Error, Result,
    db::MysqlOptions,
    kafka,
    log::{KafkaLog, Offset},
    relay::{Formatter, Handle, Options, Relay, Route, State, is_held, sink},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    servers::{Own, on_own_of_both},
    whole::numbers,
    wire::Wire,
    world::{World, insert, on_both, within},
};
use crate::sinks::{
    broker::{Found, committed, local},
    webhook::{Receiver, SECRET},
};

on_both!(
    pending_rows_come_once_in_order_of_their_key_also_those_that_were_there_before,
    a_row_that_commits_late_is_not_passed_over_for_its_low_number,
    pollers_share_the_work_and_none_is_lost_or_doubled_when_one_is_killed,
    a_crash_before_rows_are_struck_off_doubles_nothing,
    bad_rows_are_dead_letters_and_only_their_keys_wait,
    how_far_it_is_is_told_by_what_is_pending,
    a_sink_that_takes_no_more_stops_the_relay_and_nothing_is_struck_off,
    a_connection_that_breaks_in_a_page_leaves_a_dead_letter_its_reason,
);
on_own_of_both!(a_poller_whose_database_is_away_waits_and_goes_on);

pub(crate) struct Running {
    pub(crate) handle: Handle,
    shutdown: CancellationToken,
    task: JoinHandle<Result<()>>,
}

impl Running {
    pub(crate) fn start(world: &World, log: &kafka::Options) -> Self {
        Self::with(world.options(), log)
    }

    fn with(options: Options, log: &kafka::Options) -> Self {
        let topics = vec![log.topic("test")];
        let sink = serde_json::json!({
            "kind": "kafka", "brokers": log.brokers, "prefix": log.prefix,
            "topics": topics, "partitions": log.partitions,
        });
        Self::into(options, sink, &log.prefix)
    }

    pub(crate) fn into(options: Options, sink: serde_json::Value, prefix: &str) -> Self {
        let sink: sink::Options = serde_json::from_value(sink).unwrap();
        let formatter = Formatter::new(&[Route::default()], prefix, Clock::system(), 1_000_000).unwrap();
        let poller = Relay::polling(options, formatter, sink, Clock::system()).unwrap();
        let (handle, shutdown) = (poller.handle(), CancellationToken::new());
        let task = tokio::spawn(poller.run(shutdown.clone()));
        Self { handle, shutdown, task }
    }

    pub(crate) async fn until(&mut self, records: u64) {
        let come =
            self.handle.wait_for(|status| status.state == State::Stopped || status.records + status.dead >= records);
        let status = within(come).await.unwrap();
        assert!(status.state != State::Stopped, "{status:?}");
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        within(self.task).await.unwrap().unwrap();
    }
}

async fn left(world: &mut World) -> u64 {
    world.conn.query_first("SELECT COUNT(*) FROM outbox_pending WHERE shard < 16").await.unwrap().unwrap()
}

async fn pending_rows_come_once_in_order_of_their_key_also_those_that_were_there_before(mut world: World) {
    let log = local();
    world.emit(0..700).await;
    let mut relay = Running::start(&world, &log);
    relay.until(700).await;
    world.emit(700..710).await;
    world.sql("BEGIN").await;
    world.emit(900..950).await;
    world.sql("ROLLBACK").await;
    world.sql("ALTER TABLE outbox ADD COLUMN note INT NULL FIRST").await;
    world.emit(710..720).await;
    relay.until(720).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..720).collect::<Vec<_>>());
    assert_eq!(left(&mut world).await, 0);
}

async fn a_row_that_commits_late_is_not_passed_over_for_its_low_number(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    within(relay.handle.wait_for(|status| status.state == State::Active)).await.unwrap();
    let mut late = world.another().await;
    late.query_drop("BEGIN").await.unwrap();
    late.query_drop(insert([0])).await.unwrap();
    world.emit(1..4).await;
    relay.until(3).await;
    late.query_drop("COMMIT").await.unwrap();
    relay.until(4).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), [0, 1, 2, 3]);
}

async fn pollers_share_the_work_and_none_is_lost_or_doubled_when_one_is_killed(mut world: World) {
    let log = local();
    let mut pollers: Vec<Running> = (0..2).map(|_| Running::start(&world, &log)).collect();
    for poller in &mut pollers {
        within(poller.handle.wait_for(|status| status.state == State::Active)).await.unwrap();
    }
    let mut next = 0;
    for _ in 0..3 {
        for _ in 0..20 {
            world.emit(next..next + 20).await;
            next += 20;
        }
        // Dropped in the middle of whatever it does, as a kill would; another one takes its place.
        pollers.remove(0).task.abort();
        pollers.push(Running::start(&world, &log));
    }
    within(async { while left(&mut world).await > 0 {} }).await;
    for poller in pollers {
        poller.stop().await;
    }
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..next).collect::<Vec<_>>());
}

async fn a_crash_before_rows_are_struck_off_doubles_nothing(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..50).await;
    relay.until(50).await;
    relay.stop().await;
    // As if the crash had come between the log's commit and the striking off.
    world.sql("INSERT INTO outbox_pending (shard, seq) SELECT CRC32(event_key) % 16, seq FROM outbox").await;
    world.emit(50..60).await;
    let mut relay = Running::start(&world, &log);
    relay.until(10).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..60).collect::<Vec<_>>());
}

async fn bad_rows_are_dead_letters_and_only_their_keys_wait(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..7).await;
    relay.until(7).await;
    world.sql(insert([8]).replace("{\"n\":8}", "{\"n\":")).await;
    world.emit(9..15).await;
    relay.until(14).await;
    relay.stop().await;
    let mut relay = Running::start(&world, &log);
    // Of the same key: they wait behind it, after a restart too.
    world.emit([15, 22]).await;
    relay.until(2).await;
    assert_eq!((relay.handle.status().records, relay.handle.status().dead), (0, 2));
    relay.stop().await;
    let expected = (0..15).filter(|number| ![7, 8].contains(number));
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), expected.collect::<Vec<_>>());
    assert_eq!(committed(&log, &log.dead_letter_topic()).len(), 3);
}

async fn a_poller_whose_database_is_away_waits_and_goes_on(mut own: Own) {
    let log = local();
    let mut relay = Running::start(&own.world, &log);
    own.world.emit(0..20).await;
    relay.until(20).await;
    own.crash().await;
    own.world.emit(20..40).await;
    relay.until(40).await;
    own.restart().await;
    own.world.emit(40..60).await;
    relay.until(60).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..60).collect::<Vec<_>>());
}

async fn how_far_it_is_is_told_by_what_is_pending(mut world: World) {
    let options = local();
    let address = MysqlOptions::from_url(&format!("{}/{}", world.address, world.database)).unwrap();
    let db = Db::open_mysql(address).await.unwrap();
    let log = KafkaLog::new(db.clone(), options.clone()).polled();
    world.emit(0..20).await;
    assert_eq!(log.published().await.unwrap(), None);
    let mut relay = Running::start(&world, &options);
    relay.until(20).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    let relayed = log.relayed().await.unwrap();
    assert_eq!((relayed.published, relayed.behind, relayed.oldest), (Offset(20), 0, None));
    assert!(is_held(&mut db.read().await.unwrap().conn(), &world.group).await.unwrap());
    relay.stop().await;
    // The server lets go of a lock when it has noticed the end of the connection that held it.
    within(async { while is_held(&mut db.read().await.unwrap().conn(), &world.group).await.unwrap() {} }).await;
    world.emit(20..25).await;
    let relayed = log.relayed().await.unwrap();
    assert_eq!((relayed.published, relayed.behind), (Offset(20), 5));
    assert!(relayed.oldest.is_some());
    assert_eq!(log.published().await.unwrap(), Some(Offset(20)));
}

async fn a_sink_that_takes_no_more_stops_the_relay_and_nothing_is_struck_off(mut world: World) {
    let receiver = Receiver::start().await;
    let sink = serde_json::json!({
        "kind": "webhook", "url": receiver.url, "secret": SECRET, "file": receiver.file(),
    });
    receiver.answer(&["410 Gone"]);
    let relay = Running::into(world.options(), sink.clone(), "tidings");
    world.emit([0]).await;
    let stopped = within(relay.task).await.unwrap().unwrap_err();
    assert!(!stopped.is_transient(), "{stopped:?}");
    assert!(Error::chain(&stopped).contains("410"), "{stopped:?}");
    assert_eq!(relay.handle.status().state, State::Stopped);
    assert_eq!(left(&mut world).await, 1);
    let mut relay = Running::into(world.options(), sink, "tidings");
    relay.until(1).await;
    relay.stop().await;
    assert_eq!(receiver.ids().len(), 2);
    assert_eq!(left(&mut world).await, 0);
}

async fn a_connection_that_breaks_in_a_page_leaves_a_dead_letter_its_reason(mut world: World) {
    let log = local();
    let wire = Wire::to(&world).await;
    wire.cut_before("the last that comes");
    let bad = insert([8, 15]).replace("{\"n\":8}", "{\"n\":").replace("{\"n\":15}", "{\"a\":\"the last that comes\"}");
    world.sql(bad).await;
    let mut relay = Running::with(wire.options(&world), &log);
    relay.until(2).await;
    relay.stop().await;
    assert_eq!(wire.cuts(), 1);
    let reasons = reasons(&log);
    assert!(reasons[0].1.contains("JSON"), "{reasons:?}");
    assert!(reasons[1].1.contains("earlier row"), "{reasons:?}");
}

/// The numbers of the dead letters' rows with their reasons, key by key in order.
fn reasons(log: &kafka::Options) -> Vec<(u64, String)> {
    let dead = committed(log, &log.dead_letter_topic());
    let letter = |found: &Found| -> (u64, String) {
        let letter: serde_json::Value = serde_json::from_str(found.value.as_ref().unwrap()).unwrap();
        let number = letter["row"]["aggregate_id"].as_str().unwrap().parse().unwrap();
        (number, letter["reason"].as_str().unwrap().to_owned())
    };
    dead.iter().map(letter).collect()
}
