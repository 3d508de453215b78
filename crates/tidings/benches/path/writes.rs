//! Follows committed together, against one transaction each and against bare inserts.

use std::time::Instant;

use tidings_backbone::{
    Db, Durability,
    db::{Row, Value},
    ledger::Decide,
};
use tidings_community::relation::facts::{Command, Relation};

use crate::{
    bare::{self, Insert},
    place::Place,
    table::Table,
    workload::{Bench, follows, rate},
};

const ALONE: usize = 3_000;
const TOGETHER: usize = 200_000;
/// Commands in flight at once, as many clients would have.
const IN_FLIGHT: usize = 4_096;
/// Connections of a process that writes to a server, unless it is told otherwise.
const CONNECTIONS: usize = 16;
/// Rows of a bare transaction: as many as a batch of the ledger has at most, and more. The best counts.
const BARE_BATCHES_ROWS: [usize; 2] = [1_024, 4_096];

pub(crate) async fn measure(table: &mut Table, place: Place) {
    let alone = one_transaction_each(place, 1).await;
    let many_alone = match place {
        Place::Embedded => None,
        Place::Distributed(_) => Some(one_transaction_each(place, CONNECTIONS).await),
    };
    let together = Bench::new(place).await;
    let commands = follows(TOGETHER, 1);
    let start = Instant::now();
    for chunk in commands.chunks(IN_FLIGHT) {
        for answer in together.ledgers.relations.submit_all(chunk.iter().cloned()).await {
            assert!(answer.unwrap().unwrap().changed);
        }
    }
    let ledger = rate(TOGETHER, start);
    let bare = bare_inserts(&together, place).await;
    table.ratio("follows committed together", ledger, ("one transaction each", alone), "10x");
    if let Some(many_alone) = many_alone {
        table.ratio(
            "follows committed together",
            ledger,
            ("one transaction each, 16 connections at once", many_alone),
            "–",
        );
    }
    let peer = ("bare multi-row inserts of the same rows", bare);
    table.ratio("whole command path", ledger, peer, place.target("0.5x", "0.7x"));
}

/// What each request does when it opens a transaction of its own, with the same SQL and durability; with so
/// many connections at once.
async fn one_transaction_each(place: Place, connections: usize) -> f64 {
    let bench = Bench::new(place).await;
    let relation = Relation::new(bench.store.ids.clone());
    let commands = follows(ALONE * connections.min(4), 2);
    let one = async |command: &Command| -> tidings_backbone::Result<()> {
        let mut tx = bench.store.db.write(Durability::Full).await?;
        relation.decide(&[command], bench.store.clock.now(), tx.conn()).await?.remove(0).unwrap();
        tx.commit().await
    };
    let connection = async |first: usize| {
        for command in commands[first..].iter().step_by(connections) {
            one(command).await.unwrap();
        }
    };
    let start = Instant::now();
    futures::future::join_all((0..connections).map(connection)).await;
    rate(commands.len(), start)
}

/// The rows the ledger wrote, inserted into the same two tables of a new database and nothing else.
async fn bare_inserts(source: &Bench, place: Place) -> f64 {
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
    let fact_head =
        "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at) VALUES";
    let event_head = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, \
         event_key, version, occurred_at, payload, metadata) VALUES";
    let mut best: f64 = 0.0;
    for batch_rows in BARE_BATCHES_ROWS {
        let bench = Bench::new(place).await;
        let fact = |rows: &[[Value; 6]]| Insert { head: fact_head, rows: rows.to_vec(), tail: String::new() };
        let event = |rows: &[[Value; 10]]| Insert { head: event_head, rows: rows.to_vec(), tail: String::new() };
        let batches = facts.chunks(batch_rows).zip(events.chunks(batch_rows));
        let transactions = batches.map(|(facts, events)| (fact(facts), event(events))).collect();
        let seconds = bare::commit(&bench.store.db, Durability::Full, 1, transactions).await;
        best = best.max(facts.len() as f64 / seconds);
    }
    best
}

async fn copy<T>(db: &Db, sql: &'static str, read: impl Fn(&Row) -> T) -> Vec<T> {
    let mut tx = db.read().await.unwrap();
    tx.conn().fetch("copying", sql, vec![]).await.unwrap().iter().map(read).collect()
}
