//! Tables that change, strange tables, and values byte for byte.

use mysql_async::prelude::Queryable;

use serde_json::Value;
use tidings_backbone::relay::{Format, Route};

use super::world::{Collector, World, on_both};

on_both!(
    columns_come_and_go_while_events_flow,
    an_image_without_unset_columns_is_taken_as_null,
    tables_of_strange_types_have_no_effect,
    values_of_every_type_are_the_same_from_the_binlog_and_from_the_table,
    ids_that_end_in_zero_bytes_and_texts_of_four_byte_letters_come_byte_for_byte,
);

async fn columns_come_and_go_while_events_flow(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let mut next = 0;
    for ddl in [
        "ALTER TABLE outbox ADD COLUMN shard INT UNSIGNED NULL FIRST",
        "ALTER TABLE outbox ADD COLUMN note VARCHAR(20) NULL AFTER event_key",
        "ALTER TABLE outbox DROP COLUMN shard",
        "ALTER TABLE outbox MODIFY COLUMN note TEXT NULL",
        "ALTER TABLE outbox DROP COLUMN note",
    ] {
        // Without a pause for the relay: some rows are read when the next definition is in force.
        world.emit(next..next + 3).await;
        world.sql(ddl).await;
        world.emit(next + 3..next + 5).await;
        next += 5;
    }
    relay.until(25).await;
    assert_eq!(relay.numbers(), (0..25).collect::<Vec<_>>());
    assert!(relay.records.iter().all(|record| record.order_key.starts_with('k')));
}

async fn an_image_without_unset_columns_is_taken_as_null(mut world: World) {
    world.sql("ALTER TABLE outbox ADD COLUMN note VARCHAR(20) NULL DEFAULT 'x' FIRST").await;
    let mut relay = world.collect(None);
    relay.started().await;
    for image in ["MINIMAL", "NOBLOB"] {
        world.sql(format!("SET SESSION binlog_row_image = '{image}'")).await;
        world.emit(if image == "MINIMAL" { 0..2 } else { 2..4 }).await;
        world.sql("UPDATE outbox SET version = version + 1").await;
    }
    world.emit([4]).await;
    relay.until(5).await;
    assert_eq!(relay.numbers(), [0, 1, 2, 3, 4]);
}

async fn tables_of_strange_types_have_no_effect(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    emit_beside_strange_tables(&mut world).await;
    relay.until(3).await;
    assert_eq!(relay.numbers(), [0, 1, 2]);
}

/// Commits events 0 to 2 among changes of a table of every type, and of what it is.
pub(crate) async fn emit_beside_strange_tables(world: &mut World) {
    let mut columns = vec![
        "id INT PRIMARY KEY AUTO_INCREMENT",
        "a BIT(64)",
        "b SET('x','y')",
        "c ENUM('p','q')",
        "d GEOMETRY",
        "e POINT",
        "f JSON",
        "g DECIMAL(65,30)",
        "h YEAR",
        "i TIME(6)",
        "j DATETIME(6)",
        "k TIMESTAMP(6) NULL",
        "l TINYBLOB",
        "m CHAR(255) CHARACTER SET utf8mb4",
        "n VARCHAR(10) CHARACTER SET latin1",
        "o DATE",
        "p FLOAT",
        "q DOUBLE",
        "r INT GENERATED ALWAYS AS (CHAR_LENGTH(m)) VIRTUAL",
        "s VARBINARY(10)",
    ];
    match world.is_mariadb {
        true => columns.extend(["t UUID", "u INET6", "v VARCHAR(100) COMPRESSED", "w BLOB COMPRESSED", "x INET4"]),
        false => columns.extend(["t VECTOR(4)", "INDEX ((CAST(f->'$.z' AS UNSIGNED ARRAY)))"]),
    }
    world.sql(format!("CREATE TABLE strange ({})", columns.join(", "))).await;
    let more = match world.is_mariadb {
        true => ", t = UUID(), u = '::1', v = REPEAT('v', 90), w = REPEAT('w', 900), x = '127.0.0.1'",
        false => ", t = STRING_TO_VECTOR('[1,2,3,4]')",
    };
    let row = format!(
        "INSERT INTO strange SET a = b'101', b = 'x,y', c = 'q', d = ST_GeomFromText('LINESTRING(1 1, 2 2)'), \
         e = POINT(1, 2), f = '[1, 2]', g = -1.5, h = 1901, i = '-838:59:59', j = '9999-12-31 23:59:59.999999', \
         k = '2038-01-01 00:00:00.5', l = '', m = '💡', n = 'ä', o = '1000-01-01', p = 1.5, q = -0.0, s = 'x'{more}"
    );
    world.emit([0]).await;
    world.sql(&row).await;
    world.sql("BEGIN").await;
    world.sql(&row).await;
    world.emit([1]).await;
    world.sql("UPDATE strange SET f = JSON_SET('{}', '$.a', 2), id = id + 100").await;
    world.sql("COMMIT").await;
    world.sql("DELETE FROM strange").await;
    world.sql("TRUNCATE TABLE strange").await;
    world.sql("RENAME TABLE strange TO stranger").await;
    world.sql("CREATE TABLE copy AS SELECT 1 AS one").await;
    world.sql("DROP TABLE stranger, copy").await;
    world.emit([2]).await;
}

async fn ids_that_end_in_zero_bytes_and_texts_of_four_byte_letters_come_byte_for_byte(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let sql = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, \
         version, occurred_at, payload, metadata) VALUES (UNHEX(?), 't.x', 1, 't', '1', ?, 1, 1, ?, '{}')";
    let id = "0190a0b0c0d07000800000000000000000".get(..32).unwrap();
    let text = "{\"n\": 7, \"t\": \"💡 日本語 \u{10ffff} ñ \\u0000\"}";
    world.conn.exec_drop(sql, (id, "клуб💡", text)).await.unwrap();
    relay.until(1).await;
    let record = &relay.records[0];
    assert_eq!(&*record.event_id, "0190a0b0-c0d0-7000-8000-000000000000");
    let value: Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
    assert_eq!(value["id"], "0190a0b0-c0d0-7000-8000-000000000000");
    assert_eq!(&*record.order_key, "клуб💡");
    assert_eq!(super::world::number(record), 7);
    let value = String::from_utf8(record.value.clone().unwrap()).unwrap();
    assert!(value.contains("💡 日本語 \u{10ffff} ñ \\u0000"), "{value}");
}

async fn values_of_every_type_are_the_same_from_the_binlog_and_from_the_table(mut world: World) {
    let mut columns = vec![
        ("a TINYINT UNSIGNED", "255", "255"),
        ("b MEDIUMINT", "-1", "-1"),
        ("c MEDIUMINT UNSIGNED", "16777215", "16777215"),
        ("d BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
        ("e DECIMAL(20,4)", "-1234567.5", "-1234567.5000"),
        ("f DATETIME(3)", "'2024-02-29 23:59:59.123'", "2024-02-29 23:59:59.123"),
        ("g TIMESTAMP(6) NULL", "FROM_UNIXTIME(1700000000.000001)", "2023-11-14 22:13:20.000001"),
        ("h TIME(2)", "'-101:02:03.45'", "-101:02:03.45"),
        ("i DATE", "'1000-01-01'", "1000-01-01"),
        ("j YEAR", "2155", "2155"),
        ("k VARCHAR(40)", "'💡日本'", "💡日本"),
        ("l VARCHAR(40) CHARACTER SET latin1", "'ä€'", "ä€"),
        ("m VARCHAR(40) CHARACTER SET utf16", "'💡x'", "💡x"),
        ("n BINARY(4)", "X'01020000'", "\u{1}\u{2}"),
        ("o VARBINARY(4)", "X'01FF00'", "\u{1}\u{ff}\u{0}"),
        ("p BIT(9)", "b'100000001'", "257"),
        ("q ENUM('x','y')", "'y'", "2"),
        ("r SET('x','y','z')", "'x,z'", ""),
        ("s FLOAT", "1.5", "1.5"),
        ("t DOUBLE", "-0.25", "-0.25"),
        ("u TEXT", "'line\\nend'", "line\nend"),
        ("v TINYBLOB", "X'00FF'", "\u{0}\u{ff}"),
        ("w INT NULL", "NULL", "null"),
    ];
    match world.is_mariadb {
        true => columns.extend([
            ("x1 UUID", "'123e4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000"),
            ("x2 UUID", "'01890a5d-ac96-774b-bcce-b302099a8057'", "01890a5d-ac96-774b-bcce-b302099a8057"),
            ("x3 INET6", "'2001:db8::'", "2001:db8::"),
            ("x4 INET4", "'10.0.0.0'", "10.0.0.0"),
            ("x5 VARCHAR(200) COMPRESSED", "REPEAT('v', 120)", ""),
        ]),
        false => columns.push(("x1 JSON", "'{\"b\": [1, 2.5, null], \"a\": \"💡\"}'", "")),
    }
    let declared: Vec<_> = columns.iter().map(|(declared, ..)| *declared).collect();
    world
        .sql(format!(
            "CREATE TABLE every_type (seq BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, {})",
            declared.join(", ")
        ))
        .await;
    let mut options = world.options();
    options.tables[0].name = "every_type".to_owned();
    let route = Route { format: Format::Canal(Default::default()), ..Route::default() };
    let mut relay = Collector::start_as(&route, options.clone(), None);
    relay.started().await;
    world.sql("SET time_zone = '+05:00'").await;
    let values: Vec<_> = columns.iter().map(|(_, value, _)| *value).collect();
    let names: Vec<_> = columns.iter().map(|(declared, ..)| declared.split(' ').next().unwrap()).collect();
    world.sql(format!("INSERT INTO every_type ({}) VALUES ({})", names.join(", "), values.join(", "))).await;
    relay.until(1).await;
    options.group.push_str(" again");
    let mut again = Collector::start_as(&route, options, None);
    again.until(1).await;
    let read =
        |relay: &Collector| -> Value { serde_json::from_slice(relay.records[0].value.as_ref().unwrap()).unwrap() };
    let (streamed, selected) = (read(&relay), read(&again));
    for name in ["data", "mysqlType", "sqlType", "pkNames", "table", "type"] {
        assert_eq!(streamed[name], selected[name], "{name}");
    }
    for (declared, _, expected) in columns.iter().filter(|(_, _, expected)| !expected.is_empty()) {
        let found = &streamed["data"][0][declared.split(' ').next().unwrap()];
        let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        assert_eq!(found, *expected, "{declared}");
    }
}
