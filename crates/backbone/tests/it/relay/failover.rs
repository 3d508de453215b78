//! Another server takes the place of the one that was read.

use mysql_async::prelude::Queryable;

use tidings_testkit::{database::Engine, on_every_server};

use super::{servers, world::World};

on_every_server!(after_a_failover_the_replica_is_read_on_by_gtid);

async fn after_a_failover_the_replica_is_read_on_by_gtid(engine: Engine) {
    if engine == Engine::Mariadb { mariadb().await } else { mysql().await }
}

async fn mariadb() {
    let (primary, replica) = pair("mariadb").await;
    let follow = [
        "SET GLOBAL server_id = 2".to_owned(),
        format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', \
             MASTER_USE_GTID = slave_pos",
            port(&primary)
        ),
        "START SLAVE".to_owned(),
    ];
    let caught_up = ("SELECT @@gtid_binlog_pos", "SELECT MASTER_GTID_WAIT('{}', 30)");
    fail_over("mariadb", primary, replica, &follow, "STOP SLAVE", caught_up).await;
}

async fn mysql() {
    let (primary, replica) = pair("mysql").await;
    let follow = [
        "SET GLOBAL server_id = 2".to_owned(),
        format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'root', \
             SOURCE_PASSWORD = 'tidings', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
            port(&primary)
        ),
        "START REPLICA".to_owned(),
    ];
    let caught_up = ("SELECT @@gtid_executed", "SELECT WAIT_FOR_EXECUTED_GTID_SET('{}', 30)");
    fail_over("mysql", primary, replica, &follow, "STOP REPLICA", caught_up).await;
}

const SETS: [&str; 2] = ["relay-primary", "relay-replica"];

/// Two fresh servers of a kind.
async fn pair(service: &str) -> (String, String) {
    for set in SETS {
        servers::run(&["down", "--wipe", "--set", set, service]).await;
    }
    (servers::start(service, SETS[0]).await, servers::start(service, SETS[1]).await)
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

async fn fail_over(
    service: &str,
    primary: String,
    replica: String,
    follow: &[String],
    stop: &str,
    (executed, wait): (&str, &str),
) {
    let mut other = World::at(replica, "replica").await;
    if !other.is_mariadb {
        // Its account came to be before it followed anyone.
        other.sql("RESET BINARY LOGS AND GTIDS").await;
    } else {
        other.sql("RESET MASTER").await;
    }
    for sql in follow {
        other.sql(sql).await;
    }
    let mut world = World::at(primary, "failover").await;
    let mut relay = world.collect(None);
    relay.started().await;
    for start in (0..2_000).step_by(20) {
        world.emit(start..start + 20).await;
    }
    relay.until(500).await;
    let (checkpoint, mut seen) = (relay.checkpoint.clone(), relay.numbers());
    drop(relay);
    let executed: String = world.conn.query_first(executed).await.unwrap().unwrap();
    let wait = wait.replace("{}", &executed.replace('\n', ""));
    assert_eq!(other.conn.query_first::<i64, _>(wait).await.unwrap(), Some(0));
    servers::run(&["kill", "--set", SETS[0], service]).await;
    other.sql(stop).await;
    other.sql("USE tidings_failover").await;
    other.database = "tidings_failover".to_owned();
    other.emit(2_000..2_010).await;
    let mut relay = other.collect(checkpoint);
    relay.until(2_010 - seen.len()).await;
    seen.extend(relay.numbers());
    assert_eq!(seen, (0..2_010).collect::<Vec<_>>());
    for set in SETS {
        servers::run(&["down", "--wipe", "--set", set, service]).await;
    }
}
