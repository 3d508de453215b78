//! What nobody can be faster than: the rows, inserted by multi-row statements, and nothing else done.

use std::{collections::VecDeque, sync::Mutex, time::Instant};

use tidings_backbone::{Db, Durability, Result, db::Value};

/// One statement of many rows.
#[derive(Clone)]
pub(crate) struct Insert<const COLUMNS: usize> {
    pub(crate) head: &'static str,
    pub(crate) rows: Vec<[Value; COLUMNS]>,
    pub(crate) tail: String,
}

/// Two tables that change together.
pub(crate) type Transaction<const A: usize, const B: usize> = (Insert<A>, Insert<B>);

/// Commits all, with as many connections at once. Seconds it took.
pub(crate) async fn commit<const A: usize, const B: usize>(
    db: &Db,
    durability: Durability,
    at_once: usize,
    transactions: Vec<Transaction<A, B>>,
) -> f64 {
    let left = Mutex::new(VecDeque::from(transactions));
    let start = Instant::now();
    let connection = async || {
        loop {
            let Some(transaction) = left.lock().unwrap().pop_front() else { return };
            if at_once == 1 {
                commit_one(db, durability, transaction).await.unwrap();
                continue;
            }
            // Two that lock each other's rows: one of them is tried again, as the product does.
            while let Err(error) = commit_one(db, durability, transaction.clone()).await {
                assert!(error.is_transient() || error.is_lost_race(), "{error:?}");
            }
        }
    };
    futures::future::join_all((0..at_once).map(|_| connection())).await;
    start.elapsed().as_secs_f64()
}

async fn commit_one<const A: usize, const B: usize>(
    db: &Db,
    durability: Durability,
    (first, second): Transaction<A, B>,
) -> Result<()> {
    let mut tx = db.write(durability).await?;
    tx.conn().execute_rows("bare", first.head, first.rows, &first.tail).await?;
    tx.conn().execute_rows("bare", second.head, second.rows, &second.tail).await?;
    tx.commit().await
}
