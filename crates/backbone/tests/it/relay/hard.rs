//! Values that are easily broken, of a stranger's outbox, in every format and from everywhere rows come from.

use serde_json::{Value, json};
use tidings_backbone::{
    Clock,
    relay::{Formatter, Options, OutboxTable, Record, Relay, Route, sink},
};
use tokio_util::sync::CancellationToken;

use super::world::{Collector, World, on_both, within};
use crate::sinks::broker::{Found, committed, local};

on_both!(hard_values_are_the_same_in_every_format_from_the_binlog_the_table_and_by_polling);

const TABLE: &str = "CREATE TABLE hard (
    number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, id BINARY(16) NOT NULL, type VARCHAR(40) NOT NULL,
    aggregatetype VARCHAR(40) NOT NULL, aggregateid VARCHAR(40) NOT NULL, total BIGINT UNSIGNED NOT NULL,
    happened DATETIME(6) NOT NULL, made TIMESTAMP(3) NOT NULL, payload LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4";

const ROW: &str = "INSERT INTO hard SET id = UNHEX('0190a0b0c0d070008000000000000000'), type = 'hard.made', \
     aggregatetype = 'Hard', aggregateid = 'клуб💡', total = 18446744073709551615, \
     happened = '2026-11-29 15:26:17.123456', made = '2026-11-29 15:26:17.129', \
     payload = '{\"n\": 1.50, \"t\": \"💡 日本語 ñ\"}'";

/// Each format, with what of it must be found in a record's value or headers.
fn formats() -> [(Value, Vec<&'static str>); 4] {
    let events = |kind: &str| {
        json!({"kind": kind, "topic": "{prefix}.hard",
            "extensions": {"total": "total", "made": "made"}})
    };
    let id = "0190a0b0-c0d0-7000-8000-000000000000";
    let payload = "{\"n\": 1.50, \"t\": \"💡 日本語 ñ\"}";
    [
        (
            events("cloudevents-json"),
            vec![id, payload, "\"18446744073709551615\"", "2026-11-29T15:26:17.123", "15:26:17.129", "клуб💡"],
        ),
        (events("cloudevents-protobuf"), vec![id, payload, "18446744073709551615", "15:26:17.129", "клуб💡"]),
        (
            json!({"kind": "canal", "topic": "{topic}", "partitions_num": 3, "partition_hash": ".*\\..*:id"}),
            vec![
                "\"total\":\"18446744073709551615\"",
                "\"total\":3",
                "\"happened\":\"2026-11-29 15:26:17.123456\"",
                "\"made\":\"2026-11-29 15:26:17.129\"",
                "\"aggregateid\":\"клуб💡\"",
                "\"payload\":\"{\\\"n\\\": 1.50, \\\"t\\\": \\\"💡 日本語 ñ\\\"}\"",
            ],
        ),
        (
            json!({"kind": "debezium", "options": {
                "table.field.event.timestamp": "happened",
                "table.fields.additional.placement": "total:header,made:header",
                "route.topic.replacement": "{topic}"}}),
            vec![payload],
        ),
    ]
}

/// What is the same wherever a row comes from, as one text.
fn shown(record: Found) -> String {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut value = record.value.unwrap();
    if let Ok(mut message) = serde_json::from_str::<serde_json::Map<String, Value>>(&value)
        && message.contains_key("mysqlType")
    {
        let data = value.split_once("],\"database\"").unwrap().0.to_owned();
        // When the message was made, and where it came from.
        for volatile in ["es", "ts", "id", "gtid", "data"] {
            message.remove(volatile);
        }
        value = format!("{data} {}", Value::Object(message));
    }
    let headers: Vec<_> = record.headers.iter().map(|(name, value)| (name, text(value))).collect();
    format!("{:?} {} {headers:?}", text(&record.key), value)
}

fn of_record(record: &Record) -> Found {
    Found {
        partition: record.partition.unwrap_or_default(),
        key: record.key.clone(),
        value: record.value.as_ref().map(|value| String::from_utf8_lossy(value).into_owned()),
        headers: record.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        timestamp_ms: record.timestamp_ms,
    }
}

fn options(world: &World) -> Options {
    let mut options = world.options();
    let mut table = OutboxTable { name: "hard".to_owned(), ..OutboxTable::default() };
    let columns = &mut table.columns;
    for (role, name) in [
        (&mut columns.seq, "number"),
        (&mut columns.event_id, "id"),
        (&mut columns.event_type, "type"),
        (&mut columns.aggregate_type, "aggregatetype"),
        (&mut columns.aggregate_id, "aggregateid"),
        (&mut columns.occurred_at, "happened"),
    ] {
        name.clone_into(role);
    }
    options.tables = vec![table];
    options
}

async fn hard_values_are_the_same_in_every_format_from_the_binlog_the_table_and_by_polling(mut world: World) {
    for (format, wanted) in formats() {
        world.sql("DROP TABLE IF EXISTS hard, hard_pending").await;
        world.sql(TABLE).await;
        world.sql("SET time_zone = '+00:00'").await;
        let log = local();
        let topic = format!("{}.hard", log.prefix);
        let format = serde_json::from_str::<Value>(&format.to_string().replace("{topic}", &topic)).unwrap();
        let route: Route = serde_json::from_value(json!({ "format": format })).unwrap();
        world.group = format!("{} {}", world.database, topic);
        let mut streamed = Collector::start_as(&route, options(&world), None);
        streamed.started().await;
        world.sql(ROW).await;
        streamed.until(1).await;
        world.group.push_str(" again");
        let mut selected = Collector::start_as(&route, options(&world), None);
        selected.until(1).await;
        let polled = by_polling(&world, &route, &log, &topic).await;
        let streamed_at = (streamed.records[0].partition, streamed.records[0].timestamp_ms);
        assert_eq!(streamed_at, (selected.records[0].partition, selected.records[0].timestamp_ms));
        let (streamed, selected) = (shown(of_record(&streamed.records[0])), shown(of_record(&selected.records[0])));
        assert_eq!(streamed, selected);
        assert_eq!(streamed, shown(polled));
        for wanted in wanted {
            assert!(streamed.contains(wanted), "{wanted} is not in: {streamed}");
        }
        // What Canal does not restore of a BINARY.
        assert!(!streamed.contains("\\u0000\",\"type\""), "{streamed}");
    }
}

async fn by_polling(world: &World, route: &Route, log: &tidings_backbone::kafka::Options, topic: &str) -> Found {
    let sink: sink::Options = serde_json::from_value(json!({
        "kind": "kafka", "brokers": log.brokers, "prefix": log.prefix, "topics": [topic], "partitions": log.partitions,
    }))
    .unwrap();
    let formatter = Formatter::new(std::slice::from_ref(route), &log.prefix, Clock::system(), 1_000_000).unwrap();
    let relay = Relay::polling(options(world), formatter, sink, Clock::system()).unwrap();
    let (mut handle, shutdown) = (relay.handle(), CancellationToken::new());
    let task = tokio::spawn(relay.run(shutdown.clone()));
    within(handle.wait_for(|status| status.records + status.dead >= 1)).await.unwrap();
    shutdown.cancel();
    within(task).await.unwrap().unwrap();
    committed(log, topic).remove(0)
}
