//! Flat messages against those of Canal itself.
//!
//! `canal_messages.tsv` (name of the case, partition, JSON) and `canal_topics.tsv` (list of patterns,
//! topic of `shop.Orders`) were written by `MQMessageUtils` of Canal 1.1.8 and by fastjson2 2.0.31 from the
//! same rows as the ones below. `canal_samples.jsonl` has messages that users of Canal 1.1.3 to 1.1.5
//! recorded in its issues 3179, 1994 and 3418.

use std::num::NonZeroU32;

use tidings_event::{
    canal::{EventType, FlatMessage, Partitioning, Rule, Stamp, Topics, Zone},
    row::{Change, Column, Operation, Table, Value},
};

const MESSAGES: &str = include_str!("../fixtures/canal_messages.tsv");
const TOPICS: &str = include_str!("../fixtures/canal_topics.tsv");
const SAMPLES: &str = include_str!("../fixtures/canal_samples.jsonl");

const STAMP: Stamp<'static> = Stamp { id: 42, event_seconds: 1_795_965_977, now_millis: 1_795_965_977_123, gtid: "" };

fn table(database: &str, name: &str, columns: &[Column]) -> Table {
    Table { database: database.to_owned(), name: name.to_owned(), columns: columns.to_vec() }
}

fn text(text: &str) -> Value<'static> {
    Value::Text(text.to_owned().into())
}

fn expected(case: &str) -> Vec<(u32, &'static str)> {
    let lines = MESSAGES.lines().map(|line| line.splitn(3, '\t').collect::<Vec<_>>());
    let lines = lines.filter(|line| line[0] == case).map(|line| (line[1].parse().unwrap(), line[2]));
    let lines: Vec<_> = lines.collect();
    assert!(!lines.is_empty(), "no such case: {case}");
    lines
}

fn assert_parts(case: &str, rule: &Rule, partitions: u32, message: FlatMessage<'_>) {
    let parts = rule.split(message, NonZeroU32::new(partitions).unwrap());
    let parts: Vec<_> =
        parts.into_iter().map(|(place, part)| (place, String::from_utf8(part.to_json()).unwrap())).collect();
    let parts: Vec<_> = parts.iter().map(|(place, part)| (*place, part.as_str())).collect();
    assert_eq!(parts, expected(case), "{case}");
}

#[test]
fn every_kind_of_character_is_escaped_as_fastjson2_does() {
    let names = Column::new("na\"me\u{1}é🎈", "enum('a\\b','c\"d')");
    let columns = [
        Column::new("id", "bigint(20)").key(),
        names,
        Column::new("ascii", "varchar(9)"),
        Column::new("latin", "blob"),
        Column::new("empty", "text"),
        Column::new("none", "text"),
    ];
    let table = table("db\"1", "t\\b", &columns);
    let all: String = (0..0x120)
        .filter_map(char::from_u32)
        .chain("\u{2028}\u{2029}\u{feff}\u{ffff}小明🎈é/</script>".chars())
        .collect();
    let row = [
        Value::Int(1),
        text(&all),
        text("a\tb\u{7f}\0"),
        Value::Bytes((&[0xff, 0x80, 0][..]).into()),
        text(""),
        Value::Null,
    ];
    let changes = [Change::insert(&row)];
    let stamp = Stamp { gtid: "0-1-7", ..STAMP };
    let message = FlatMessage::of_rows(&table, Operation::Insert, &changes, stamp, Zone::default());
    assert_parts("escapes", &Rule::Fixed(0), 1, message);
}

#[test]
fn rows_go_to_the_partitions_that_canal_sends_them_to() {
    let columns = [Column::new("id", "bigint(20) unsigned").key(), Column::new("name", "varchar(64)")];
    let table = table("shop", "orders", &columns);
    let rows: Vec<_> = (0..12_u64)
        .map(|number| {
            // The largest number as a decoder that knows no signs sees it.
            let id = if number == 11 { Value::Int(-1) } else { Value::UInt(number * 1_000_003) };
            [id, if number % 3 == 0 { Value::Null } else { text(&format!("名{number}🎈")) }]
        })
        .collect();
    let changes: Vec<_> = rows.iter().map(|row| Change::insert(row)).collect();
    let lists = [
        r".*\..*:$pk$",
        "shop.orders:name^id",
        r"shop\.ord.*:name",
        "SHOP.ORDERS:$PK$",
        "shop.orders",
        "other.t:id;shop.orders:id",
        "shop.orders:Name",
        "other.t:id",
    ];
    for list in lists {
        for with_database in [true, false] {
            let rule = Partitioning::hash(list, with_database).unwrap().rule_for("shop", "orders");
            let message = FlatMessage::of_rows(&table, Operation::Insert, &changes, STAMP, Zone::default());
            assert_parts(&format!("insert {list} {with_database}"), &rule, 5, message);
        }
    }
}

#[test]
fn an_update_shows_the_columns_that_changed() {
    let columns = [
        Column::new("id", "int(11)").key(),
        Column::new("a", "int(11)"),
        Column::new("b", "varchar(9)"),
        Column::new("c", "varchar(9)"),
    ];
    let table = table("shop", "orders", &columns);
    let before: Vec<_> = (0..3).map(|id| [Value::Int(id), Value::Int(10), Value::Null, text("same")]).collect();
    let mut after = before.clone();
    after[0][1] = Value::Int(11);
    after[1][2] = text("x");
    let changes: Vec<_> = before.iter().zip(&after).map(|(before, after)| Change::update(before, after)).collect();
    let message = || FlatMessage::of_rows(&table, Operation::Update, &changes, STAMP, Zone::default());
    assert_parts("update", &Rule::Fixed(0), 1, message());
    let rule = Partitioning::hash("shop.orders:id", true).unwrap().rule_for("shop", "orders");
    assert_parts("update split", &rule, 3, message());
}

#[test]
fn a_delete_shows_the_row_that_was_and_no_key_where_there_is_none() {
    let table = table("shop", "log", &[Column::new("x", "int(11)")]);
    let row = [Value::Int(-1)];
    let changes = [Change::delete(&row)];
    let message = FlatMessage::of_rows(&table, Operation::Delete, &changes, STAMP, Zone::default());
    assert_parts("delete", &Rule::Fixed(0), 1, message);
}

#[test]
fn statements_go_to_the_first_partition_with_their_text() {
    let rule = Partitioning::hash("shop.orders:id", true).unwrap().rule_for("shop", "orders");
    let sql = "ALTER TABLE orders ADD `x` int -- \"é\"";
    assert_parts("ddl", &rule, 3, FlatMessage::of_statement("shop", "orders", EventType::Alter, sql, STAMP));
    let sql = "insert into orders values (1)";
    assert_parts("query", &rule, 3, FlatMessage::of_statement("", "orders", EventType::Query, sql, STAMP));
}

#[test]
fn topics_are_those_of_canal() {
    for (list, topic) in TOPICS.lines().map(|line| line.split_once('\t').unwrap()) {
        assert_eq!(Topics::parse("def.ault", list).unwrap().of("shop", "Orders"), topic, "{list}");
    }
    assert_eq!(Topics::one("def.ault").of("shop", "orders"), "def.ault");
    assert_eq!(Topics::parse("def.ault", "").unwrap().of("shop", "orders"), "def.ault");
    assert_eq!(Topics::parse("def.ault", ".*").unwrap().of("", "orders"), "def_ault", "a statement without a schema");
}

#[test]
fn recorded_messages_are_read_and_written_again_byte_for_byte() {
    for line in SAMPLES.lines() {
        let message = FlatMessage::from_json(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(message.to_json()).unwrap(), line);
    }
    for (_, _, line) in MESSAGES.lines().map(|line| line.split_once('\t').unwrap()).map(|(name, rest)| {
        let (place, line) = rest.split_once('\t').unwrap();
        (name, place, line)
    }) {
        let message = FlatMessage::from_json(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(message.to_json()).unwrap(), line);
    }
}

#[test]
fn a_recorded_row_comes_out_of_its_values_again() {
    let sample = SAMPLES.lines().find(|line| line.contains("sku_spec")).unwrap();
    let recorded = FlatMessage::from_json(sample.as_bytes()).unwrap();
    let types = recorded.mysql_type.as_ref().unwrap();
    let columns: Vec<_> =
        types.0.iter().map(|(name, declared)| Column::new(name.as_ref(), declared.as_ref())).collect();
    let table = table("sku", "sku_spec", &columns);
    let values = recorded.data.as_ref().unwrap()[0].0.iter().zip(&types.0);
    let values: Vec<_> = values
        .map(|((_, value), (_, declared))| match value.as_ref().unwrap() {
            number if declared.contains("int") => Value::Int(number.parse().unwrap()),
            value => text(value),
        })
        .collect();
    let changes = [Change::insert(&values)];
    let stamp = Stamp { id: 5846, event_seconds: 1_562_922_268, now_millis: 1_562_922_268_545, gtid: "" };
    let message = FlatMessage::of_rows(&table, Operation::Insert, &changes, stamp, Zone::default());
    // The version that it was recorded of had no GTID.
    let json = String::from_utf8(message.to_json()).unwrap().replace("\"gtid\":\"\",", "");
    assert_eq!(json, sample);
}
