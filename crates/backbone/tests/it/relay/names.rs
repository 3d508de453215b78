//! Names in another case, and names of nothing.

use tidings_backbone::relay::OutboxTable;

use super::{
    servers,
    world::{Collector, World, on_both},
};

on_both!(
    columns_are_found_whatever_the_case_they_are_named_in,
    a_column_that_is_named_and_is_not_there_is_refused_by_its_role,
    a_view_is_refused,
    a_seq_that_is_no_integer_is_refused_with_its_type,
    tables_are_found_whatever_the_case_they_are_named_in,
);

async fn columns_are_found_whatever_the_case_they_are_named_in(mut world: World) {
    let mut options = world.options();
    let columns = &mut options.tables[0].columns;
    (columns.seq, columns.event_key) = ("SEQ".to_owned(), "Event_Key".to_owned());
    world.emit(0..3).await;
    let mut relay = Collector::start(options, None);
    relay.until(3).await;
    world.emit(3..6).await;
    relay.until(6).await;
    assert_eq!(relay.numbers(), [0, 1, 2, 3, 4, 5]);
    let keys: Vec<_> = relay.records.iter().map(|record| &*record.order_key).collect();
    assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4", "k5"]);
}

async fn refusal(world: &World, table: OutboxTable) -> String {
    let mut options = world.options();
    options.tables = vec![table];
    Collector::start(options, None).try_step().await.unwrap_err().to_string()
}

async fn a_column_that_is_named_and_is_not_there_is_refused_by_its_role(world: World) {
    let mut table = OutboxTable::default();
    (table.columns.event_key, table.columns.payload) = ("customer".to_owned(), "body".to_owned());
    let error = refusal(&world, table).await;
    for wanted in ["`customer`", "`event_key`", "`body`", "`payload`"] {
        assert!(error.contains(wanted), "{wanted} is not in: {error}");
    }
    assert!(!error.contains("metadata"), "{error}");
}

async fn a_view_is_refused(mut world: World) {
    world.sql("CREATE VIEW events AS SELECT * FROM outbox").await;
    let error = refusal(&world, OutboxTable { name: "events".to_owned(), ..OutboxTable::default() }).await;
    assert!(error.contains("is a view"), "{error}");
}

async fn a_seq_that_is_no_integer_is_refused_with_its_type(mut world: World) {
    let uuid = if world.is_mariadb { "uuid" } else { "binary(16)" };
    for declared in [uuid, "char(36)", "double", "decimal(20,0)"] {
        world.sql(format!("ALTER TABLE outbox ADD COLUMN id {declared} NULL")).await;
        let mut table = OutboxTable::default();
        table.columns.seq = "ID".to_owned();
        let error = refusal(&world, table).await;
        for wanted in [".outbox`", "`id`", "`seq`", "ADD COLUMN", &format!("`{declared}`")] {
            assert!(error.contains(wanted), "{wanted} is not in: {error}");
        }
        world.sql("ALTER TABLE outbox DROP COLUMN id").await;
    }
}

/// On another server of the kind, which stores names in lower case and takes them in any.
async fn tables_are_found_whatever_the_case_they_are_named_in(other: World) {
    const SET: &str = "relay-names";
    let service = if other.is_mariadb { "mariadb" } else { "mysql" };
    servers::run(&["down", "--wipe", "--set", SET, service]).await;
    let address = servers::start_with("--lower-case-table-names=1", service, SET).await;
    let mut world = World::at(address, "Any_Case").await;
    let mut options = world.options();
    options.source = format!("{}/TIDINGS_ANY_CASE", world.address);
    options.tables = vec![OutboxTable { name: "OutBox".to_owned(), ..OutboxTable::default() }];
    world.emit(0..3).await;
    let mut relay = Collector::start(options, None);
    relay.until(3).await;
    world.emit(3..6).await;
    relay.until(6).await;
    assert_eq!(relay.numbers(), [0, 1, 2, 3, 4, 5]);
    servers::run(&["down", "--wipe", "--set", SET, service]).await;
}
