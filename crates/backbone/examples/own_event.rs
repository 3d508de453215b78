//! An own event type, emitted in an own sqlx transaction, and an own projector: the backbone as a library.
//!
//! Run it with `cargo run -p tidings-backbone --example own_event`.

use std::{error::Error, sync::Arc, time::Duration};

use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tidings_backbone::{
    Clock, Conn, Db, EventIds, db::BACKBONE_MIGRATIONS, log::Log, log::Recorded, outbox, projector,
    projector::ApplyError,
};
use tidings_event::{Event, Metadata};
use tokio_util::sync::CancellationToken;

/// Counts orders per customer. Its table changes in the transaction that moves its position.
struct OrdersPerCustomer;

#[async_trait::async_trait]
impl projector::Projector for OrdersPerCustomer {
    fn name(&self) -> &'static str {
        "orders_per_customer"
    }

    fn event_types(&self) -> &'static [&'static str] {
        &["order.placed"]
    }

    async fn apply(&self, batch: &[Recorded], mut conn: Conn<'_>) -> Result<(), ApplyError> {
        let rows = batch.iter().map(|recorded| [recorded.event.key.as_str().into()]).collect();
        let tail = "ON CONFLICT (customer) DO UPDATE SET orders = orders + 1";
        let head = "INSERT INTO orders_per_customer (customer) VALUES";
        conn.execute_rows("counting orders", head, rows, tail).await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    let (clock, ids) = (Clock::system(), EventIds::from_os());
    let db = Db::open_sqlite(&file).await?;
    db.migrate(BACKBONE_MIGRATIONS).await?;

    // The application's own pool, tables and transaction: fact and event commit together, or neither does.
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await?;
    sqlx::raw_sql(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL);
         CREATE TABLE orders_per_customer (customer TEXT PRIMARY KEY, orders INTEGER NOT NULL DEFAULT 1)",
    )
    .execute(&pool)
    .await?;
    for customer in ["ada", "grace", "ada"] {
        let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
        let order: i64 = sqlx::query_scalar("INSERT INTO orders (customer) VALUES (?) RETURNING id")
            .bind(customer)
            .fetch_one(&mut *tx)
            .await?;
        let now = clock.now();
        let event = Event {
            id: ids.next(now),
            event_type: "order.placed".to_owned(),
            schema_version: 1,
            aggregate_type: "order".to_owned(),
            aggregate_id: order.to_string(),
            key: customer.to_owned(),
            version: 1,
            occurred_at: now,
            payload: serde_json::value::to_raw_value(&serde_json::json!({ "customer": customer }))?,
            metadata: Metadata::default(),
        };
        outbox::emit(Conn::from(&mut *tx), vec![event]).await?;
        tx.commit().await?;
    }

    let runtime = projector::Runtime::new(db.clone(), Log::Embedded(db), clock)
        .with(Arc::new(OrdersPerCustomer), projector::Options::default());
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    let running = tokio::spawn(runtime.run(shutdown.clone()));
    handle.settle(Duration::from_secs(10)).await?;
    shutdown.cancel();
    running.await??;

    let counted: Vec<(String, i64)> =
        sqlx::query_as("SELECT customer, orders FROM orders_per_customer ORDER BY customer").fetch_all(&pool).await?;
    println!("{counted:?}");
    assert_eq!(counted, [("ada".to_owned(), 2), ("grace".to_owned(), 1)]);
    Ok(())
}
