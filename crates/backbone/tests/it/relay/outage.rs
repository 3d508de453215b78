//! Servers that go away, freeze, and lose their binlog.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use tidings_backbone::relay::Checkpoint;

use super::{
    servers::{Own, on_own_of_both},
    world::{Collector, World, insert, within},
};
use crate::said::Said;

on_own_of_both!(
    a_server_that_is_stopped_killed_and_frozen_under_load_costs_nothing_but_time,
    a_connection_that_is_cut_again_and_again_costs_nothing,
    a_purged_binlog_is_made_up_for_from_the_table,
    a_late_lower_number_is_made_up_for_too,
    without_gtids_in_the_checkpoint_file_and_offset_do,
    without_metadata_columns_are_found_by_what_the_database_says,
    compressed_transactions_are_decoded,
    a_compressed_transaction_that_is_too_large_is_read_from_the_table,
    one_stream_of_a_group_evicts_the_other,
    settings_that_cannot_work_are_listed_all_at_once;
    mariadb: a_transaction_that_is_in_the_binlog_and_not_to_be_seen_is_not_passed_over;
    mysql: a_mysql_without_gtids_is_read_by_file_and_offset,
);

/// Commits events one by one, over every failure of the server, until told to stop. An event whose commit
/// was not answered may be there or not; whatever the database holds in the end is what counts.
pub(crate) struct Writer {
    stop: tokio_util::sync::CancellationToken,
    task: tokio::task::JoinHandle<u64>,
}

impl Writer {
    pub(crate) fn start(world: &World, from: u64) -> Self {
        let stop = tokio_util::sync::CancellationToken::new();
        let (address, database, stopped) = (world.address.clone(), world.database.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let mut next = from;
            while !stopped.is_cancelled() {
                let opts = mysql_async::OptsBuilder::from_opts(mysql_async::Opts::from_url(&address).unwrap())
                    .db_name(Some(database.clone()))
                    .prefer_socket(false);
                let connecting = tokio::time::timeout(Duration::from_secs(1), mysql_async::Conn::new(opts));
                let Ok(Ok(mut conn)) = connecting.await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                while !stopped.is_cancelled() {
                    let writing = conn.query_drop(insert([next]));
                    next += 1;
                    if !matches!(tokio::time::timeout(Duration::from_secs(1), writing).await, Ok(Ok(()))) {
                        break;
                    }
                }
            }
            next
        });
        Self { stop, task }
    }

    pub(crate) async fn stop(self) -> u64 {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

/// Takes batches until the relay has what the table has.
async fn assert_all_once(own: &mut Own, mut seen: Vec<u64>, relay: &mut Collector) {
    // What comes behind it is sure to be the last.
    own.world.emit([1_000_000_000]).await;
    while relay.numbers().last() != Some(&1_000_000_000) {
        relay.step().await;
    }
    seen.extend(relay.numbers());
    let mut stored: Vec<u64> = own.world.conn.query("SELECT CAST(aggregate_id AS UNSIGNED) FROM outbox").await.unwrap();
    stored.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, stored);
}

async fn a_server_that_is_stopped_killed_and_frozen_under_load_costs_nothing_but_time(mut own: Own) {
    let mut relay = own.world.collect(None);
    relay.started().await;
    let writer = Writer::start(&own.world, 0);
    relay.until(50).await;
    own.restart().await;
    relay.until(relay.records.len() + 50).await;
    own.crash().await;
    relay.until(relay.records.len() + 50).await;
    own.pause().await;
    // No sleep would show it, but the stream is given up: only then a connection is made anew.
    relay.gone().await;
    own.resume().await;
    own.reconnect().await;
    relay.until(relay.records.len() + 50).await;
    writer.stop().await;
    assert_all_once(&mut own, Vec::new(), &mut relay).await;
}

async fn a_connection_that_is_cut_again_and_again_costs_nothing(mut own: Own) {
    let mut relay = own.world.collect(None);
    relay.started().await;
    let writer = Writer::start(&own.world, 0);
    for _ in 0..20 {
        let dumps: Vec<u64> = own
            .world
            .conn
            .query("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
            .await
            .unwrap();
        for dump in dumps {
            // It may be gone by itself.
            drop(own.world.conn.query_drop(format!("KILL {dump}")).await);
        }
        relay.until(relay.records.len() + 5).await;
    }
    writer.stop().await;
    assert_all_once(&mut own, Vec::new(), &mut relay).await;
}

/// Removes all of the binlog that is not being written. A file that somebody still reads stays at first.
async fn purge(world: &mut World) {
    world.sql("FLUSH BINARY LOGS").await;
    within(async {
        loop {
            let files: Vec<String> =
                world.conn.query_map("SHOW BINARY LOGS", |row: mysql_async::Row| row.get(0).unwrap()).await.unwrap();
            if files.len() == 1 {
                return;
            }
            world.sql(format!("PURGE BINARY LOGS TO '{}'", files.last().unwrap())).await;
        }
    })
    .await;
}

async fn a_purged_binlog_is_made_up_for_from_the_table(mut own: Own) {
    let mut relay = own.world.collect(None);
    relay.started().await;
    own.world.emit(0..5).await;
    relay.until(5).await;
    let (checkpoint, mut seen) = (relay.checkpoint.clone(), relay.numbers());
    drop(relay);
    for start in (5..3_005).step_by(100) {
        own.world.emit(start..start + 100).await;
    }
    purge(&mut own.world).await;
    own.world.emit(3_005..3_010).await;
    let mut options = own.world.options();
    options.batch_records_max = 500;
    let said = Said::by(&own.world.group);
    let mut relay = Collector::start(options.clone(), checkpoint);
    relay.until_told("reading the outbox tables: the source does not give its binlog from").await;
    let writer = Writer::start(&own.world, 3_010);
    // A crash after each of some batches: the reading of the table is taken up where it was.
    for _ in 0..4 {
        relay.step().await;
        seen.extend(relay.numbers());
        relay = relay.restarted();
    }
    relay.until_checkpoint(|checkpoint| checkpoint.recovery.is_none()).await;
    writer.stop().await;
    assert_all_once(&mut own, seen, &mut relay).await;
    // Loudly, and once: what goes on after a restart is the same reading.
    let errors: Vec<_> = said.lines().into_iter().filter(|line| line.is_error).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].text, "what the binlog does not give any more is read from the outbox");
    assert!(errors[0].reason.contains("what comes next was purged"), "{errors:?}");
}

async fn a_late_lower_number_is_made_up_for_too(mut own: Own) {
    let mut relay = own.world.collect(None);
    relay.started().await;
    let mut late = own.world.another().await;
    late.query_drop("BEGIN").await.unwrap();
    late.query_drop(insert([0])).await.unwrap();
    own.world.emit(1..4).await;
    relay.until(3).await;
    let (checkpoint, seen) = (relay.checkpoint.clone(), relay.numbers());
    drop(relay);
    late.query_drop("COMMIT").await.unwrap();
    own.world.emit([4]).await;
    purge(&mut own.world).await;
    let mut relay = own.world.collect(checkpoint);
    relay.until(2).await;
    assert_eq!(relay.numbers(), [0, 4]);
    assert_all_once(&mut own, seen, &mut relay).await;
}

async fn without_gtids_in_the_checkpoint_file_and_offset_do(mut own: Own) {
    let mut relay = own.world.collect(None);
    relay.started().await;
    own.world.emit(0..5).await;
    relay.until(5).await;
    let mut seen = relay.numbers();
    for start in [5, 10, 15] {
        let mut checkpoint: Checkpoint = relay.checkpoint.clone().unwrap();
        checkpoint.position.gtid.clear();
        own.world.emit(start..start + 3).await;
        own.world.sql("FLUSH BINARY LOGS").await;
        own.world.emit(start + 3..start + 5).await;
        relay = own.world.collect(Some(checkpoint));
        relay.until(5).await;
        seen.extend(relay.numbers());
    }
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
    let checkpoint = relay.checkpoint.take();
    relay = own.world.collect(checkpoint);
    assert_all_once(&mut own, seen, &mut relay).await;
}

async fn without_metadata_columns_are_found_by_what_the_database_says(mut own: Own) {
    let least = if own.world.is_mariadb { "NO_LOG" } else { "MINIMAL" };
    own.world.sql(format!("SET GLOBAL binlog_row_metadata = '{least}'")).await;
    own.world.sql("ALTER TABLE outbox MODIFY seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT").await;
    let mut relay = own.world.collect(None);
    relay.started().await;
    own.world.emit(0..3).await;
    relay.until(3).await;
    // Columns of a type that the outbox has not elsewhere: there is one way to find the others again.
    own.world.emit(3..5).await;
    own.world.sql("ALTER TABLE outbox ADD COLUMN shard SMALLINT NULL FIRST").await;
    own.world.emit(5..7).await;
    own.world.sql("ALTER TABLE outbox DROP COLUMN shard").await;
    own.world.emit(7..9).await;
    // The whole of it is read again, by the definition that is in force now.
    relay.until(9).await;
    assert_eq!(relay.numbers(), (0..9).collect::<Vec<_>>());
    assert!(relay.records.iter().all(|record| record.order_key.starts_with('k')));
    own.world.sql("SET SESSION sql_mode = ''").await;
    own.world
        .sql(insert([9]).replacen("INTO outbox (", "INTO outbox (seq, ", 1).replacen(
            "VALUES (",
            "VALUES (9223372036854775900, ",
            1,
        ))
        .await;
    relay.until(10).await;
    assert_eq!(relay.checkpoint.as_ref().unwrap().tables[0].seen.max, 9_223_372_036_854_775_900);
    own.world.sql("SET GLOBAL binlog_row_metadata = 'FULL'").await;
}

async fn compressed_transactions_are_decoded(mut own: Own) {
    let mut relay = own.world.collect(None);
    relay.started().await;
    match own.world.is_mariadb {
        true => own.world.sql("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10").await,
        false => own.world.sql("SET SESSION binlog_transaction_compression = ON").await,
    }
    for start in (0..2_000).step_by(500) {
        own.world.emit(start..start + 500).await;
    }
    own.world.sql("CREATE TABLE of_a_compressed_statement (a INT)").await;
    own.world.emit(2_000..2_005).await;
    if own.world.is_mariadb {
        own.world.sql("SET GLOBAL log_bin_compress = OFF").await;
    }
    let mut options = own.world.options();
    options.batch_records_max = 300;
    let checkpoint = relay.checkpoint.clone();
    drop(relay);
    let mut relay = Collector::start(options, checkpoint);
    relay.until(2_005).await;
    assert_eq!(relay.numbers(), (0..2_005).collect::<Vec<_>>());
}

async fn a_compressed_transaction_that_is_too_large_is_read_from_the_table(mut own: Own) {
    let mut options = own.world.options();
    options.payload_bytes_max = 20_000;
    let mut relay = Collector::start(options, None);
    relay.started().await;
    match own.world.is_mariadb {
        true => own.world.sql("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10").await,
        false => own.world.sql("SET SESSION binlog_transaction_compression = ON").await,
    }
    own.world.emit(0..5).await;
    own.world.sql("BEGIN").await;
    own.world.emit(5..7).await;
    // Beside a row of which each event is too large for MariaDB, and the whole for MySQL.
    own.world.sql(insert([7]).replace("{\"n\":7}", &format!("{{\"n\":7,\"x\":\"{}\"}}", "x".repeat(30_000)))).await;
    own.world.emit(8..10).await;
    own.world.sql("COMMIT").await;
    own.world.emit(10..15).await;
    if own.world.is_mariadb {
        own.world.sql("SET GLOBAL log_bin_compress = OFF").await;
    }
    relay.until(15).await;
    assert_all_once(&mut own, Vec::new(), &mut relay).await;
}

/// The server waits for a replica that never answers, between writing a transaction to its binlog and showing it.
async fn a_transaction_that_is_in_the_binlog_and_not_to_be_seen_is_not_passed_over(mut own: Own) {
    own.world.emit([0]).await;
    let semi_sync = "rpl_semi_sync_master";
    for setting in ["wait_point = AFTER_SYNC", "timeout = 20000", "enabled = ON"] {
        own.world.sql(format!("SET GLOBAL {semi_sync}_{setting}")).await;
    }
    let position = "SELECT @@gtid_binlog_pos";
    let before: Option<String> = own.world.conn.query_first(position).await.unwrap();
    let mut stalled = own.world.another().await;
    let stalling = tokio::spawn(async move { stalled.query_drop(insert([1])).await });
    while own.world.conn.query_first::<String, _>(position).await.unwrap() == before {}
    let seen: Option<u64> = own.world.conn.query_first("SELECT COUNT(*) FROM outbox").await.unwrap();
    assert_eq!(seen, Some(1));
    let mut relay = own.world.collect(None);
    relay.until(2).await;
    assert_eq!(relay.numbers(), [0, 1]);
    own.world.sql(format!("SET GLOBAL {semi_sync}_enabled = OFF")).await;
    stalling.await.unwrap().unwrap();
    assert_all_once(&mut own, Vec::new(), &mut relay).await;
}

async fn one_stream_of_a_group_evicts_the_other(mut own: Own) {
    let mut first = own.world.collect(None);
    first.started().await;
    own.world.emit([0]).await;
    first.until(1).await;
    let mut second = own.world.collect(first.checkpoint.clone());
    let dumps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
    // Whichever was the last to come has evicted the other: that one says so.
    within(async {
        tokio::select! {
            () = first.gone() => {}
            () = second.gone() => {}
        }
    })
    .await;
    for _ in 0..20 {
        let count: Option<u64> = own.world.conn.query_first(dumps).await.unwrap();
        assert!(count <= Some(1), "{count:?}");
    }
    drop(first);
    own.world.emit([1]).await;
    second.until(1).await;
}

async fn settings_that_cannot_work_are_listed_all_at_once(mut own: Own) {
    own.world.sql("SET GLOBAL binlog_format = 'MIXED'").await;
    let stranger = format!("stranger_{}", if own.world.is_mariadb { "a" } else { "b" });
    own.world.sql(format!("DROP USER IF EXISTS {stranger}@'127.0.0.1'")).await;
    own.world.sql(format!("CREATE USER {stranger}@'127.0.0.1' IDENTIFIED BY 'x'")).await;
    let grant = format!("GRANT INSERT ON {}.* TO {stranger}@'127.0.0.1'", own.world.database);
    own.world.sql(grant).await;
    let (_, place) = own.world.address.rsplit_once('@').unwrap();
    let mut options = own.world.options();
    options.source = format!("mysql://{stranger}:x@{place}/{}", own.world.database);
    options.tables.push(tidings_backbone::relay::OutboxTable { name: "absent".to_owned(), ..Default::default() });
    let error = Collector::start(options, None).try_step().await.unwrap_err().to_string();
    for wanted in ["binlog_format", "REPLICATION SLAVE", "GRANT SELECT"] {
        assert!(error.contains(wanted), "{wanted} is not in: {error}");
    }
    let monitor = if own.world.is_mariadb { "BINLOG MONITOR" } else { "REPLICATION CLIENT" };
    assert!(error.contains(monitor), "{error}");
    own.world.sql("SET GLOBAL binlog_format = 'ROW'").await;
}

async fn a_mysql_without_gtids_is_read_by_file_and_offset(mut own: Own) {
    for mode in ["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"] {
        own.world.sql(format!("SET GLOBAL gtid_mode = {mode}")).await;
    }
    let mut options = own.world.options();
    options.batch_records_max = 40;
    let mut relay = Collector::start(options, None);
    relay.started().await;
    let mut seen = Vec::new();
    // The second is too large for a batch, and there is no GTID to find it again by.
    for (start, end) in [(0, 20), (20, 1_020), (1_020, 1_030)] {
        own.world.sql("BEGIN").await;
        for number in (start..end).step_by(10) {
            own.world.emit(number..number + 10).await;
        }
        own.world.sql("COMMIT").await;
    }
    while seen.len() < 1_030 {
        relay.step().await;
        seen.extend(relay.numbers());
        relay = relay.restarted();
    }
    assert_eq!(seen, (0..1_030).collect::<Vec<_>>());
    assert!(!relay.checkpoint.unwrap().position.file.is_empty());
    for mode in ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"] {
        own.world.sql(format!("SET GLOBAL gtid_mode = {mode}")).await;
    }
}
