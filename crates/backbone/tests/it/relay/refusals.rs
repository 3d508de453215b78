//! A source that does not give its binlog from where the relay stands: nothing is passed over for that.

use mysql_async::prelude::Queryable;
use tidings_backbone::{
    Error,
    relay::{Checkpoint, Refusal},
};

use super::{
    servers::{Own, on_own_of_both},
    world::{World, insert, on_both, within},
};
use crate::said::Said;

on_both!(
    a_source_that_lacks_what_was_read_stops_the_relay_where_it_stands,
    a_position_that_is_none_is_made_up_for_from_the_table,
    a_position_between_a_table_map_and_its_rows_is_made_up_for_from_the_table;
    mysql: transactions_of_mysql_with_a_tag_come_once,
);
on_own_of_both!(a_frozen_server_is_noticed_within_few_heartbeats);

/// The checkpoint of a relay that has read what there is, and has published events 0 to 2.
async fn checkpoint(world: &mut World) -> Checkpoint {
    let mut relay = world.collect(None);
    relay.started().await;
    world.emit(0..3).await;
    relay.until(3).await;
    relay.until_checkpoint(|checkpoint| checkpoint.recovery.is_none()).await;
    relay.checkpoint.take().unwrap()
}

async fn a_source_that_lacks_what_was_read_stops_the_relay_where_it_stands(mut world: World) {
    let mut checkpoint = checkpoint(&mut world).await;
    let uuid: Option<String> = match world.is_mariadb {
        true => None,
        false => world.conn.query_first("SELECT @@server_uuid").await.unwrap(),
    };
    checkpoint.position.gtid = match uuid {
        Some(uuid) => format!("{uuid}:1-900000000"),
        None => format!("{}-900000000", checkpoint.position.gtid.rsplit_once('-').unwrap().0),
    };
    world.emit(3..5).await;
    let mut relay = world.collect(Some(checkpoint.clone()));
    let error = within(relay.try_step()).await.unwrap_err();
    assert!(matches!(&error, Error::BinlogRefused { refusal: Refusal::Ahead, .. }), "{error:?}");
    assert!(relay.records.is_empty());
    assert_eq!(relay.checkpoint, Some(checkpoint));
}

async fn a_position_that_is_none_is_made_up_for_from_the_table(mut world: World) {
    let known = checkpoint(&mut world).await;
    let said = Said::by(&world.group);
    world.sql(insert([3]).replace("{\"n\":3}", &format!("{{\"n\":3,\"x\":\"{}\"}}", "x".repeat(3_000)))).await;
    world.emit([4]).await;
    // Beyond the end of the file, in the middle of an event, and where a text stands in the place of an event's size.
    for offset in [4_000_000_000, known.position.offset + 7, known.position.offset + 1_500] {
        let mut checkpoint = known.clone();
        checkpoint.position.gtid.clear();
        checkpoint.position.offset = offset;
        let mut relay = world.collect(Some(checkpoint));
        relay.until(2).await;
        assert_eq!(relay.numbers(), [3, 4]);
    }
    let reasons: Vec<_> = said.lines().into_iter().filter(|line| line.is_error).map(|line| line.reason).collect();
    assert_eq!(reasons.len(), 3, "{reasons:#?}");
    assert!(reasons[2].contains("exceeded max_allowed_packet"), "{reasons:#?}");
}

async fn a_position_between_a_table_map_and_its_rows_is_made_up_for_from_the_table(mut world: World) {
    let mut checkpoint = checkpoint(&mut world).await;
    world.emit(3..5).await;
    let place =
        format!("SHOW BINLOG EVENTS IN '{}' FROM {} LIMIT 100", checkpoint.position.file, checkpoint.position.offset);
    let events: Vec<(u64, String, u64)> = world
        .conn
        .query_map(place, |row: mysql_async::Row| (row.get(1).unwrap(), row.get(2).unwrap(), row.get(4).unwrap()))
        .await
        .unwrap();
    let rows = events.iter().find(|(_, kind, _)| kind.starts_with("Write_rows")).unwrap();
    checkpoint.position.gtid.clear();
    checkpoint.position.offset = rows.0;
    let mut relay = world.collect(Some(checkpoint));
    relay.until(2).await;
    world.emit([5]).await;
    relay.until(3).await;
    assert_eq!(relay.numbers(), [3, 4, 5]);
}

async fn a_frozen_server_is_noticed_within_few_heartbeats(mut own: Own) {
    let mut options = own.world.options();
    options.heartbeat = std::time::Duration::from_millis(500);
    let mut relay = super::world::Collector::start(options.clone(), None);
    own.world.emit([0]).await;
    relay.until(1).await;
    own.pause().await;
    // Counted and not timed: a machine that is busy delays both.
    let mut heartbeats = 0;
    let mut ticks = tokio::time::interval(options.heartbeat);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut gone = std::pin::pin!(relay.gone());
    loop {
        tokio::select! {
            () = &mut gone => break,
            _ = ticks.tick() => heartbeats += 1,
        }
    }
    own.resume().await;
    assert!(heartbeats <= 8, "{heartbeats}");
}

async fn transactions_of_mysql_with_a_tag_come_once(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let mut seen = Vec::new();
    for (round, tag) in ["", ":first", ":second", ":first", ""].iter().enumerate() {
        world.sql(format!("SET gtid_next = 'AUTOMATIC{tag}'")).await;
        let start = 2 * round as u64;
        for number in start..start + 2 {
            world.sql(insert([number])).await;
        }
        relay.until(2).await;
        seen.extend(relay.numbers());
        relay = relay.restarted();
    }
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    let gtid = relay.checkpoint.unwrap().position.gtid;
    assert!(gtid.contains(":first:") && gtid.contains(":second:"), "{gtid}");
}
