//! An own projector in operation: an event that it cannot take is parked and its key dies; a webhook is told, metrics
//! show it; somebody looks, mends, lets it be tried again, or discards it; and what he did is in the audit.
//!
//! Run it with `cargo run -p tidings-backbone --example own_operations`. `own_event` comes before it.

use std::{error::Error, io::Read as _, io::Write as _, sync::Arc, time::Duration};

use sqlx::SqlitePool;
use tidings_backbone::{
    Clock, Conn, Db, EventIds, alerts,
    audit::{self, Actor},
    db::BACKBONE_MIGRATIONS,
    log::{Log, Recorded},
    outbox,
    parking::{self, Discard, Filter, Redrive, Which},
    projector::{self, ApplyError, Gaps, Target},
    relay::sink::webhook::Secret,
};
use tidings_event::{Event, Metadata};
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn Error + Send + Sync>;

/// What each customer has to pay. What has no price cannot be added.
struct Bill;

#[async_trait::async_trait]
impl projector::Projector for Bill {
    fn name(&self) -> &'static str {
        "bill"
    }

    fn event_types(&self) -> &'static [&'static str] {
        &["order.placed"]
    }

    async fn apply(&self, batch: &[Recorded], _: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        for Recorded { event, .. } in batch {
            let item: String = serde_json::from_str(event.payload.get()).map_err(ApplyError::event)?;
            let sql = "INSERT INTO bill (customer, cents) SELECT ?, cents FROM price WHERE item = ? \
                       ON CONFLICT (customer) DO UPDATE SET cents = bill.cents + excluded.cents";
            let args = vec![event.key.as_str().into(), item.as_str().into()];
            if conn.execute("adding to a bill", sql, args).await? == 0 {
                return Err(ApplyError::event(format!("`{item}` has no price")));
            }
        }
        Ok(())
    }
}

/// A shop with events of two customers, who have both ordered something without a price.
async fn shop(db: &Db, clock: &Clock, pool: &SqlitePool) -> Result<(), Failed> {
    db.migrate(BACKBONE_MIGRATIONS).await?;
    let ids = EventIds::from_os();
    sqlx::raw_sql(
        "CREATE TABLE price (item TEXT PRIMARY KEY, cents INTEGER NOT NULL);
         CREATE TABLE bill (customer TEXT PRIMARY KEY, cents INTEGER NOT NULL);
         INSERT INTO price VALUES ('book', 900)",
    )
    .execute(pool)
    .await?;
    let orders = [("ada", "book"), ("ada", "lamp"), ("ada", "book"), ("grace", "unicorn"), ("grace", "book")];
    let orders = orders.into_iter().enumerate().map(|(number, (customer, item))| {
        let now = clock.now();
        Ok(Event {
            id: ids.next(now),
            event_type: "order.placed".to_owned(),
            schema_version: 1,
            aggregate_type: "order".to_owned(),
            aggregate_id: number.to_string(),
            key: customer.to_owned(),
            version: 1,
            occurred_at: now,
            payload: serde_json::value::to_raw_value(item)?,
            metadata: Metadata::default(),
        })
    });
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    outbox::emit(Conn::from(&mut *tx), orders.collect::<Result<_, serde_json::Error>>()?).await?;
    Ok(tx.commit().await?)
}

/// Takes the first alert that is posted, as a pager would.
fn pager(listener: std::net::TcpListener) -> std::io::Result<String> {
    let (mut stream, _) = listener.accept()?;
    let (mut request, mut bytes) = (String::new(), [0; 4_096]);
    while !request.ends_with("}}") {
        let count = stream.read(&mut bytes)?;
        request.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n")?;
    Ok(request)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    // Whatever collects metrics; the names and their meaning are in `telemetry::METRICS`.
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder()?;
    let folder = tempfile::tempdir()?;
    let (clock, file) = (Clock::system(), folder.path().join("shop.db"));
    let db = Db::open_sqlite(&file).await?;
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await?;
    shop(&db, &clock, &pool).await?;

    let gaps = Gaps { attempts_max: 2, first: Duration::from_millis(10), longest: Duration::from_millis(10) };
    let runtime = projector::Runtime::new(db.clone(), Log::Embedded(db.clone()), clock.clone())
        .with(Arc::new(Bill), projector::Options { gaps, ..projector::Options::default() });
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    let running = tokio::spawn(runtime.run(shutdown.clone()));
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let options = alerts::Options {
        url: format!("http://{}/", listener.local_addr()?),
        secret: Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").ok_or("no secret")?,
        timeout: Duration::from_secs(5),
    };
    let alerted = tokio::task::spawn_blocking(|| pager(listener));
    let telling = tokio::spawn(alerts::Alerts::new(db.clone(), clock.clone(), &options)?.run(shutdown.clone()));

    // How far is it, and what waits? Also answered while nobody runs it.
    handle.settle(Duration::from_secs(10)).await?;
    let status = handle.statuses().await?.remove(0);
    println!("{}: {} behind, {} keys are dead", status.name, status.lag_events, status.dead_keys);
    assert_eq!((status.lag_events, status.dead_keys), (0, 2));
    for key in parking::list(db.read().await?.conn(), &Filter::default(), None, 10).await? {
        println!("{} waits with {} events: {}", key.key, key.waiting, key.error);
    }
    println!("the pager got: {}", alerted.await??.lines().last().unwrap_or_default());
    handle.publish_gauges().await?;
    let shown = metrics.render();
    let dead = shown.lines().find(|line| line.starts_with("tidings_parked_keys") && line.contains("dead"));
    assert_eq!(dead, Some("tidings_parked_keys{projector=\"bill\",state=\"dead\"} 2"));

    // One cause is mended, and what waited is applied in its order. What can never be applied is discarded.
    let me = Actor::new("me");
    sqlx::query("INSERT INTO price VALUES ('lamp', 4500)").execute(&pool).await?;
    let ada = Redrive { filter: Filter::one("bill", "ada"), ..Redrive::default() };
    let plan = parking::redrive(&db, &ada, &me, None, clock.now()).await?.map_err(|refusal| refusal.to_string())?;
    println!("{} events are tried again", plan.waiting);
    let (waiting, _) = parking::events(db.read().await?.conn(), "bill", "grace", None, 10).await?;
    let (key, id) = ("grace".to_owned(), waiting[0].event_id.clone().unwrap_or_default());
    let reason = "there are none".parse()?;
    let unicorn = Discard { projector: "bill".to_owned(), key, which: Which::Id(id), reason };
    parking::discard(&db, &unicorn, &me, None, clock.now()).await?.map_err(|refusal| refusal.to_string())?;
    handle.settle(Duration::from_secs(10)).await?;
    let bills: Vec<(String, i64)> =
        sqlx::query_as("SELECT customer, cents FROM bill ORDER BY 1").fetch_all(&pool).await?;
    println!("{bills:?}");
    assert_eq!(bills, [("ada".to_owned(), 6_300), ("grace".to_owned(), 900)]);
    for record in audit::list(db.read().await?.conn(), None, 10).await? {
        println!("{}: {} of `{}`", record.actor, record.action, record.key.unwrap_or_default());
    }
    shutdown.cancel();
    running.await??;
    Ok(telling.await?)
}
