//! Rows are noted as pending, whatever becomes of the trigger that does so.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use tidings_backbone::{
    Db,
    db::MysqlOptions,
    log::{KafkaLog, Offset},
    relay::FirstStart,
};

use super::{Running, left, reasons};
use crate::{
    relay::{
        whole::numbers,
        world::{OUTBOX, World, insert, on_both, within},
    },
    sinks::broker::{committed, local},
};

on_both!(
    a_trigger_that_is_dropped_is_made_anew_and_what_it_missed_comes_once,
    a_copy_that_takes_the_place_of_the_table_is_relayed_from_where_the_table_was,
    a_table_that_is_made_anew_is_relayed_from_its_beginning,
    what_was_committed_before_somebody_made_the_trigger_anew_comes_too,
    without_a_trigger_nothing_counts_as_published,
    a_large_outbox_is_noted_in_pages,
    a_first_start_with_the_latest_leaves_out_what_was_there_and_nothing_else,
    a_row_without_a_key_hinders_nobody_and_is_a_dead_letter,
    a_transaction_that_stays_open_hinders_others_for_a_moment_only,
    a_number_that_is_noted_already_hinders_nobody,
);

const TRIGGER: &str = "outbox_pending_insert";

async fn has_trigger(world: &mut World) -> bool {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = '{}' AND TRIGGER_NAME = '{TRIGGER}' \
         AND EVENT_OBJECT_TABLE = 'outbox'",
        world.database
    );
    world.conn.query_first::<u64, _>(sql).await.unwrap() == Some(1)
}

async fn a_trigger_that_is_dropped_is_made_anew_and_what_it_missed_comes_once(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..50).await;
    relay.until(50).await;
    for start in [50, 100, 150] {
        // Some of these are published before the trigger is gone and after the last look at it.
        world.emit(start..start + 20).await;
        world.sql(format!("DROP TRIGGER {TRIGGER}")).await;
        world.emit(start + 20..start + 50).await;
        within(async { while !has_trigger(&mut world).await {} }).await;
        // Once more at once: whoever makes it may not have seen it yet.
        world.sql(format!("DROP TRIGGER {TRIGGER}")).await;
        within(async { while !has_trigger(&mut world).await {} }).await;
    }
    world.emit(200..210).await;
    relay.until(210).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..210).collect::<Vec<_>>());
}

async fn a_copy_that_takes_the_place_of_the_table_is_relayed_from_where_the_table_was(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..50).await;
    relay.until(50).await;
    world.sql("CREATE TABLE outbox_copy LIKE outbox").await;
    world.sql("INSERT INTO outbox_copy SELECT * FROM outbox").await;
    world.sql("RENAME TABLE outbox TO outbox_old, outbox_copy TO outbox").await;
    world.emit(50..60).await;
    relay.until(60).await;
    assert!(has_trigger(&mut world).await);
    world.emit(60..70).await;
    relay.until(70).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..70).collect::<Vec<_>>());
}

async fn a_table_that_is_made_anew_is_relayed_from_its_beginning(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..50).await;
    relay.until(50).await;
    relay.stop().await;
    world.sql("DROP TABLE outbox").await;
    world.sql(OUTBOX).await;
    // Numbers that the checkpoint names as sent are other rows now.
    world.emit(50..80).await;
    let mut relay = Running::start(&world, &log);
    relay.until(30).await;
    world.emit(80..150).await;
    relay.until(100).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..150).collect::<Vec<_>>());
}

async fn what_was_committed_before_somebody_made_the_trigger_anew_comes_too(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..50).await;
    relay.until(50).await;
    relay.stop().await;
    let made = format!("SHOW CREATE TRIGGER {TRIGGER}");
    let made: mysql_async::Row = world.conn.query_first(made).await.unwrap().unwrap();
    let made: String = made.get(2).unwrap();
    world.sql(format!("DROP TRIGGER {TRIGGER}")).await;
    world.emit(50..60).await;
    world.sql(made).await;
    world.emit(60..70).await;
    let mut relay = Running::start(&world, &log);
    relay.until(20).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..70).collect::<Vec<_>>());
}

async fn without_a_trigger_nothing_counts_as_published(mut world: World) {
    let options = local();
    let address = MysqlOptions::from_url(&format!("{}/{}", world.address, world.database)).unwrap();
    let db = Db::open_mysql(address).await.unwrap();
    let log = KafkaLog::new(db, options.clone()).polled();
    let mut relay = Running::start(&world, &options);
    world.emit(0..20).await;
    relay.until(20).await;
    let noted = "SELECT seq FROM outbox_pending WHERE shard = 65535";
    within(async { while world.conn.query_first::<u64, _>(noted).await.unwrap() != Some(20) {} }).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    world.sql(format!("DROP TRIGGER {TRIGGER}")).await;
    world.emit(20..25).await;
    let relayed = log.relayed().await.unwrap();
    assert_eq!((relayed.published, relayed.behind), (Offset(20), 5));
    assert!(relayed.oldest.is_some());
    assert_eq!(log.published().await.unwrap(), Some(Offset(20)));
    world.sql("DROP TABLE outbox").await;
    world.sql(OUTBOX).await;
    world.emit(25..28).await;
    assert_eq!(log.relayed().await.unwrap().behind, 3);
    assert_eq!(log.published().await.unwrap(), Some(Offset(0)));
}

async fn a_large_outbox_is_noted_in_pages(mut world: World) {
    let log = local();
    for start in (0..25_000).step_by(2_500) {
        world.emit(start..start + 2_500).await;
    }
    let mut pollers: Vec<Running> = (0..2).map(|_| Running::start(&world, &log)).collect();
    world.emit(25_000..25_010).await;
    within(async { while numbers(&committed(&log, &log.topic("test"))).len() < 25_010 {} }).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    for poller in pollers.drain(..) {
        poller.stop().await;
    }
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..25_010).collect::<Vec<_>>());
}

async fn a_first_start_with_the_latest_leaves_out_what_was_there_and_nothing_else(mut world: World) {
    let log = local();
    world.emit(0..10).await;
    let mut options = world.options();
    options.first_start = FirstStart::Latest;
    let relay = Running::with(options.clone(), &log);
    within(async { while !has_trigger(&mut world).await {} }).await;
    world.emit(10..20).await;
    let mut relay = relay;
    relay.until(10).await;
    relay.stop().await;
    world.emit(20..25).await;
    let mut relay = Running::with(options, &log);
    relay.until(5).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (10..25).collect::<Vec<_>>());
}

async fn a_row_without_a_key_hinders_nobody_and_is_a_dead_letter(mut world: World) {
    let log = local();
    world.sql("ALTER TABLE outbox MODIFY event_key VARCHAR(255) NULL").await;
    world.sql(insert([0]).replace("'k0'", "NULL")).await;
    let mut relay = Running::start(&world, &log);
    relay.until(1).await;
    world.sql(insert([1]).replace("'k1'", "NULL")).await;
    world.emit(2..20).await;
    relay.until(20).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (2..20).collect::<Vec<_>>());
    let reasons = reasons(&log);
    assert_eq!(reasons.len(), 2);
    assert!(reasons.iter().all(|(_, reason)| reason.contains("partitionkey")), "{reasons:?}");
}

async fn a_number_that_is_noted_already_hinders_nobody(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..5).await;
    relay.until(5).await;
    relay.stop().await;
    // As a row of an older table left it.
    world.sql("INSERT INTO outbox_pending (shard, seq) VALUES (CRC32('k5') % 16, 6)").await;
    world.emit(5..10).await;
    let mut relay = Running::start(&world, &log);
    relay.until(5).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..10).collect::<Vec<_>>());
}

async fn a_transaction_that_stays_open_hinders_others_for_a_moment_only(mut world: World) {
    let log = local();
    let mut open = world.another().await;
    open.query_drop("BEGIN").await.unwrap();
    open.query_drop(insert([0])).await.unwrap();
    let mut relay = Running::start(&world, &log);
    within(relay.handle.wait_for(|status| status.state == super::State::BackingOff)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), world.emit(1..10)).await.unwrap();
    open.query_drop("COMMIT").await.unwrap();
    relay.until(10).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..10).collect::<Vec<_>>());
}
