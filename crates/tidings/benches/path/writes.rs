//! Follows committed together, against one transaction each and against bare inserts.

use std::time::Instant;

use tidings_backbone::{Db, Durability, db::Value, ledger::Decide};
use tidings_community::relation::facts::Relation;

use crate::{
    table::Table,
    workload::{Bench, follows, rate},
};

const ALONE: usize = 3_000;
const TOGETHER: usize = 200_000;
/// Commands in flight at once, as many clients would have.
const IN_FLIGHT: usize = 4_096;
const BARE_BATCH_ROWS: usize = 1_024;

pub(crate) async fn measure(table: &mut Table) {
    let alone = one_transaction_each().await;
    let together = Bench::new().await;
    let commands = follows(TOGETHER, 1);
    let start = Instant::now();
    for chunk in commands.chunks(IN_FLIGHT) {
        for answer in together.ledgers.relations.submit_all(chunk.iter().cloned()).await {
            assert!(answer.unwrap().unwrap().changed);
        }
    }
    let ledger = rate(TOGETHER, start);
    let bare = bare_inserts(&together).await;
    table.ratio("follows committed together", ledger, ("one transaction each", alone), "10x");
    table.ratio("whole command path", ledger, ("bare multi-row inserts of the same rows", bare), "0.5x");
}

/// What each request does when it opens a transaction of its own, with the same SQL and durability.
async fn one_transaction_each() -> f64 {
    let bench = Bench::new().await;
    let relation = Relation::new(bench.store.ids.clone());
    let commands = follows(ALONE, 2);
    let start = Instant::now();
    for command in &commands {
        let mut tx = bench.store.db.write(Durability::Full).await.unwrap();
        relation.decide(&[command], bench.store.clock.now(), tx.conn()).await.unwrap();
        tx.commit().await.unwrap();
    }
    rate(ALONE, start)
}

/// The rows the ledger wrote, inserted into the same two tables of a new database and nothing else.
async fn bare_inserts(source: &Bench) -> f64 {
    let columns = "from_user_id, to_user_id, rel_status, version, created_at, updated_at";
    let facts: Vec<[Value; 6]> = copy(
        &source.store.db,
        "SELECT from_user_id, to_user_id, rel_status, version, created_at, updated_at FROM following ORDER BY id",
        |row| std::array::from_fn(|column| row.int(column).unwrap().into()),
    )
    .await;
    let events: Vec<[Value; 10]> = copy(
        &source.store.db,
        "SELECT event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version, occurred_at, \
         payload, metadata FROM outbox WHERE event_type = 'relation.followed' ORDER BY seq",
        |row| {
            std::array::from_fn(|column| match column {
                0 => row.bytes(0).unwrap().into(),
                2 | 6 | 7 => row.int(column).unwrap().into(),
                _ => row.text(column).unwrap().into(),
            })
        },
    )
    .await;
    let bench = Bench::new().await;
    let fact_head = format!("INSERT INTO following ({columns}) VALUES");
    let event_head = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, \
         event_key, version, occurred_at, payload, metadata) VALUES";
    let count = facts.len();
    let (mut facts, mut events) = (facts.into_iter(), events.into_iter());
    let start = Instant::now();
    while facts.len() > 0 {
        let mut tx = bench.store.db.write(Durability::Full).await.unwrap();
        let fact_rows = facts.by_ref().take(BARE_BATCH_ROWS).collect();
        let event_rows = events.by_ref().take(BARE_BATCH_ROWS).collect();
        tx.conn().execute_rows("bare", &fact_head, fact_rows, "").await.unwrap();
        tx.conn().execute_rows("bare", event_head, event_rows, "").await.unwrap();
        tx.commit().await.unwrap();
    }
    rate(count, start)
}

async fn copy<T>(db: &Db, sql: &'static str, read: impl Fn(&tidings_backbone::db::Row) -> T) -> Vec<T> {
    let mut tx = db.read().await.unwrap();
    tx.conn().fetch("copying", sql, vec![]).await.unwrap().iter().map(read).collect()
}
