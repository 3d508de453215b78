//! Transactions of every sort: what commits comes, what does not commit does not.

use std::{collections::HashMap, sync::Arc};

use mysql_async::prelude::Queryable;
use tidings_backbone::relay::{Checkpoint, OutboxTable, Position};

use super::world::{Collector, World, insert, on_both};

on_both!(
    a_prepared_transaction_comes_when_it_commits_and_never_if_it_is_rolled_back,
    a_prepared_transaction_outlives_a_restart_of_the_relay,
    a_transaction_prepared_before_the_first_start_comes_when_it_commits,
    a_first_start_in_the_midst_of_prepared_transactions_misses_none,
    statements_in_the_place_of_rows_are_noticed_and_their_rows_read_from_the_table,
    rows_that_a_savepoint_takes_back_do_not_come,
    a_crash_after_every_row_of_a_transaction_over_two_tables_loses_and_doubles_nothing,
    the_position_moves_beside_a_busy_database_while_the_outbox_is_quiet,
    positions_name_the_file_and_the_transactions_as_the_server_does,
    updates_and_deletes_of_outbox_rows_come_as_such_and_do_no_harm;
    mariadb: the_position_knows_all_domains_of_mariadb_so_none_is_given_anew,
);

async fn a_prepared_transaction_comes_when_it_commits_and_never_if_it_is_rolled_back(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    for (name, numbers, verdict) in [("a", 10..15, "COMMIT"), ("b", 20..25, "ROLLBACK"), ("c", 30..35, "COMMIT")] {
        let between = 200 + numbers.start;
        let name = format!("'{name}-{}'", u8::from(world.is_mariadb));
        world.sql(format!("XA START {name}")).await;
        world.emit(numbers).await;
        world.sql(format!("XA END {name}")).await;
        world.sql(format!("XA PREPARE {name}")).await;
        // What commits while it is prepared does not wait for it. A session of its own, as MySQL demands.
        world.another().await.query_drop(insert([between])).await.unwrap();
        while !relay.numbers().contains(&between) {
            relay.step().await;
        }
        world.sql(format!("XA {verdict} {name}")).await;
    }
    world.emit([99]).await;
    relay.until(14).await;
    assert_eq!(relay.numbers(), [210, 10, 11, 12, 13, 14, 220, 230, 30, 31, 32, 33, 34, 99]);
}

async fn a_prepared_transaction_outlives_a_restart_of_the_relay(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let name = "'outlives a restart'";
    world.sql(format!("XA START {name}")).await;
    for start in (0..600).step_by(100) {
        world.emit(start..start + 100).await;
    }
    world.sql(format!("XA END {name}")).await;
    world.sql(format!("XA PREPARE {name}")).await;
    relay.until_checkpoint(has_prepared).await;
    let mut options = world.options();
    options.batch_records_max = 50;
    let checkpoint = relay.checkpoint.clone();
    drop(relay);
    let mut relay = Collector::start(options, checkpoint);
    world.sql(format!("XA COMMIT {name}")).await;
    let mut numbers = Vec::new();
    while numbers.len() < 600 {
        relay.step().await;
        numbers.extend(relay.numbers());
        relay = relay.restarted();
    }
    relay.until_checkpoint(|checkpoint| !has_prepared(checkpoint)).await;
    numbers.extend(relay.numbers());
    assert_eq!(numbers, (0..600).collect::<Vec<_>>());
}

/// Whether a prepared transaction waits that came in the stream. Other tests may have prepared some before.
fn has_prepared(checkpoint: &Checkpoint) -> bool {
    checkpoint.prepared.iter().any(|prepared| !prepared.gtid.is_empty())
}

async fn a_transaction_prepared_before_the_first_start_comes_when_it_commits(mut world: World) {
    let name = "'before the first start'";
    world.sql(format!("XA START {name}")).await;
    world.emit(0..5).await;
    world.sql(format!("XA END {name}")).await;
    world.sql(format!("XA PREPARE {name}")).await;
    world.another().await.query_drop(insert(5..8)).await.unwrap();
    let mut relay = world.collect(None);
    relay.until(3).await;
    world.sql(format!("XA COMMIT {name}")).await;
    relay.until(8).await;
    assert_eq!(relay.numbers(), [5, 6, 7, 0, 1, 2, 3, 4]);
    world.emit([8]).await;
    relay.until(9).await;
    assert_eq!(relay.numbers()[8..], [8]);
}

async fn a_first_start_in_the_midst_of_prepared_transactions_misses_none(mut world: World) {
    // Each costs a relay a reading of its own, so the writer must not be far ahead of them.
    let turns = Arc::new(tokio::sync::Semaphore::new(0));
    let writing = tokio::spawn({
        let (mut conn, turns, which) = (world.another().await, turns.clone(), u8::from(world.is_mariadb));
        async move {
            let mut next = 0;
            while let Ok(turn) = turns.acquire().await {
                turn.forget();
                let name = format!("'in the midst {which}'");
                for sql in [
                    format!("XA START {name}"),
                    insert([next]),
                    format!("XA END {name}"),
                    format!("XA PREPARE {name}"),
                    format!("XA COMMIT {name}"),
                ] {
                    conn.query_drop(sql).await.unwrap();
                }
                next += 1;
            }
            next
        }
    });
    let mut relays = Vec::new();
    for group in 0..5 {
        let mut options = world.options();
        options.group = format!("{} {group}", world.group);
        turns.add_permits(10);
        let mut relay = Collector::start(options, None);
        relay.until(3 * (group + 1)).await;
        relays.push(relay);
    }
    turns.close();
    let count = writing.await.unwrap();
    world.emit([1_000_000]).await;
    for mut relay in relays {
        relay.until(count as usize + 1).await;
        let mut numbers = relay.numbers();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..count).chain([1_000_000]).collect::<Vec<_>>());
    }
}

async fn statements_in_the_place_of_rows_are_noticed_and_their_rows_read_from_the_table(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    world.emit([0]).await;
    let mut stranger = world.another().await;
    for sql in ["SET SESSION binlog_format = 'STATEMENT'", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"] {
        stranger.query_drop(sql).await.unwrap();
    }
    stranger.query_drop(insert(1..4)).await.unwrap();
    world.emit([4]).await;
    stranger.query_drop("BEGIN").await.unwrap();
    stranger.query_drop(insert(50..60)).await.unwrap();
    stranger.query_drop("ROLLBACK").await.unwrap();
    world.emit([5]).await;
    stranger.query_drop("BEGIN").await.unwrap();
    stranger.query_drop(insert(6..8)).await.unwrap();
    stranger.query_drop("COMMIT").await.unwrap();
    world.emit([8]).await;
    relay.until(9).await;
    world.emit([9]).await;
    relay.until(10).await;
    let mut numbers = relay.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
}

async fn rows_that_a_savepoint_takes_back_do_not_come(mut world: World) {
    // A table without transactions makes MariaDB write down what was taken back. MySQL forbids it.
    let engine = if world.is_mariadb { "MyISAM" } else { "InnoDB" };
    world.sql(format!("CREATE TABLE untransactional (a INT) ENGINE = {engine}")).await;
    let mut relay = world.collect(None);
    relay.started().await;
    for sql in [
        "BEGIN".to_owned(),
        insert(0..2),
        "SAVEPOINT first".to_owned(),
        insert(10..12),
        "INSERT INTO untransactional VALUES (1)".to_owned(),
        "SAVEPOINT second".to_owned(),
        insert(20..22),
        "ROLLBACK TO second".to_owned(),
        insert(30..32),
        "ROLLBACK TO first".to_owned(),
        insert(2..4),
        "COMMIT".to_owned(),
        "BEGIN".to_owned(),
        insert(40..42),
        "INSERT INTO untransactional VALUES (2)".to_owned(),
    ] {
        world.sql(sql).await;
    }
    // The server warns that the other table keeps its row.
    world.sql("ROLLBACK").await;
    world.emit([4]).await;
    relay.until(5).await;
    assert_eq!(relay.numbers(), [0, 1, 2, 3, 4]);
}

async fn a_crash_after_every_row_of_a_transaction_over_two_tables_loses_and_doubles_nothing(mut world: World) {
    world.sql(super::world::OUTBOX.replacen("outbox", "outbox_two", 1)).await;
    let mut options = world.options();
    options.batch_records_max = 1;
    options.tables.push(OutboxTable { name: "outbox_two".to_owned(), ..OutboxTable::default() });
    let mut relay = Collector::start(options.clone(), None);
    relay.started().await;
    for start in [0, 6] {
        world.sql("BEGIN").await;
        for number in start..start + 3 {
            world.emit([number]).await;
            world.sql(insert([number + 100]).replacen("outbox", "outbox_two", 1)).await;
        }
        world.sql("COMMIT").await;
        world.sql("CREATE OR REPLACE VIEW a_statement_of_its_own AS SELECT 1").await;
    }
    let mut numbers = Vec::new();
    while numbers.len() < 12 {
        relay.step().await;
        numbers.extend(relay.numbers());
        relay = relay.restarted();
    }
    assert_eq!(numbers, [0, 100, 1, 101, 2, 102, 6, 106, 7, 107, 8, 108]);
}

async fn the_position_moves_beside_a_busy_database_while_the_outbox_is_quiet(mut world: World) {
    world.sql("CREATE TABLE other (a INT)").await;
    let mut relay = world.collect(None);
    relay.started().await;
    let before = relay.checkpoint.clone().unwrap().position;
    let busy = tokio::spawn({
        let mut conn = world.another().await;
        async move {
            loop {
                conn.query_drop("INSERT INTO other VALUES (1)").await.unwrap();
            }
        }
    });
    relay.until_checkpoint(|checkpoint| checkpoint.position != before).await;
    busy.abort();
    assert!(relay.records.is_empty());
}

async fn positions_name_the_file_and_the_transactions_as_the_server_does(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    world.emit([0]).await;
    relay.until(1).await;
    let Position { gtid, file, offset } = relay.checkpoint.clone().unwrap().position;
    // Other tests write to the same server, so the end of its binlog is not the end of this transaction.
    let files: Vec<String> =
        world.conn.query_map("SHOW BINARY LOGS", |row: mysql_async::Row| row.get(0).unwrap()).await.unwrap();
    assert!(files.contains(&file), "{file:?}");
    assert!(offset > 4);
    let variable = if world.is_mariadb { "gtid_binlog_pos" } else { "gtid_executed" };
    let executed: String = world.conn.query_first(format!("SELECT @@{variable}")).await.unwrap().unwrap();
    let is_known = match world.is_mariadb {
        true => domains(&gtid).iter().all(|(domain, sequence)| domains(&executed)[domain] >= *sequence),
        false => {
            let is_subset = format!("SELECT GTID_SUBSET('{gtid}', @@gtid_executed)");
            world.conn.query_first::<u64, _>(is_subset).await.unwrap() == Some(1)
        }
    };
    assert!(is_known, "{gtid} is not in {executed}");
}

/// The last number of each domain of MariaDB.
fn domains(gtids: &str) -> HashMap<&str, u64> {
    gtids
        .split(',')
        .map(|gtid| (gtid.split('-').next().unwrap(), gtid.rsplit('-').next().unwrap().parse().unwrap()))
        .collect()
}

async fn updates_and_deletes_of_outbox_rows_come_as_such_and_do_no_harm(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    world.emit(0..3).await;
    relay.until(3).await;
    world.sql("UPDATE outbox SET metadata = '{\"a\": \"b\"}' WHERE aggregate_id = '1'").await;
    world.sql("DELETE FROM outbox").await;
    world.emit([3]).await;
    relay.until_checkpoint(|checkpoint| checkpoint.tables[0].seen.max == 4).await;
    assert_eq!(super::world::number(relay.records.last().unwrap()), 3);
}

async fn the_position_knows_all_domains_of_mariadb_so_none_is_given_anew(mut world: World) {
    world.sql("SET SESSION gtid_domain_id = 5").await;
    world.emit(0..3).await;
    let mut relay = world.collect(None);
    relay.until(3).await;
    for (domain, start) in [(0, 3), (5, 6), (7, 9), (0, 12)] {
        relay = relay.restarted();
        world.sql(format!("SET SESSION gtid_domain_id = {domain}")).await;
        world.emit(start..start + 3).await;
        relay.until(3).await;
        assert_eq!(relay.numbers(), [start, start + 1, start + 2]);
    }
    let position = relay.checkpoint.clone().unwrap().position;
    for domain in ["0-", "5-", "7-"] {
        assert!(position.gtid.split(',').any(|gtid| gtid.starts_with(domain)), "{position}");
    }
}
