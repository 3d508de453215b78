//! The relation projector catching up, against bare upserts of the rows it writes.

use std::collections::BTreeSet;

use tidings_backbone::{Durability, db::Value};

use crate::{
    bare::{self, Insert, Transaction},
    place::Place,
    stamped::{self, Projecting},
    table::Table,
    workload::{Bench, follows},
};

const EVENTS: usize = 200_000;
const BATCH_EVENTS: usize = 1_024;
/// Connections that upsert at once on a server, where each partition is applied by itself. The best counts.
const SERVER_CONNECTIONS: [usize; 3] = [1, 4, 12];

pub(crate) async fn measure(table: &mut Table, place: Place) {
    let bench = Bench::new(place).await;
    for chunk in follows(EVENTS, 3).chunks(4_096) {
        bench.ledgers.relations.submit_all(chunk.iter().cloned()).await;
    }
    let relay = bench.relay();
    stamped::relayed(&bench).await;
    drop(relay);
    let projecting = Projecting::start(&bench);
    projecting.wait_for(EVENTS).await;
    let projector = EVENTS as f64 / projecting.seconds();
    projecting.stop().await;
    let bare = bare_upserts(&bench, place).await;
    table.ratio("projector catching up", projector, ("bare multi-row upserts of the same rows", bare), "0.6x");
}

/// For each batch of the log, the mirror rows and the counter rows the projector writes, upserted by bare
/// statements in one transaction: the same number of rows of the same sizes, in the same order.
async fn bare_upserts(source: &Bench, place: Place) -> f64 {
    let pairs = {
        let mut tx = source.store.db.read().await.unwrap();
        let sql = "SELECT from_user_id, to_user_id, version, updated_at FROM following ORDER BY id";
        let rows = tx.conn().fetch("copying", sql, vec![]).await.unwrap();
        rows.iter().map(|row| std::array::from_fn(|column| row.int(column).unwrap())).collect::<Vec<[i64; 4]>>()
    };
    if place == Place::Embedded {
        let bench = Bench::new(place).await;
        let transactions = batches(&pairs, 1).map(|batch| (mirror(batch.clone(), UPSERT), packed_counters(&batch)));
        return pairs.len() as f64
            / bare::commit(&bench.store.db, Durability::Rebuildable, 1, transactions.collect()).await;
    }
    let mut best: f64 = 0.0;
    for connections in SERVER_CONNECTIONS {
        let bench = Bench::new(place).await;
        let transactions: Vec<Transaction<7, 8>> =
            batches(&pairs, connections).map(|batch| (mirror(batch.clone(), UPDATE), counters(&batch))).collect();
        let seconds = bare::commit(&bench.store.db, Durability::Rebuildable, connections, transactions).await;
        eprintln!("bare upserts on {connections} connections: {:.0}/s", pairs.len() as f64 / seconds);
        best = best.max(pairs.len() as f64 / seconds);
    }
    best
}

/// Batches of the log where it has so many partitions, in turn: the events of one user are in one of them.
fn batches(pairs: &[[i64; 4]], partitions: usize) -> impl Iterator<Item = Vec<[i64; 4]>> {
    let mut of_partition = vec![Vec::new(); partitions];
    for pair in pairs {
        of_partition[pair[0] as usize % partitions].push(*pair);
    }
    let mut of_partition: Vec<_> = of_partition.into_iter().map(Vec::into_iter).collect();
    std::iter::from_fn(move || {
        of_partition.rotate_left(1);
        let partition = of_partition.iter_mut().find(|left| left.len() > 0)?;
        Some(partition.take(BATCH_EVENTS).collect())
    })
}

const UPSERT: &str = "ON CONFLICT (generation, to_user_id, from_user_id) DO UPDATE SET \
    rel_status = excluded.rel_status, version = excluded.version, updated_at = excluded.updated_at \
    WHERE excluded.version > follower.version";
const UPDATE: &str = "ON DUPLICATE KEY UPDATE rel_status = VALUES(rel_status), version = VALUES(version), \
    updated_at = VALUES(updated_at)";

fn mirror(mut batch: Vec<[i64; 4]>, tail: &str) -> Insert<7> {
    batch.sort_unstable_by_key(|[from, to, ..]| (*to, *from));
    let row = |[from, to, version, at]: [i64; 4]| -> [Value; 7] {
        [1.into(), to.into(), from.into(), 1.into(), version.into(), at.into(), at.into()]
    };
    Insert {
        head: "INSERT INTO follower \
            (generation, to_user_id, from_user_id, rel_status, version, created_at, updated_at) VALUES",
        rows: batch.into_iter().map(row).collect(),
        tail: tail.to_owned(),
    }
}

fn packed_counters(batch: &[[i64; 4]]) -> Insert<5> {
    let row = |user: i64| [1.into(), user.into(), vec![0; 20].into(), 1_234_567_890.into(), 1_000.into()];
    Insert {
        head: "INSERT INTO user_counter (generation, user_id, slots, checksum, changes) VALUES",
        rows: users(batch).into_iter().map(row).collect(),
        tail: "ON CONFLICT (generation, user_id) DO UPDATE SET slots = excluded.slots, checksum = excluded.checksum, \
            changes = excluded.changes"
            .to_owned(),
    }
}

fn counters(batch: &[[i64; 4]]) -> Insert<8> {
    let row = |user: i64| [1.into(), user.into(), 1.into(), 1.into(), 0.into(), 0.into(), 0.into(), 1.into()];
    Insert {
        head: "INSERT INTO user_counter \
            (generation, user_id, followings, followers, posts, likes_received, favorites_received, changes) VALUES",
        rows: users(batch).into_iter().map(row).collect(),
        tail: "ON DUPLICATE KEY UPDATE followings = followings + VALUES(followings), \
            followers = followers + VALUES(followers), changes = changes + 1"
            .to_owned(),
    }
}

fn users(batch: &[[i64; 4]]) -> BTreeSet<i64> {
    batch.iter().flat_map(|[from, to, ..]| [*from, *to]).collect()
}
