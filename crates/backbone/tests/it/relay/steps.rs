//! Numbers that a server leaves out: they count neither as missing nor as behind, and what is missing does.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use tidings_backbone::{
    Clock, Db,
    db::{BACKBONE_MIGRATIONS, MysqlOptions},
    kafka,
    log::{KafkaLog, Log, Offset},
    projector,
};

use super::{
    whole::{Running, numbers},
    world::{Collector, PATIENCE, World, insert_of, number, on_both},
};
use crate::sinks::broker::{committed, local};

on_both!(
    numbers_of_which_six_in_seven_are_left_out_count_neither_as_missing_nor_as_behind,
    more_rollbacks_than_can_be_told_apart_count_neither_as_missing_nor_as_behind,
    late_rows_among_numbers_that_are_left_out_are_read_from_the_table_and_no_others,
);

/// How far the relay is, as retention, lag and verification ask.
struct Asked {
    log: KafkaLog,
    projectors: projector::Handle,
}

impl Asked {
    async fn of(world: &mut World, options: &kafka::Options) -> Self {
        world.sql("DROP TABLE outbox").await;
        let address = MysqlOptions::from_url(&format!("{}/{}", world.address, world.database)).unwrap();
        let db = Db::open_mysql(address).await.unwrap();
        db.migrate(BACKBONE_MIGRATIONS).await.unwrap();
        let log = KafkaLog::new(db.clone(), options.clone()).relayed_by(&world.group);
        let projectors = projector::Runtime::new(db, Log::Kafka(log.clone()), Clock::system()).handle();
        Self { log, projectors }
    }

    async fn is_settled(&self, patience: Duration) -> bool {
        self.projectors.settle(patience).await.unwrap()
    }

    async fn behind(&self) -> i64 {
        self.log.relayed().await.unwrap().behind
    }
}

/// A row is inserted by a transaction that commits when what comes after it is in the log.
async fn late(world: &mut World) -> mysql_async::Conn {
    let mut late = world.another().await;
    late.query_drop("BEGIN").await.unwrap();
    late.query_drop(insert_of(1_000_000, [500_000])).await.unwrap();
    late
}

async fn assert_told(world: &mut World, write: impl AsyncFn(&mut World, u64)) {
    let options = local();
    let asked = Asked::of(world, &options).await;
    let mut relay = Running::start(world, &options).await;
    let mut late = late(world).await;
    write(world, 0).await;
    relay.until_records(400).await;
    assert!(asked.is_settled(PATIENCE).await);
    assert_eq!(asked.behind().await, 0);
    // The number of the late one is not taken for published, so retention leaves it.
    assert_eq!(asked.log.published().await.unwrap(), Some(Offset(0)));
    relay.stop().await;
    late.query_drop("COMMIT").await.unwrap();
    assert!(!asked.is_settled(Duration::from_millis(300)).await);
    write(world, 400).await;
    assert_eq!(asked.behind().await, 400);
    let mut relay = Running::start(world, &options).await;
    relay.until_records(401).await;
    assert!(asked.is_settled(PATIENCE).await);
    assert_eq!(asked.behind().await, 0);
    relay.stop().await;
    let expected: Vec<u64> = (0..800).chain([500_000]).collect();
    assert_eq!(numbers(&committed(&options, &options.topic("test"))), expected);
}

async fn numbers_of_which_six_in_seven_are_left_out_count_neither_as_missing_nor_as_behind(mut world: World) {
    assert_told(&mut world, async |world, from| {
        world.sql("SET SESSION auto_increment_increment = 7, auto_increment_offset = 3").await;
        for number in from..from + 400 {
            world.emit([number]).await;
        }
    })
    .await;
}

async fn more_rollbacks_than_can_be_told_apart_count_neither_as_missing_nor_as_behind(mut world: World) {
    assert_told(&mut world, emit_with_rollbacks).await;
}

/// Commits 400 events with a rollback before each, of another number of rows each time.
async fn emit_with_rollbacks(world: &mut World, from: u64) {
    for number in from..from + 400 {
        world.sql("BEGIN").await;
        world.emit((0..1 + number * number % 11).map(|row| 600_000 + row)).await;
        world.sql("ROLLBACK").await;
        world.emit([number]).await;
    }
}

async fn late_rows_among_numbers_that_are_left_out_are_read_from_the_table_and_no_others(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    world.sql("SET SESSION auto_increment_increment = 7").await;
    for number in 0..50 {
        world.emit([number]).await;
    }
    let mut late = late(&mut world).await;
    for number in 50..300 {
        world.emit([number]).await;
    }
    relay.until(300).await;
    let mut checkpoint = relay.checkpoint.take().unwrap();
    drop(relay);
    late.query_drop("COMMIT").await.unwrap();
    world.emit([300]).await;
    // As a server says it that has purged what comes next: it names a file that is not there.
    checkpoint.position = tidings_backbone::relay::Position { file: "gone.000001".to_owned(), ..Default::default() };
    checkpoint.position.offset = 4;
    let mut relay = Collector::start(world.options(), Some(checkpoint));
    relay.until(2).await;
    world.emit([301]).await;
    while relay.records.last().map(number) != Some(301) {
        relay.step().await;
    }
    assert_eq!(relay.numbers(), [500_000, 300, 301]);
}
