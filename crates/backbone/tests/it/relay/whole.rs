//! The whole relay, from a real database into a real Kafka.

use std::collections::HashMap;

use mysql_async::prelude::Queryable;
use tidings_backbone::{
    Clock, Error, Result,
    kafka::{
        self,
        topics::{self, Purpose},
    },
    relay::{Formatter, Handle, Relay, Route, Sink, State, sink},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    quiet,
    servers::{self, Own, on_own_of_both},
    world::{World, insert, insert_of, on_both, within},
};
use crate::{
    said::Said,
    sinks::{
        broker::{Found, committed, local, options},
        webhook::Receiver,
    },
};

on_both!(
    what_is_committed_is_in_the_log_once_and_in_order_of_its_key,
    of_two_relays_one_works_and_the_other_takes_over_from_one_that_is_killed,
    a_relay_that_lost_its_lease_waits_until_it_has_it_again,
    a_relay_that_another_one_has_fenced_steps_down,
    a_bad_row_and_an_oversized_one_are_dead_letters_and_only_their_keys_wait,
    a_sink_that_takes_no_more_stops_the_relay,
    a_topic_that_is_missing_is_named_and_waited_for,
    a_topic_with_other_partitions_ends_the_relay_with_both_numbers;
    mariadb: while_kafka_is_away_with_a_hundred_keys_busy_nothing_moves_and_nothing_is_lost,
);
on_own_of_both!(a_relay_whose_database_is_away_waits_and_says_so);

/// A relay that runs.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    shutdown: CancellationToken,
    pub(crate) task: JoinHandle<Result<()>>,
}

impl Running {
    pub(crate) async fn start(world: &World, log: &kafka::Options) -> Self {
        let topics = [log.topic("test")];
        let sink = sink::kafka::Sink::open(log, &world.group, &topics);
        Self::into(world, Sink::Kafka(Box::new(sink)), &log.prefix)
    }

    pub(crate) fn into(world: &World, sink: Sink, prefix: &str) -> Self {
        let bytes_max = sink.record_bytes_max();
        let formatter = Formatter::new(&[Route::default()], prefix, Clock::system(), bytes_max).unwrap();
        let relay = Relay::new(world.options(), formatter, sink, Clock::system()).unwrap();
        let (handle, shutdown) = (relay.handle(), CancellationToken::new());
        let task = tokio::spawn(relay.run(shutdown.clone()));
        Self { handle, shutdown, task }
    }

    async fn until(&mut self, state: State) {
        within(self.handle.wait_for(|status| status.state == state)).await.unwrap();
    }

    /// Waits until so many records are in the log by this relay.
    pub(crate) async fn until_records(&mut self, records: u64) {
        within(self.handle.wait_for(|status| status.records >= records)).await.unwrap();
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        within(self.task).await.unwrap().unwrap();
    }
}

/// The numbers of the events in the log, and each key's in order.
pub(crate) fn numbers(found: &[Found]) -> Vec<u64> {
    let mut keys: HashMap<Option<Vec<u8>>, u64> = HashMap::new();
    let mut numbers = Vec::new();
    for record in found {
        let value: serde_json::Value = serde_json::from_str(record.value.as_ref().unwrap()).unwrap();
        let number = value["data"]["n"].as_u64().unwrap();
        let last = keys.insert(record.key.clone(), number);
        assert!(last.is_none_or(|last| last < number), "{number} comes after {last:?}");
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers
}

async fn what_is_committed_is_in_the_log_once_and_in_order_of_its_key(mut world: World) {
    let log = local();
    world.emit(0..5).await;
    let mut relay = Running::start(&world, &log).await;
    relay.until_records(5).await;
    world.emit(5..2_000).await;
    relay.until_records(2_000).await;
    relay.stop().await;
    world.emit(2_000..2_005).await;
    let mut relay = Running::start(&world, &log).await;
    relay.until_records(5).await;
    assert_eq!(relay.handle.age_ms(), 0);
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..2_005).collect::<Vec<_>>());
}

async fn a_topic_that_is_missing_is_named_and_waited_for(mut world: World) {
    let log = local();
    let sink = sink::kafka::Sink::open(&log, &world.group, &[]);
    let mut relay = Running::into(&world, Sink::Kafka(Box::new(sink)), &log.prefix);
    world.emit(0..20).await;
    let waiting = within(relay.handle.wait_for(|status| status.state == State::BackingOff)).await.unwrap();
    let said = waiting.detail.unwrap();
    assert!(said.contains(&format!("`{}`", log.topic("test"))) && said.contains("`topics`"), "{said}");
    topics::ensure(&log, &[(log.topic("test"), Purpose::Events)]).await.unwrap();
    relay.until_records(20).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..20).collect::<Vec<_>>());
}

async fn a_topic_with_other_partitions_ends_the_relay_with_both_numbers(world: World) {
    let log = local();
    let (topic, other) = (log.topic("test"), log.partitions + 2);
    let made = kafka::Options { partitions: other, ..log.clone() };
    topics::ensure(&made, &[(topic.clone(), Purpose::Events)]).await.unwrap();
    let relay = Running::start(&world, &log).await;
    let ended = within(relay.task).await.unwrap().unwrap_err();
    let message = format!("the topic `{topic}` has {other} partitions, {} are configured", log.partitions);
    assert_eq!(Error::chain(&ended), message);
    let status = relay.handle.status();
    assert_eq!((status.state, status.detail), (State::Stopped, Some(message)));
}

async fn of_two_relays_one_works_and_the_other_takes_over_from_one_that_is_killed(mut world: World) {
    let log = local();
    let mut first = Running::start(&world, &log).await;
    first.until(State::Active).await;
    let mut next = 0;
    for _ in 0..4 {
        let mut second = Running::start(&world, &log).await;
        world.emit(next..next + 200).await;
        next += 200;
        first.until_records(1).await;
        assert_eq!(second.handle.status().state, State::Standby);
        // Dropped in the middle of whatever it does, as a kill would.
        first.task.abort();
        second.until(State::Active).await;
        first = second;
    }
    world.emit(next..next + 10).await;
    first.until_records(10).await;
    first.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..next + 10).collect::<Vec<_>>());
}

async fn a_relay_that_lost_its_lease_waits_until_it_has_it_again(mut world: World) {
    let log = local();
    world.group = "a group".to_owned();
    let mut relay = Running::start(&world, &log).await;
    relay.until(State::Active).await;
    world.emit(0..5).await;
    relay.until_records(5).await;
    let mut thief = world.another().await;
    let thief_id = thief.id();
    let lock = format!("tidings-relay:{}", world.group);
    let stealing = tokio::spawn({
        let sql = format!("SELECT GET_LOCK('{lock}', 60)");
        async move { (thief.query_first::<u64, _>(sql).await.unwrap(), thief) }
    });
    // The lock goes to whoever waits for it once the connection of the holder is gone.
    let waits =
        format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {thief_id} AND STATE = 'User lock'");
    while world.conn.query_first::<u64, _>(&waits).await.unwrap() != Some(1) {}
    let holder: Option<u64> = world.conn.query_first(format!("SELECT IS_USED_LOCK('{lock}')")).await.unwrap();
    world.sql(format!("KILL {}", holder.unwrap())).await;
    relay.until(State::Standby).await;
    let (stolen, thief) = within(stealing).await.unwrap();
    assert_eq!(stolen, Some(1));
    world.emit(5..10).await;
    assert_eq!(relay.handle.status().records, 5);
    drop(thief);
    relay.until_records(10).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..10).collect::<Vec<_>>());
}

async fn a_relay_that_another_one_has_fenced_steps_down(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log).await;
    relay.until(State::Active).await;
    world.emit(0..5).await;
    relay.until_records(5).await;
    let mut other = Sink::Kafka(Box::new(sink::kafka::Sink::open(&log, &world.group, &[])));
    assert!(other.take_over().await.unwrap().is_some());
    world.emit(5..10).await;
    relay.until(State::Standby).await;
    // It holds the lease, so it becomes active once more, and goes on from the checkpoint.
    relay.until_records(10).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..10).collect::<Vec<_>>());
}

async fn a_bad_row_and_an_oversized_one_are_dead_letters_and_only_their_keys_wait(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log).await;
    relay.until(State::Active).await;
    world.emit(0..7).await;
    // Keys are numbers modulo 7: key 1 has a payload that is no JSON, key 2 one that no broker takes.
    world.sql(insert([8]).replace("{\"n\":8}", "{\"n\":")).await;
    world.sql(insert([9]).replace("{\"n\":9}", &format!("{{\"n\":9,\"x\":\"{}\"}}", "x".repeat(3_000_000)))).await;
    world.emit(10..21).await;
    within(relay.handle.wait_for(|status| status.records + status.dead >= 20)).await.unwrap();
    let status = relay.handle.status();
    assert_eq!((status.records, status.dead), (16, 4));
    relay.stop().await;
    world.emit(21..28).await;
    let mut relay = Running::start(&world, &log).await;
    within(relay.handle.wait_for(|status| status.records + status.dead >= 7)).await.unwrap();
    assert_eq!((relay.handle.status().records, relay.handle.status().dead), (5, 2));
    relay.stop().await;
    let expected =
        (0..28).filter(|number| *number < 7 || ![1, 2].contains(&(number % 7))).filter(|number| *number != 7);
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), expected.collect::<Vec<_>>());
    let dead = committed(&log, &log.dead_letter_topic());
    let ids: Vec<_> = dead
        .iter()
        .map(|found| {
            let letter: serde_json::Value = serde_json::from_str(found.value.as_ref().unwrap()).unwrap();
            (
                letter["key"].as_str().unwrap().to_owned(),
                letter["row"]["aggregate_id"].as_str().unwrap().parse::<u64>().unwrap(),
            )
        })
        .collect();
    for key in ["k1", "k2"] {
        let of_key: Vec<u64> = ids.iter().filter(|(known, _)| known == key).map(|(_, number)| *number).collect();
        let first = if key == "k1" { 8 } else { 9 };
        assert_eq!(of_key, [first, first + 7, first + 14]);
    }
}

async fn a_sink_that_takes_no_more_stops_the_relay(mut world: World) {
    let receiver = Receiver::start().await;
    receiver.answer(&["410 Gone"]);
    world.emit([0]).await;
    let relay = Running::into(&world, receiver.sink(), "tidings");
    let stopped = within(relay.task).await.unwrap().unwrap_err();
    assert!(!stopped.is_transient() && Error::chain(&stopped).contains("410"), "{stopped:?}");
    assert_eq!(relay.handle.status().state, State::Stopped);
    let mut relay = Running::into(&world, receiver.sink(), "tidings");
    relay.until_records(1).await;
    relay.stop().await;
}

async fn a_relay_whose_database_is_away_waits_and_says_so(mut own: Own) {
    let log = local();
    let mut relay = Running::start(&own.world, &log).await;
    relay.until(State::Active).await;
    own.pause().await;
    relay.until(State::BackingOff).await;
    own.resume().await;
    own.reconnect().await;
    own.world.emit(0..5).await;
    relay.until_records(5).await;
    own.crash().await;
    own.world.emit(5..10).await;
    relay.until_records(10).await;
    relay.until(State::Active).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..10).collect::<Vec<_>>());
}

async fn while_kafka_is_away_with_a_hundred_keys_busy_nothing_moves_and_nothing_is_lost(mut world: World) {
    const KAFKA: [&str; 3] = ["--set", "relay", "kafka"];
    let address = servers::start("kafka", "relay").await;
    let log = options(address);
    let said = Said::by(&world.group);
    let mut relay = Running::start(&world, &log).await;
    world.sql(insert_of(100, 0..100)).await;
    relay.until_records(100).await;
    let mut next = 100;
    for (stop, start) in [("kill", "up"), ("pause", "resume")] {
        let lines_before = said.lines().len();
        servers::run(&[&[stop], &KAFKA[..]].concat()).await;
        let before = relay.handle.status();
        world.sql(insert_of(100, next..next + 20)).await;
        next += 20;
        relay.until(State::BackingOff).await;
        let (oldest, age) = (relay.handle.status().waiting_since_ms, relay.handle.age_ms());
        assert!(oldest.is_some() && age > 0, "{oldest:?}, {age}");
        for _ in 0..49 {
            world.sql(insert_of(100, next..next + 20)).await;
            next += 20;
        }
        relay.until(State::BackingOff).await;
        let during = relay.handle.status();
        assert_eq!((during.position, during.records), (before.position, before.records));
        // Younger events have come, and the oldest has become older.
        assert_eq!(during.waiting_since_ms, oldest);
        assert!(relay.handle.age_ms() > age, "{} > {age}", relay.handle.age_ms());
        quiet::until(&said, &world.group, lines_before + 2).await;
        quiet::assert_one_for_each_pause(&said.lines()[lines_before..], quiet::SINK_AWAY);
        servers::run(&[&[start], &KAFKA[..]].concat()).await;
        relay.until_records(next).await;
        relay.until(State::Active).await;
        assert_eq!(relay.handle.age_ms(), 0);
    }
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..next).collect::<Vec<_>>());
    servers::run(&[&["down", "--wipe"], &KAFKA[..]].concat()).await;
}
