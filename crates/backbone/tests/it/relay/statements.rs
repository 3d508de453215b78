//! Clients that write statements: whatever these do to an outbox is read from there.

use futures::stream;
use mysql_async::{Conn, prelude::Queryable};

use super::world::{Collector, World, insert, number, on_both};

on_both!(
    rows_of_a_trigger_come_when_its_statement_names_another_table,
    rows_of_functions_and_procedures_come,
    rows_of_a_file_that_was_loaded_come,
    a_prepared_transaction_of_statements_comes_when_it_commits,
    a_busy_writer_of_statements_does_not_have_the_tables_read_for_each,
);

/// A client that writes statements.
async fn stranger(world: &World) -> Conn {
    let mut stranger = world.another().await;
    for sql in ["SET SESSION binlog_format = 'STATEMENT'", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"] {
        stranger.query_drop(sql).await.unwrap();
    }
    stranger
}

/// The body of a routine that emits the event whose number is `id`.
fn emit(id: &str) -> String {
    let sql = insert([0]).replacen(&format!("UNHEX('{:032x}')", 0), &format!("UNHEX(LPAD(HEX({id}), 32, '0'))"), 1);
    sql.replacen("'{\"n\":0}'", &format!("CONCAT('{{\"n\":', {id}, '}}')"), 1)
}

/// Takes batches until an event comes that is committed now.
async fn until_last(world: &mut World, relay: &mut Collector, last: u64) {
    world.emit([last]).await;
    while relay.records.last().map(number) != Some(last) {
        relay.step().await;
    }
}

fn sorted(relay: &Collector) -> Vec<u64> {
    let mut numbers = relay.numbers();
    numbers.sort_unstable();
    numbers
}

async fn rows_of_a_trigger_come_when_its_statement_names_another_table(mut world: World) {
    world.sql("CREATE TABLE orders (id INT PRIMARY KEY)").await;
    world.sql(format!("CREATE TRIGGER emits AFTER INSERT ON orders FOR EACH ROW {}", emit("NEW.id"))).await;
    let mut relay = world.collect(None);
    relay.started().await;
    let mut stranger = stranger(&world).await;
    stranger.query_drop("INSERT INTO orders VALUES (1), (2)").await.unwrap();
    world.sql("INSERT INTO orders VALUES (3)").await;
    stranger.query_drop("BEGIN").await.unwrap();
    stranger.query_drop("INSERT INTO orders VALUES (50)").await.unwrap();
    stranger.query_drop("ROLLBACK").await.unwrap();
    stranger.query_drop("INSERT INTO orders VALUES (4)").await.unwrap();
    until_last(&mut world, &mut relay, 100).await;
    assert_eq!(sorted(&relay), [1, 2, 3, 4, 100]);
}

async fn rows_of_functions_and_procedures_come(mut world: World) {
    world.sql(format!("CREATE PROCEDURE emits(id INT) BEGIN {}; END", emit("id"))).await;
    let function = emit("id");
    let declared = "CREATE FUNCTION emitted(id INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA";
    world.sql(format!("{declared} BEGIN {function}; RETURN id; END")).await;
    let mut relay = world.collect(None);
    relay.started().await;
    let mut stranger = stranger(&world).await;
    for sql in ["CALL emits(1)", "DO emitted(2)", "SELECT emitted(3)", "SET @number = emitted(4)"] {
        stranger.query_drop(sql).await.unwrap();
    }
    until_last(&mut world, &mut relay, 100).await;
    assert_eq!(sorted(&relay), [1, 2, 3, 4, 100]);
}

async fn rows_of_a_file_that_was_loaded_come(mut world: World) {
    world.sql("SET GLOBAL local_infile = ON").await;
    let mut relay = world.collect(None);
    relay.started().await;
    let mut stranger = stranger(&world).await;
    stranger.set_infile_handler(async {
        let rows: String = (1..4)
            .map(|row| {
                format!(
                    "{}\ttest.happened\t1\tthing\t{row}\tk\t1\t1\t{{\"n\":{row}}}\t{{}}\n",
                    "id".repeat(7) + &format!("{row:02}")
                )
            })
            .collect();
        let data: stream::BoxStream<'static, std::io::Result<_>> = Box::pin(stream::iter([Ok(rows.into())]));
        Ok(data)
    });
    let columns = "event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version, \
                   occurred_at, payload, metadata";
    stranger.query_drop(format!("LOAD DATA LOCAL INFILE 'events' INTO TABLE outbox ({columns})")).await.unwrap();
    until_last(&mut world, &mut relay, 100).await;
    assert_eq!(sorted(&relay), [1, 2, 3, 100]);
}

async fn a_prepared_transaction_of_statements_comes_when_it_commits(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let mut stranger = stranger(&world).await;
    let name = format!("'of statements {}'", u8::from(world.is_mariadb));
    for sql in [format!("XA START {name}"), insert(1..4), format!("XA END {name}"), format!("XA PREPARE {name}")] {
        stranger.query_drop(sql).await.unwrap();
    }
    until_last(&mut world, &mut relay, 100).await;
    assert_eq!(relay.numbers(), [100]);
    stranger.query_drop(format!("XA COMMIT {name}")).await.unwrap();
    until_last(&mut world, &mut relay, 101).await;
    assert_eq!(sorted(&relay), [1, 2, 3, 100, 101]);
}

async fn a_busy_writer_of_statements_does_not_have_the_tables_read_for_each(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let mut stranger = stranger(&world).await;
    let writing = tokio::spawn(async move {
        for number in 0..300 {
            stranger.query_drop(insert([number])).await.unwrap();
        }
    });
    let mut looks = 0;
    let is_look = |relay: &Collector| {
        let recovery = relay.checkpoint.as_ref().and_then(|checkpoint| checkpoint.recovery.as_ref());
        recovery.is_some_and(|recovery| recovery.until.is_none())
    };
    while relay.records.len() < 300 {
        let was_look = is_look(&relay);
        relay.step().await;
        looks += usize::from(is_look(&relay) && !was_look);
    }
    writing.await.unwrap();
    until_last(&mut world, &mut relay, 1_000).await;
    assert_eq!(sorted(&relay), (0..300).chain([1_000]).collect::<Vec<_>>());
    assert!((1..100).contains(&looks), "{looks}");
}
