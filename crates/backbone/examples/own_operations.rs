//! An own projector in operation: an event that it cannot take is parked and its key dies; a webhook is told, metrics
//! show it; somebody looks, mends, lets it be tried again, or discards it; and what he did is in the audit. The journey
//! of one event is told, and what was changed by hand is found by comparing with facts, and put right by an event. What
//! became of each request is told by spans of its trace.
//!
//! Run it with `cargo run -p tidings-backbone --example own_operations`. `own_event` comes before it.

use std::{error::Error, io::Read as _, io::Write as _, sync::Arc, time::Duration};

use serde_json::value::{RawValue, to_raw_value};
use sqlx::SqlitePool;
use tidings_backbone::{
    Clock, Conn, Db, EventIds, alerts,
    audit::{self, Actor},
    db::BACKBONE_MIGRATIONS,
    journey,
    log::{Log, Recorded},
    outbox,
    parking::{self, Discard, Filter, Redrive, Which},
    projector::{self, ApplyError, Gaps, Target},
    reconcile::{self, Compared, Comparison, Difference, Reconciled, Reconciler},
    relay::sink::webhook::Secret,
    trace,
};
use tidings_event::{Event, Metadata};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn Error + Send + Sync>;

/// What each customer has to pay. What has no price cannot be added.
struct Bill;

const EVENT_TYPES: &[&str] = &["order.placed", "bill.restated"];

#[async_trait::async_trait]
impl projector::Projector for Bill {
    fn name(&self) -> &'static str {
        "bill"
    }

    fn event_types(&self) -> &'static [&'static str] {
        EVENT_TYPES
    }

    async fn apply(&self, batch: &[Recorded], _: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        for Recorded { event, .. } in batch {
            if event.event_type == "bill.restated" {
                let cents: i64 = serde_json::from_str(event.payload.get()).map_err(ApplyError::event)?;
                let sql = "INSERT INTO bill VALUES (?, ?) ON CONFLICT (customer) DO UPDATE SET cents = excluded.cents";
                conn.execute("restating a bill", sql, vec![event.key.as_str().into(), cents.into()]).await?;
                continue;
            }
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

/// The bills that differ from the orders, which are the facts: who, what he should pay, and what his bill says.
const DIFFERING: &str = "SELECT customer, expected, COALESCE(cents, 0) FROM \
    (SELECT customer, SUM(cents) AS expected FROM orders JOIN price USING (item) GROUP BY customer) \
    LEFT JOIN bill USING (customer) WHERE COALESCE(cents, 0) <> expected";

/// Compares the bills with the orders.
struct Bills {
    clock: Clock,
}

impl Bills {
    async fn differing(db: &Db) -> tidings_backbone::Result<Vec<Difference>> {
        let rows = db.read().await?.conn().fetch("comparing bills", DIFFERING, Vec::new()).await?;
        let difference = |row: &tidings_backbone::db::Row| {
            let (kind, subject) = ("wrong total".into(), row.text(0)?);
            Ok(Difference { kind, subject, expected: row.int(1)?.to_string(), found: row.int(2)?.to_string() })
        };
        rows.iter().map(difference).collect()
    }
}

#[async_trait::async_trait]
impl Reconciled for Bills {
    fn projector(&self) -> &'static str {
        "bill"
    }

    fn event_types(&self) -> &'static [&'static str] {
        EVENT_TYPES
    }

    /// What differs only because events are on their way is otherwise once all that was committed is applied.
    async fn compare(&self, comparison: &Comparison<'_>) -> tidings_backbone::Result<Vec<Compared>> {
        let mut compared = Compared::of("bill.total");
        let before = Self::differing(comparison.db).await?;
        let is_settled = comparison.settle().await?;
        let after = Self::differing(comparison.db).await?;
        for difference in before {
            if is_settled && after.contains(&difference) {
                compared.push("wrong total", || difference);
            } else {
                compared.lagging += 1;
            }
        }
        Ok(vec![compared])
    }

    /// The events of a customer are in his order.
    fn key(&self, difference: &Difference) -> Option<String> {
        Some(difference.subject.clone())
    }

    /// Facts are asked anew, in the transaction of the events: what is ordered meanwhile comes behind them.
    async fn repair(
        &self,
        differences: &[Difference],
        ids: &EventIds,
        mut conn: Conn<'_>,
    ) -> tidings_backbone::Result<u64> {
        let rows = conn.fetch("repairing bills", DIFFERING, Vec::new()).await?;
        let mut events = Vec::new();
        for row in rows {
            let (customer, cents) = (row.text(0)?, row.int(1)?);
            if differences.iter().any(|difference| difference.subject == customer) {
                let failed = |source| tidings_backbone::Error::Json { doing: "stating a bill", source };
                let payload = to_raw_value(&cents).map_err(failed)?;
                events.push(event(ids, &self.clock, "bill.restated", &customer, payload));
            }
        }
        let count = events.len() as u64;
        outbox::emit(conn, events).await?;
        Ok(count)
    }
}

/// Something that happened to what a customer ordered or has to pay.
fn event(ids: &EventIds, clock: &Clock, event_type: &str, customer: &str, payload: Box<RawValue>) -> Event {
    let now = clock.now();
    // Where a request is served, its own: `trace::Sampling` begins a span for it.
    let traceparent = Some(trace::Context::root().to_string());
    Event {
        id: ids.next(now),
        event_type: event_type.to_owned(),
        schema_version: 1,
        aggregate_type: "bill".to_owned(),
        aggregate_id: customer.to_owned(),
        key: customer.to_owned(),
        version: 1,
        occurred_at: now,
        payload,
        metadata: Metadata { traceparent, ..Metadata::default() },
    }
}

/// A shop with events of two customers, who have both ordered something without a price.
async fn shop(db: &Db, clock: &Clock, pool: &SqlitePool) -> Result<(), Failed> {
    db.migrate(BACKBONE_MIGRATIONS).await?;
    let ids = EventIds::from_os();
    sqlx::raw_sql(
        "CREATE TABLE price (item TEXT PRIMARY KEY, cents INTEGER NOT NULL);
         CREATE TABLE orders (customer TEXT NOT NULL, item TEXT NOT NULL);
         CREATE TABLE bill (customer TEXT PRIMARY KEY, cents INTEGER NOT NULL);
         INSERT INTO price VALUES ('book', 900)",
    )
    .execute(pool)
    .await?;
    let orders = [("ada", "book"), ("ada", "lamp"), ("ada", "book"), ("grace", "unicorn"), ("grace", "book")];
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    for (customer, item) in orders {
        sqlx::query("INSERT INTO orders VALUES (?, ?)").bind(customer).bind(item).execute(&mut *tx).await?;
        outbox::emit(Conn::from(&mut *tx), vec![event(&ids, clock, "order.placed", customer, to_raw_value(item)?)])
            .await?;
    }
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

/// One cause is mended, and what waited is applied in its order. What can never be applied is discarded.
async fn mend(db: &Db, clock: &Clock, pool: &SqlitePool, handle: &projector::Handle) -> Result<(), Failed> {
    let me = Actor::new("me");
    sqlx::query("INSERT INTO price VALUES ('lamp', 4500)").execute(pool).await?;
    let (waiting, _) = parking::events(db.read().await?.conn(), "bill", "ada", None, 10).await?;
    let lamp = waiting[0].event_id.clone().unwrap_or_default();
    let ada = Redrive { filter: Filter::one("bill", "ada"), ..Redrive::default() };
    let plan = parking::redrive(db, &ada, &me, None, clock.now()).await?.map_err(|refusal| refusal.to_string())?;
    println!("{} events are tried again", plan.waiting);
    let (waiting, _) = parking::events(db.read().await?.conn(), "bill", "grace", None, 10).await?;
    let (key, id) = ("grace".to_owned(), waiting[0].event_id.clone().unwrap_or_default());
    let reason = "there are none".parse()?;
    let unicorn = Discard { projector: "bill".to_owned(), key, which: Which::Id(id), reason };
    parking::discard(db, &unicorn, &me, None, clock.now()).await?.map_err(|refusal| refusal.to_string())?;
    handle.settle(Duration::from_secs(10)).await?;
    for record in audit::list(db.read().await?.conn(), None, 10).await? {
        println!("{}: {} of `{}`", record.actor, record.action, record.key.unwrap_or_default());
    }

    // Where is one event, and since when? That of the lamp was applied late.
    let journey = handle.journey(lamp.parse()?).await?.ok_or("it is in the outbox")?;
    let [bill] = &journey.projectors[..] else { return Err("there is one projector".into()) };
    let after_ms = bill.at.map(|at| journey.after_ms(at));
    println!("{}: {} after {after_ms:?} ms at {}", journey.event.event_type, bill.state.name(), bill.projector);
    assert_eq!((bill.state, bill.at.is_some()), (journey::State::Applied, true));
    Ok(())
}

/// What somebody has changed by hand is found by comparing with facts, and put right by an event.
async fn reconcile(db: &Db, clock: &Clock, pool: &SqlitePool, handle: &projector::Handle) -> Result<(), Failed> {
    sqlx::query("UPDATE bill SET cents = 1 WHERE customer = 'ada'").execute(pool).await?;
    let bills: Vec<Arc<dyn Reconciled>> = vec![Arc::new(Bills { clock: clock.clone() })];
    let (log, options) = (Log::Embedded(db.clone()), reconcile::Options::default());
    // `Reconciler::run` does it on schedule; here somebody asks.
    let reconciler = Reconciler::new(db.clone(), log, clock.clone(), EventIds::from_os(), bills, options);
    let run = reconciler.run_now(None, &Actor::new("me")).await?;
    for example in run.checks.iter().flat_map(|check| &check.examples) {
        println!("{} of {}: {} instead of {}", example.kind, example.subject, example.found, example.expected);
    }
    assert_eq!(run.differences, 1);
    let repaired = reconciler.repair_now(&run.id, &Actor::new("me")).await?;
    println!("{} event puts it right", repaired.repair.events);
    handle.settle(Duration::from_secs(10)).await?;
    assert_eq!(reconciler.run_now(None, &Actor::new("me")).await?.differences, 0);
    Ok(())
}

/// What the projector did for each request: where an event was parked there is a span with its error, and another one
/// once it was applied.
fn traced(mut spans: mpsc::Receiver<trace::Span>) {
    let mut failed = Vec::new();
    while let Ok(span) = spans.try_recv() {
        if span.name == "project bill" {
            println!("trace {}: {}", span.context.trace_id, span.error.as_deref().unwrap_or("applied"));
            failed.push(span.error.is_some());
        }
    }
    assert_eq!((failed.len(), failed.iter().filter(|failed| **failed).count()), (7, 2));
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    // Whatever collects metrics; the names and their meaning are in `telemetry::METRICS`.
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder()?;
    // And whatever collects spans, such as a client of OTLP.
    let spans = trace::collect(1_000).ok_or("somebody collects spans already")?;
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

    mend(&db, &clock, &pool, &handle).await?;
    reconcile(&db, &clock, &pool, &handle).await?;
    let bills: Vec<(String, i64)> =
        sqlx::query_as("SELECT customer, cents FROM bill ORDER BY 1").fetch_all(&pool).await?;
    println!("{bills:?}");
    assert_eq!(bills, [("ada".to_owned(), 6_300), ("grace".to_owned(), 900)]);
    shutdown.cancel();
    running.await??;
    traced(spans);
    Ok(telling.await?)
}
