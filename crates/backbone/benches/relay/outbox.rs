//! An outbox full of follows on a real server, and where they stand in its binlog.

use std::fmt::Write as _;

use mysql_async::{Conn, Opts, OptsBuilder, Row, prelude::Queryable};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tidings_backbone::{Clock, EventIds, relay::Position};
use tidings_event::payload::{Followed, Payload as _, Rest};

use crate::measure::rate;

pub(crate) const TABLE: &str = "outbox";
/// Rows that are committed together, as a busy ledger does.
const TRANSACTION_ROWS: usize = 100;
const USERS: i64 = 20_000;

const CREATE: &str = "CREATE TABLE outbox (
    seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, event_id BINARY(16) NOT NULL UNIQUE,
    event_type VARCHAR(255) NOT NULL, schema_version BIGINT NOT NULL, aggregate_type VARCHAR(255) NOT NULL,
    aggregate_id VARCHAR(255) NOT NULL, event_key VARCHAR(255) NOT NULL, version BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL, payload LONGTEXT NOT NULL, metadata LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

const INSERT: &str = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, \
     event_key, version, occurred_at, payload, metadata) VALUES ";

/// A database of its own with a full outbox.
pub(crate) struct Outbox {
    /// The address of the server.
    pub(crate) server: String,
    pub(crate) database: String,
    pub(crate) is_mariadb: bool,
    /// Where the first row's transaction begins.
    pub(crate) from: Position,
    /// Where the last row's ends.
    pub(crate) to: Position,
    conn: Conn,
}

impl Outbox {
    pub(crate) async fn fill(server: &str, rows: usize) -> Self {
        let database = format!("tidings_bench_{}", std::process::id());
        let mut conn = connect(server).await;
        let version: String = conn.query_first("SELECT VERSION()").await.unwrap().unwrap();
        let is_mariadb = version.contains("MariaDB");
        conn.query_drop(format!("CREATE DATABASE {database} CHARACTER SET utf8mb4")).await.unwrap();
        conn.query_drop(format!("USE {database}")).await.unwrap();
        conn.query_drop(CREATE).await.unwrap();
        // In a file of their own: looking a GTID up in what stands before is not what is measured.
        conn.query_drop("FLUSH BINARY LOGS").await.unwrap();
        let from = position(&mut conn, is_mariadb).await;
        let start = std::time::Instant::now();
        insert(&mut conn, rows).await;
        eprintln!("{rows} rows written to {version}, {:.0}/s", rate(rows, start));
        let to = position(&mut conn, is_mariadb).await;
        Self { server: server.to_owned(), database, is_mariadb, from, to, conn }
    }

    /// The address that a relay is given.
    pub(crate) fn source(&self) -> String {
        format!("{}/{}", self.server, self.database)
    }

    pub(crate) async fn drop(mut self) {
        self.conn.query_drop(format!("DROP DATABASE {}", self.database)).await.unwrap();
    }
}

pub(crate) async fn connect(server: &str) -> Conn {
    let opts = Opts::from_url(server).unwrap();
    Conn::new(OptsBuilder::from_opts(opts).prefer_socket(false)).await.unwrap()
}

async fn position(conn: &mut Conn, is_mariadb: bool) -> Position {
    let sql = if is_mariadb { "SHOW MASTER STATUS" } else { "SHOW BINARY LOG STATUS" };
    let row: Row = conn.query_first(sql).await.unwrap().unwrap();
    let (file, offset): (String, u64) = (row.get(0).unwrap(), row.get(1).unwrap());
    let gtid = match is_mariadb {
        true => {
            let sql = format!("SELECT BINLOG_GTID_POS('{file}', {offset})");
            conn.query_first::<String, _>(sql).await.unwrap().unwrap()
        }
        false => row.get::<String, usize>(4).unwrap().replace(['\n', ' '], ""),
    };
    Position { gtid, file, offset }
}

async fn insert(conn: &mut Conn, rows: usize) {
    let (clock, ids) = (Clock::system(), EventIds::from_os());
    let mut random = StdRng::seed_from_u64(5);
    for first in (0..rows).step_by(TRANSACTION_ROWS) {
        let count = TRANSACTION_ROWS.min(rows - first);
        let at = clock.now();
        let mut sql = INSERT.to_owned();
        for row in first..first + count {
            let (from, to) = (random.random_range(0..USERS), random.random_range(0..USERS));
            let payload = Followed {
                from: from.try_into().unwrap(),
                to: to.try_into().unwrap(),
                followed_at: at,
                rest: Rest::new(),
            };
            let (payload, id) = (payload.write().unwrap(), ids.next(at).to_string().replace('-', ""));
            let separator = if row == first { "" } else { ", " };
            write!(
                sql,
                "{separator}(X'{id}', 'relation.followed', 1, 'relation', '{from}:{to}', '{from}', 1, {}, \
                 '{payload}', '{{\"traceparent\":\"00-{id}-00f067aa0ba902b7-01\",\"request_id\":\"bench-{row}\",\
                 \"user_agent\":\"tidings-bench/1\",\"source_ip\":\"127.0.0.1\"}}')",
                at.0
            )
            .unwrap();
        }
        conn.query_drop(sql).await.unwrap();
    }
}
