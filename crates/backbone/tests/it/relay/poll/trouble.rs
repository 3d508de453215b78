//! Rows that cannot be published, a log that is away, and pollers that freeze.

use mysql_async::prelude::Queryable;
use tidings_backbone::relay::State;

use super::{Running, left, reasons};
use crate::{
    relay::{
        outage::Writer,
        quiet,
        servers::{self, Own, on_own_of_both},
        tables::emit_beside_strange_tables,
        whole::numbers,
        wire::Wire,
        world::{World, insert, insert_of, on_both, within},
    },
    said::Said,
    sinks::broker::{committed, local, options},
};

on_both!(
    an_oversized_row_is_a_dead_letter_with_its_reason_and_other_keys_flow,
    a_column_that_is_missing_makes_dead_letters_that_say_so,
    a_column_that_is_dropped_while_events_flow_costs_nothing,
    a_poller_that_was_frozen_for_longer_than_its_locks_loses_and_doubles_nothing,
    while_kafka_is_away_with_a_hundred_keys_busy_nothing_moves_and_nothing_is_lost,
    connections_that_are_cut_again_and_again_cost_nothing,
    tables_of_strange_types_have_no_effect,
);
on_own_of_both!(a_server_whose_binlog_holds_statements_is_polled);

async fn an_oversized_row_is_a_dead_letter_with_its_reason_and_other_keys_flow(mut world: World) {
    let log = local();
    let large = format!("{{\"n\":9,\"x\":\"{}\"}}", "x".repeat(3_000_000));
    world.sql(insert([9]).replace("{\"n\":9}", &large)).await;
    world.emit(10..21).await;
    let mut relay = Running::start(&world, &log);
    relay.until(12).await;
    relay.stop().await;
    let expected = (10..21).filter(|number| number % 7 != 2);
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), expected.collect::<Vec<_>>());
    let reasons = reasons(&log);
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].0 == 9 && reasons[0].1.contains("bytes"), "{reasons:?}");
    assert!(reasons[1].0 == 16 && reasons[1].1.contains("earlier row"), "{reasons:?}");
}

async fn a_column_that_is_missing_makes_dead_letters_that_say_so(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    world.emit(0..7).await;
    relay.until(7).await;
    world.sql("ALTER TABLE outbox DROP COLUMN event_type").await;
    let without = |number| insert([number]).replace("event_type, ", "").replace("'test.happened', ", "");
    world.sql(without(7)).await;
    relay.until(8).await;
    world.sql(without(14)).await;
    relay.until(9).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..7).collect::<Vec<_>>());
    let reasons = reasons(&log);
    assert!(reasons[0].0 == 7 && reasons[0].1.contains("type"), "{reasons:?}");
    assert!(reasons[1].0 == 14 && reasons[1].1.contains("earlier row"), "{reasons:?}");
}

async fn a_column_that_is_dropped_while_events_flow_costs_nothing(mut world: World) {
    let log = local();
    world.sql("ALTER TABLE outbox ADD COLUMN note INT NULL FIRST, ADD COLUMN more TEXT NULL AFTER event_key").await;
    let mut relay = Running::start(&world, &log);
    let mut next = 0;
    for column in ["note", "more"] {
        for _ in 0..10 {
            world.emit(next..next + 10).await;
            next += 10;
        }
        world.sql(format!("ALTER TABLE outbox DROP COLUMN {column}")).await;
        world.emit(next..next + 10).await;
        next += 10;
    }
    relay.until(next).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..next).collect::<Vec<_>>());
}

async fn a_poller_that_was_frozen_for_longer_than_its_locks_loses_and_doubles_nothing(mut world: World) {
    let log = local();
    let wire = Wire::to(&world).await;
    let mut frozen = Running::with(wire.options(&world), &log);
    within(frozen.handle.wait_for(|status| status.state == State::Active)).await.unwrap();
    let mut other = Running::start(&world, &log);
    within(other.handle.wait_for(|status| status.state == State::Active)).await.unwrap();
    let mut next = 0;
    for _ in 0..2 {
        for _ in 0..20 {
            world.emit(next..next + 20).await;
            next += 20;
        }
        // In the middle of whatever it does. What it has read it can still write, until it is fenced.
        wire.freeze();
        world.emit(next..next + 20).await;
        next += 20;
        // Its rows come too, since its locks have ended.
        within(async { while left(&mut world).await > 0 {} }).await;
        wire.thaw();
    }
    world.emit(next..next + 20).await;
    next += 20;
    within(async { while left(&mut world).await > 0 {} }).await;
    frozen.stop().await;
    other.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..next).collect::<Vec<_>>());
}

async fn while_kafka_is_away_with_a_hundred_keys_busy_nothing_moves_and_nothing_is_lost(mut world: World) {
    let set = if world.is_mariadb { "poll-mariadb" } else { "poll-mysql" };
    let kafka = ["--set", set, "kafka"];
    let log = options(servers::start("kafka", set).await);
    let (said, shard) = (Said::by(&world.group), format!("{}.0", world.group));
    let mut relay = Running::start(&world, &log);
    world.sql(insert_of(100, 0..100)).await;
    relay.until(100).await;
    let mut next = 100;
    for (stop, start) in [("kill", "up"), ("pause", "resume")] {
        let lines_before = said.lines();
        servers::run(&[&[stop], &kafka[..]].concat()).await;
        let before = relay.handle.status();
        for _ in 0..50 {
            world.sql(insert_of(100, next..next + 20)).await;
            next += 20;
        }
        within(relay.handle.wait_for(|status| status.state == State::BackingOff)).await.unwrap();
        assert_eq!(relay.handle.status().records, before.records);
        assert_eq!(left(&mut world).await, next - before.records);
        let of_shard = lines_before.iter().filter(|line| line.by == shard).count();
        quiet::until(&said, &shard, of_shard + 2).await;
        quiet::assert_one_for_each_pause(&said.lines()[lines_before.len()..], quiet::SINK_AWAY);
        servers::run(&[&[start], &kafka[..]].concat()).await;
        relay.until(next).await;
    }
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..next).collect::<Vec<_>>());
    servers::run(&[&["down", "--wipe"], &kafka[..]].concat()).await;
}

async fn connections_that_are_cut_again_and_again_cost_nothing(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    let writer = Writer::start(&world, 0);
    let others = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{}' AND ID <> CONNECTION_ID()",
        world.database
    );
    let mut cuts = 0;
    for _ in 0..20 {
        // The one that holds its locks, those of its shards, and the writer's.
        let ids: Vec<u64> = world.conn.query(&others).await.unwrap();
        for id in ids {
            // It may be gone by itself.
            cuts += usize::from(world.conn.query_drop(format!("KILL {id}")).await.is_ok());
        }
        relay.until(relay.handle.status().records + 5).await;
    }
    assert!(cuts >= 20, "{cuts}");
    writer.stop().await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    let mut stored: Vec<u64> = world.conn.query("SELECT CAST(aggregate_id AS UNSIGNED) FROM outbox").await.unwrap();
    stored.sort_unstable();
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), stored);
}

async fn tables_of_strange_types_have_no_effect(mut world: World) {
    let log = local();
    let mut relay = Running::start(&world, &log);
    emit_beside_strange_tables(&mut world).await;
    relay.until(3).await;
    within(async { while left(&mut world).await > 0 {} }).await;
    relay.stop().await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), [0, 1, 2]);
}

async fn a_server_whose_binlog_holds_statements_is_polled(mut own: Own) {
    own.world.emit(0..20).await;
    own.world.sql("SET GLOBAL binlog_format = 'STATEMENT'").await;
    own.reconnect().await;
    let log = local();
    let mut relay = Running::start(&own.world, &log);
    relay.until(20).await;
    own.world.emit(20..40).await;
    relay.until(40).await;
    within(async { while left(&mut own.world).await > 0 {} }).await;
    relay.stop().await;
    own.world.sql("SET GLOBAL binlog_format = 'ROW'").await;
    assert_eq!(numbers(&committed(&log, &log.topic("test"))), (0..40).collect::<Vec<_>>());
}
