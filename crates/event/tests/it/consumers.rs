//! Consumers as they are written for Canal and for Debezium, knowing nothing of this crate's types: what
//! they rebuild from our records are the rows that went in.

use std::{collections::HashMap, num::NonZeroU32};

use serde::Deserialize;
use tidings_event::{
    canal::{FlatMessage, Partitioning, Stamp, Topics, Zone},
    cloudevents,
    debezium::{Options, Router},
    row::{Change, Column, Operation, Table, Value},
};

use crate::{
    debezium_reference::{NOW, bytes, plain, route, typed},
    samples::{SOURCE, followed, raw},
};

/// The class `FlatMessage` of Canal's client, as a consumer in any language has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CanalMessage {
    id: i64,
    database: String,
    table: String,
    pk_names: Option<Vec<String>>,
    is_ddl: bool,
    #[serde(rename = "type")]
    event_type: String,
    es: i64,
    ts: i64,
    sql: String,
    sql_type: Option<HashMap<String, i32>>,
    mysql_type: Option<HashMap<String, String>>,
    data: Option<Vec<HashMap<String, Option<String>>>>,
    old: Option<Vec<HashMap<String, Option<String>>>>,
    gtid: String,
}

/// What a consumer makes of a text by `sqlType`, as `JdbcTypeUtil` of Canal's adapters does.
#[derive(Debug, PartialEq)]
enum Rebuilt {
    Whole(i128),
    Bytes(Vec<u8>),
    Text(String),
}

fn rebuild(text: &str, sql_type: i32) -> Rebuilt {
    match sql_type {
        -7..=-5 | 3..=5 if !text.contains('.') => Rebuilt::Whole(text.parse().unwrap()),
        2004 => Rebuilt::Bytes(text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()),
        _ => Rebuilt::Text(text.to_owned()),
    }
}

/// A table kept up to date by the messages, as Canal's adapters keep theirs.
#[derive(Default)]
struct Replica(HashMap<String, HashMap<String, Option<String>>>);

impl Replica {
    fn apply(&mut self, message: &CanalMessage) {
        assert_eq!((message.is_ddl, message.sql.as_str()), (false, ""));
        let key = &message.pk_names.as_ref().unwrap()[0];
        for (place, row) in message.data.iter().flatten().enumerate() {
            let new_key = row[key].clone().unwrap();
            if message.event_type == "UPDATE" {
                // A changed key is in `old`.
                let old = &message.old.as_ref().unwrap()[place];
                self.0.remove(&old.get(key).cloned().flatten().unwrap_or_else(|| new_key.clone())).unwrap();
            }
            if message.event_type == "DELETE" {
                self.0.remove(&new_key).unwrap();
            } else {
                assert!(self.0.insert(new_key, row.clone()).is_none());
            }
        }
    }
}

fn outbox() -> Table {
    let columns = vec![
        Column::new("seq", "bigint(20) unsigned").key(),
        Column::new("event_id", "binary(16)").not_null(),
        Column::new("payload", "longtext").not_null(),
        Column::new("at", "timestamp(3)"),
    ];
    Table { database: "tidings".to_owned(), name: "outbox".to_owned(), columns }
}

fn outbox_row(seq: u64, payload: &str) -> [Value<'static>; 4] {
    let at = Value::Timestamp { seconds: 1_795_965_977, micros: 123_999 };
    [Value::UInt(seq), bytes(&[0, 0x7f, 0x80, 0xff]), Value::Text(payload.to_owned().into()), at]
}

const STAMP: Stamp<'static> = Stamp { id: 7, event_seconds: 1_795_965_977, now_millis: NOW, gtid: "0-1-42" };

fn canal(operation: Operation, changes: &[Change<'_>]) -> Vec<(u32, CanalMessage)> {
    let table = outbox();
    let rule = Partitioning::hash(r"tidings\..*:$pk$", true).unwrap().rule_for("tidings", "outbox");
    let message = FlatMessage::of_rows(&table, operation, changes, STAMP, "+08:00".parse::<Zone>().unwrap());
    let parts = rule.split(message, NonZeroU32::new(4).unwrap()).into_iter();
    parts.map(|(place, part)| (place, serde_json::from_slice(&part.to_json()).unwrap())).collect()
}

#[test]
fn a_consumer_of_canal_rebuilds_the_rows() {
    let payload = r#"{"to":"18446744073709551615","text":"🎈é\"\\"}"#;
    let rows = [outbox_row(u64::MAX, payload), outbox_row(1, "{}"), outbox_row(2, "{}")];
    let inserts: Vec<_> = rows.iter().map(|row| Change::insert(row)).collect();
    let mut replica = Replica::default();
    let messages = canal(Operation::Insert, &inserts);
    assert!(messages.len() > 1, "the rows are of several partitions");
    for (_, message) in &messages {
        replica.apply(message);
        let stamp = (message.id, message.es, message.ts, message.gtid.as_str());
        assert_eq!(stamp, (7, 1_795_965_977_000, NOW, "0-1-42"));
        assert_eq!((message.database.as_str(), message.table.as_str()), ("tidings", "outbox"));
        assert_eq!(message.mysql_type.as_ref().unwrap()["seq"], "bigint(20) unsigned");
    }
    assert_eq!(replica.0.len(), 3);
    let row = &replica.0["18446744073709551615"];
    // One row of the event needs it, so the column is a DECIMAL in all of its messages.
    let types = messages[0].1.sql_type.as_ref().unwrap();
    let value = |name: &str| rebuild(row[name].as_deref().unwrap(), types[name]);
    assert_eq!(value("seq"), Rebuilt::Whole(u64::MAX.into()));
    assert_eq!(value("event_id"), Rebuilt::Bytes(vec![0, 0x7f, 0x80, 0xff]));
    assert_eq!(value("payload"), Rebuilt::Text(payload.to_owned()));
    assert_eq!(value("at"), Rebuilt::Text("2026-11-29 23:26:17.123".to_owned()));
}

#[test]
fn a_consumer_of_canal_follows_updates_and_deletes() {
    let (one, two, three) = (outbox_row(1, "a"), outbox_row(2, "b"), outbox_row(3, "b"));
    let mut replica = Replica::default();
    let steps = [
        (Operation::Insert, Change::insert(&one)),
        (Operation::Insert, Change::insert(&two)),
        (Operation::Update, Change::update(&two, &three)),
        (Operation::Delete, Change::delete(&one)),
    ];
    for (operation, change) in steps {
        canal(operation, &[change]).iter().for_each(|(_, message)| replica.apply(message));
    }
    assert_eq!(replica.0.keys().collect::<Vec<_>>(), ["3"]);
}

#[test]
fn all_changes_of_a_key_are_of_one_partition() {
    let (before, after) = (outbox_row(77, "a"), outbox_row(77, "b"));
    let place = |operation, change| canal(operation, &[change])[0].0;
    let partition = place(Operation::Insert, Change::insert(&before));
    assert_eq!(place(Operation::Update, Change::update(&before, &after)), partition);
    assert_eq!(place(Operation::Delete, Change::delete(&after)), partition);
    assert_eq!(Topics::parse("x", r"tidings\..*").unwrap().of("tidings", "outbox"), "tidings_outbox");
}

/// What a consumer of the router reads of a record: never the topic's name alone, but key, id and type.
struct Received {
    key: String,
    id: String,
    event_type: String,
    payload: serde_json::Value,
}

fn receive(record: &tidings_event::debezium::Record) -> Received {
    let header = |name: &str| {
        let found = record.headers.iter().find(|(header, _)| header == name).unwrap();
        String::from_utf8(found.1.clone().unwrap()).unwrap()
    };
    // The string in quotes that the JSON converter makes of a key and of a payload.
    let unquoted = |bytes: &[u8]| serde_json::from_slice::<String>(bytes).unwrap();
    Received {
        key: unquoted(record.key.as_ref().unwrap()),
        id: header("id"),
        event_type: header("eventType"),
        payload: serde_json::from_str(&unquoted(record.value.as_ref().unwrap())).unwrap(),
    }
}

const DEBEZIUM: [(&str, &str); 5] = [
    ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
    ("key.converter.schemas.enable", "false"),
    ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
    ("value.converter.schemas.enable", "false"),
    ("table.fields.additional.placement", "type:header:eventType"),
];

#[test]
fn a_consumer_of_debezium_reads_key_id_type_and_payload() {
    let payload = serde_json::json!({"to": u64::MAX, "text": "🎈é\"\\\u{1}", "at": "2026-11-29T15:26:17.123456Z"});
    let mut cells = plain(Value::Text(payload.to_string().into()));
    cells[0] = (Column::new("id", "binary(16)").key(), bytes(&[1, 2, 3]));
    let options = [&DEBEZIUM[..], &[("binary.handling.mode", "hex")]].concat();
    let received = receive(&route(&options, cells).unwrap());
    assert_eq!(received.id, "01020300000000000000000000000000", "zero bytes at the end are restored");
    assert_eq!((received.key.as_str(), received.event_type.as_str()), ("u1", "OrderCreated"));
    assert_eq!(received.payload, payload);
}

#[test]
fn a_largest_unsigned_bigint_is_right_where_decimals_are_precise() {
    let cells = || [plain(Value::Text("{}".into())), typed()].concat();
    let placed = ("table.fields.additional.placement", "big:header");
    let header = |options: &[(&str, &str)]| route(options, cells()).unwrap().headers[1].1.clone().unwrap();
    assert_eq!(header(&[placed]), b"-1", "as in Debezium, whose default is a signed number");
    let precise = ("bigint.unsigned.handling.mode", "precise");
    assert_eq!(header(&[placed, precise]), b"18446744073709551615");
    let json = [placed, precise, ("table.field.event.key", "big"), DEBEZIUM[0], DEBEZIUM[1]];
    assert_eq!(route(&json, cells()).unwrap().key.unwrap(), b"\"AP//////////\"");
}

#[test]
fn an_event_of_ours_is_a_record_for_debeziums_consumers() {
    let mut event = followed();
    event.payload = raw(r#"{"big":18446744073709551615,"text":"🎈"}"#);
    let mut options = Options::default();
    for (name, value) in DEBEZIUM {
        options.set(name, value).unwrap();
    }
    options.set("table.field.event.timestamp", "timestamp").unwrap();
    let record = Router::new(options).unwrap().route_event(&event, 0).unwrap();
    let received = receive(&record);
    assert_eq!((record.topic.as_str(), received.key.as_str()), ("outbox.event.relation", "17"));
    assert_eq!((record.timestamp, record.partition), (event.occurred_at.0, None));
    assert_eq!(received.id, event.id.to_string());
    assert_eq!(received.event_type, "relation.followed");
    assert_eq!(received.payload, serde_json::from_str::<serde_json::Value>(event.payload.get()).unwrap());
}

#[test]
fn cloudevents_keep_what_is_hard_to_keep() {
    let mut event = followed();
    event.version = u64::MAX;
    event.aggregate_id = "🎈é小明".to_owned();
    event.payload = raw(r#"{"big":18446744073709551615,"text":"🎈","at":"2026-11-29T15:26:17.123456Z","id":"AQL/"}"#);
    crate::samples::assert_round_trips(&event);
    let json = cloudevents::json::encode(&event, SOURCE).unwrap();
    assert!(json.contains(r#""time":"2026-11-29T15:26:17.123Z""#) && json.contains("🎈é小明"), "{json}");
    assert!(json.contains(r#""sequence":"18446744073709551615""#) && json.ends_with(&format!("{}}}", event.payload)));
}
