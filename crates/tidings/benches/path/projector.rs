//! The relation projector catching up, against bare upserts of the rows it writes.

use std::{sync::Arc, time::Duration, time::Instant};

use tidings_backbone::{
    Durability,
    db::Value,
    projector::{Options, Runtime},
};
use tidings_community::relation::projection::RelationProjector;
use tokio_util::sync::CancellationToken;

use crate::{
    table::Table,
    workload::{Bench, follows, rate},
};

const EVENTS: usize = 200_000;
const BATCH_EVENTS: usize = 1_024;

pub(crate) async fn measure(table: &mut Table) {
    let bench = Bench::new().await;
    for chunk in follows(EVENTS, 3).chunks(4_096) {
        bench.ledgers.relations.submit_all(chunk.iter().cloned()).await;
    }
    let runtime = Runtime::new(bench.store.db.clone(), bench.store.log(), bench.store.clock.clone())
        .with(Arc::new(RelationProjector), Options::default());
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    let start = Instant::now();
    let running = tokio::spawn(runtime.run(shutdown.clone()));
    assert!(handle.settle(Duration::from_mins(10)).await.unwrap());
    let projector = rate(EVENTS, start);
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let bare = bare_upserts(&bench).await;
    table.ratio("projector catching up", projector, ("bare multi-row upserts of the same rows", bare), "0.6x");
}

/// For each batch of the log, the mirror rows and the counter rows the projector writes, upserted by bare
/// statements in one transaction: the same number of rows of the same sizes, in the same order.
async fn bare_upserts(source: &Bench) -> f64 {
    let mut tx = source.store.db.read().await.unwrap();
    let sql = "SELECT from_user_id, to_user_id, version, updated_at FROM following ORDER BY id";
    let rows = tx.conn().fetch("copying", sql, vec![]).await.unwrap();
    let pairs: Vec<[i64; 4]> = rows.iter().map(|row| std::array::from_fn(|column| row.int(column).unwrap())).collect();
    drop(tx);
    let bench = Bench::new().await;
    let mirror_head =
        "INSERT INTO follower (to_user_id, from_user_id, rel_status, version, created_at, updated_at) VALUES";
    let mirror_tail = "ON CONFLICT (to_user_id, from_user_id) DO UPDATE SET rel_status = excluded.rel_status, \
        version = excluded.version, updated_at = excluded.updated_at WHERE excluded.version > follower.version";
    let counter_head = "INSERT INTO user_counter (user_id, slots, checksum, followers_offset) VALUES";
    let counter_tail = "ON CONFLICT (user_id) DO UPDATE SET slots = excluded.slots, checksum = excluded.checksum, \
        followers_offset = excluded.followers_offset";
    let start = Instant::now();
    for batch in pairs.chunks(BATCH_EVENTS) {
        let mut mirror: Vec<[i64; 4]> = batch.to_vec();
        mirror.sort_unstable_by_key(|[from, to, ..]| (*from, *to));
        let users: std::collections::BTreeSet<i64> = batch.iter().flat_map(|[from, to, ..]| [*from, *to]).collect();
        let mirror: Vec<[Value; 6]> = mirror
            .into_iter()
            .map(|[from, to, version, at]| [to.into(), from.into(), 1.into(), version.into(), at.into(), at.into()])
            .collect();
        let counters: Vec<[Value; 4]> = users
            .into_iter()
            .map(|user| [user.into(), vec![0; 20].into(), 1_234_567_890.into(), 1_000.into()])
            .collect();
        let mut tx = bench.store.db.write(Durability::Rebuildable).await.unwrap();
        tx.conn().execute_rows("bare", mirror_head, mirror, mirror_tail).await.unwrap();
        tx.conn().execute_rows("bare", counter_head, counters, counter_tail).await.unwrap();
        tx.commit().await.unwrap();
    }
    rate(pairs.len(), start)
}
