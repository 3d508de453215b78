//! An own event type, emitted in an own sqlx transaction, and an own projector, which can be rebuilt: the
//! backbone as a library.
//!
//! Run it with `cargo run -p tidings-backbone --example own_event`.

use std::{error::Error, sync::Arc, time::Duration};

use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tidings_backbone::{
    Clock, Conn, Db, EventIds,
    audit::Actor,
    db::BACKBONE_MIGRATIONS,
    log::Log,
    log::Recorded,
    outbox, projector,
    projector::{
        ApplyError, Generation, Target,
        rebuild::{Generations, Start},
    },
};
use tidings_event::{Event, Metadata};
use tokio_util::sync::CancellationToken;

/// Counts orders per customer. Its table changes in the transaction that moves its position; the number of the
/// generation in its key lets the next one be built beside the one that is read.
struct OrdersPerCustomer;

#[async_trait::async_trait]
impl projector::Projector for OrdersPerCustomer {
    fn name(&self) -> &'static str {
        "orders_per_customer"
    }

    fn event_types(&self) -> &'static [&'static str] {
        &["order.placed"]
    }

    async fn apply(&self, batch: &[Recorded], target: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        let row = |recorded: &Recorded| [target.generation.0.into(), recorded.event.key.as_str().into()];
        let tail = "ON CONFLICT (generation, customer) DO UPDATE SET orders = orders + 1";
        let head = "INSERT INTO orders_per_customer (generation, customer) VALUES";
        conn.execute_rows("counting orders", head, batch.iter().map(row).collect(), tail).await?;
        Ok(())
    }

    fn generations(&self) -> Option<&dyn Generations> {
        Some(self)
    }
}

#[async_trait::async_trait]
impl Generations for OrdersPerCustomer {
    async fn remove(&self, generation: Generation, limit: usize, mut conn: Conn<'_>) -> tidings_backbone::Result<u64> {
        let sql = "DELETE FROM orders_per_customer WHERE (generation, customer) IN \
                   (SELECT generation, customer FROM orders_per_customer WHERE generation = ? LIMIT ?)";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        conn.execute("removing a generation", sql, vec![generation.0.into(), limit.into()]).await
    }
}

/// What readers are given: the live generation, whichever that is.
const COUNTED: &str = "SELECT customer, orders FROM orders_per_customer WHERE generation = \
    (SELECT live FROM projector_generation WHERE projector = 'orders_per_customer') ORDER BY customer";

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
         CREATE TABLE orders_per_customer (generation INTEGER NOT NULL, customer TEXT NOT NULL,
             orders INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (generation, customer))",
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
    let expected = [("ada".to_owned(), 2), ("grace".to_owned(), 1)];
    let counted: Vec<(String, i64)> = sqlx::query_as(COUNTED).fetch_all(&pool).await?;
    println!("{counted:?}");
    assert_eq!(counted, expected);

    // Somebody has counted by hand. The next generation is built from the log, and readers are given it at once.
    sqlx::query("UPDATE orders_per_customer SET orders = 7").execute(&pool).await?;
    handle.rebuilds().start("orders_per_customer", Start::default(), &Actor::new("ada"), None).await?;
    while handle.rebuilds().find("orders_per_customer").await?.is_some_and(|rebuild| !rebuild.state.is_finished()) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let counted: Vec<(String, i64)> = sqlx::query_as(COUNTED).fetch_all(&pool).await?;
    println!("{counted:?}");
    assert_eq!(counted, expected);
    shutdown.cancel();
    running.await??;
    Ok(())
}
