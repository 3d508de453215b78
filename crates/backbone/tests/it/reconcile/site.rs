//! Lights: facts with a version, a projection of them, and a relay where there is a server; what differs can be put
//! right by events.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tidings_backbone::{
    Clock, Conn, Db, Durability, Error, EventIds, Result,
    audit::{self, Actor},
    kafka::topics::{self, Purpose},
    log::{KafkaLog, Log, Recorded},
    outbox,
    projector::{ApplyError, Generation, Projector, Runtime, Target},
    reconcile::{Compared, Comparison, Difference, Options, Reconciled, Reconciler},
    relay::{self, Formatter, Relay, Route, Sink, sink},
};
use tidings_event::{Event, Metadata};
use tidings_testkit::database::{Engine, Place};
use tokio_util::sync::CancellationToken;

use crate::{
    kafka::Broker,
    world::{Running, World, quick},
};

pub(crate) const NAME: &str = "lights";
pub(crate) const TURNED: &str = "switch.turned";
/// From this version on nothing can be done for a light.
pub(crate) const BROKEN: i64 = 1_000_000;

/// A database with facts, and the way of their events to a projection.
pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) broker: Option<Broker>,
    pub(crate) lights: Arc<Lights>,
    /// Whether the relay polls.
    is_polled: bool,
}

/// Compares lights with their facts, and repairs them.
#[derive(Default)]
pub(crate) struct Lights {
    /// Held by whoever compares.
    pub(crate) gate: tokio::sync::Mutex<()>,
    /// Held by whoever has repaired a batch and not committed it.
    pub(crate) repair_gate: tokio::sync::Mutex<()>,
    pub(crate) compared: AtomicU64,
    pub(crate) repaired: AtomicU64,
    /// Whether comparing fails.
    pub(crate) is_broken: AtomicBool,
}

/// Ends a relay with the test.
pub(crate) struct Relaying {
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<Result<()>>,
}

impl Relaying {
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }
}

pub(crate) fn actor() -> Actor {
    Actor::new("cli:ada")
}

/// Without a schedule, quick, and with nothing that is on its way for long.
pub(crate) fn options() -> Options {
    Options {
        every: None,
        relay_late: Duration::ZERO,
        event_types: vec![TURNED],
        look_gap: Duration::from_millis(20),
        ..Options::default()
    }
}

impl Site {
    pub(crate) async fn on(engine: Engine) -> Self {
        Self::on_with_clock(engine, Clock::system()).await
    }

    pub(crate) async fn on_with_clock(engine: Engine, clock: Clock) -> Self {
        let mut world = World::on_with_clock(engine, clock).await;
        let broker = match engine {
            Engine::Sqlite => None,
            Engine::Mariadb | Engine::Mysql => Some(Broker::new(3).await),
        };
        if let Some(broker) = &broker {
            let dead = [(broker.options.dead_letter_topic(), Purpose::DeadLetters)];
            topics::ensure(&broker.options, &dead).await.unwrap();
            world.log = Log::Kafka(KafkaLog::new(world.db.clone(), broker.options.clone()));
        }
        let text = if engine == Engine::Sqlite { "TEXT" } else { "VARBINARY(64)" };
        let mut tx = world.db.write(Durability::Full).await.unwrap();
        for table in [
            format!("CREATE TABLE light (name {text} PRIMARY KEY, version BIGINT NOT NULL)"),
            format!("CREATE TABLE light_view (name {text} PRIMARY KEY, version BIGINT NOT NULL)"),
        ] {
            tx.conn().execute("making a table", table, vec![]).await.unwrap();
        }
        tx.commit().await.unwrap();
        Self { world, broker, lights: Arc::default(), is_polled: false }
    }

    /// The same, where relays poll.
    pub(crate) fn polled(mut self) -> Self {
        self.is_polled = true;
        self.world.log = self.log_on(self.world.db.clone());
        self
    }

    fn log_on(&self, db: Db) -> Log {
        let Some(broker) = &self.broker else { return Log::Embedded(db) };
        let log = KafkaLog::new(db, broker.options.clone());
        Log::Kafka(if self.is_polled { log.polled() } else { log })
    }

    /// Turns lights, each once more: fact and event.
    pub(crate) async fn turn(&self, lights: impl IntoIterator<Item = usize>) {
        let mut tx = self.world.db.write(Durability::Full).await.unwrap();
        for light in lights {
            let name = format!("light {light}");
            let upsert = tx.conn().engine().on_conflict("name", "version = light.version + 1");
            let sql = format!("INSERT INTO light (name, version) VALUES (?, 1) {upsert}");
            tx.conn().execute("turning", sql, vec![name.as_str().into()]).await.unwrap();
            let sql = "SELECT version FROM light WHERE name = ?";
            let row = tx.conn().fetch_optional("turning", sql, vec![name.as_str().into()]).await.unwrap().unwrap();
            let event = self.world.event(TURNED, &name, row.int(0).unwrap().unsigned_abs());
            outbox::emit(tx.conn(), vec![event]).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Starts the relay, where the log is not the outbox.
    pub(crate) fn relay(&self) -> Option<Relaying> {
        let broker = self.broker.as_ref()?;
        let Place::Url(url) = &self.world.database.place else { return None };
        let kafka = &broker.options;
        let place = sink::Options::Kafka(sink::kafka::Options {
            brokers: kafka.brokers.clone(),
            properties: kafka.properties.clone(),
            prefix: kafka.prefix.clone(),
            topics: Vec::new(),
            partitions: kafka.partitions,
            replicas: kafka.replicas,
        });
        let clock = self.world.clock.clone();
        let sink = Sink::open(&place, &kafka.prefix, &clock).unwrap();
        let formatter =
            Formatter::new(&[Route::default()], &kafka.prefix, clock.clone(), sink.record_bytes_max()).unwrap();
        let options = relay::Options::new(url.clone(), kafka.prefix.clone());
        let relay = match self.is_polled {
            true => Relay::polling(options, formatter, place, clock).unwrap(),
            false => Relay::new(options, formatter, sink, clock).unwrap(),
        };
        let shutdown = CancellationToken::new();
        Some(Relaying { task: tokio::spawn(relay.run(shutdown.clone())), shutdown })
    }

    /// Runs the projector.
    pub(crate) fn start(&self) -> Running {
        let world = &self.world;
        let projector = Arc::new(Viewer) as Arc<dyn Projector>;
        let runtime = Runtime::new(world.db.clone(), world.log.clone(), world.clock.clone()).with(projector, quick(2));
        let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
        Running { handle, task: tokio::spawn(runtime.run(shutdown.clone())), shutdown }
    }

    pub(crate) fn reconciler(&self, options: Options) -> Reconciler {
        self.reconciler_on(self.world.db.clone(), options)
    }

    /// As another process would have it.
    pub(crate) fn reconciler_on(&self, db: Db, options: Options) -> Reconciler {
        self.reconciler_of(Arc::clone(&self.lights), db, options)
    }

    /// The same, that compares as it is told apart from all others.
    pub(crate) fn reconciler_of(&self, lights: Arc<Lights>, db: Db, options: Options) -> Reconciler {
        let (log, clock, ids) = (self.log_on(db.clone()), self.world.clock.clone(), EventIds::from_os());
        Reconciler::new(db, log, clock, ids, vec![lights as Arc<dyn Reconciled>], options)
    }

    pub(crate) async fn facts(&self) -> BTreeMap<String, i64> {
        self.world.rows("SELECT name, version FROM light").await.into_iter().collect()
    }

    pub(crate) async fn shown(&self) -> BTreeMap<String, i64> {
        self.world.rows("SELECT name, version FROM light_view").await.into_iter().collect()
    }

    /// The actions in the audit, the oldest first, and who did them.
    pub(crate) async fn audit(&self) -> Vec<(String, String)> {
        let mut records = audit::list(self.world.db.read().await.unwrap().conn(), None, 100).await.unwrap();
        records.reverse();
        records.into_iter().map(|record| (record.action, record.actor)).collect()
    }
}

/// Keeps the version of each light.
struct Viewer;

#[async_trait::async_trait]
impl Projector for Viewer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn event_types(&self) -> &'static [&'static str] {
        &[TURNED]
    }

    async fn apply(&self, batch: &[Recorded], _: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        for Recorded { event, .. } in batch {
            let version = i64::try_from(event.version).unwrap();
            let newer = "version = CASE WHEN light_view.version < ? THEN ? ELSE light_view.version END";
            let upsert = conn.engine().on_conflict("name", newer);
            let sql = format!("INSERT INTO light_view (name, version) VALUES (?, ?) {upsert}");
            let args = vec![event.key.as_str().into(), version.into(), version.into(), version.into()];
            conn.execute("keeping a light", sql, args).await?;
        }
        Ok(())
    }
}

impl Lights {
    /// What differs now: by name the version that is the fact, and the one that is shown.
    async fn differing(db: &Db) -> Result<BTreeMap<String, (i64, i64)>> {
        let sql = "SELECT l.name, l.version, COALESCE(v.version, 0) FROM light l \
                   LEFT JOIN light_view v ON v.name = l.name WHERE v.version IS NULL OR v.version <> l.version";
        let rows = db.read().await?.conn().fetch("comparing lights", sql, vec![]).await?;
        rows.iter().map(|row| Ok((row.text(0)?, (row.int(1)?, row.int(2)?)))).collect()
    }
}

#[async_trait::async_trait]
impl Reconciled for Lights {
    fn projector(&self) -> &'static str {
        NAME
    }

    fn event_types(&self) -> &'static [&'static str] {
        &[TURNED]
    }

    async fn compare(&self, comparison: &Comparison<'_>) -> Result<Vec<Compared>> {
        assert_eq!((comparison.generation, comparison.identity), (Generation::FIRST, NAME));
        self.compared.fetch_add(1, Ordering::SeqCst);
        let _gate = self.gate.lock().await;
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(Error::Invariant { message: "told to fail".to_owned() });
        }
        let mut found = Self::differing(comparison.db).await?;
        for _ in 0..2 {
            if found.is_empty() {
                break;
            }
            assert!(comparison.settle().await?, "what is on its way did not arrive");
            let now = Self::differing(comparison.db).await?;
            found.retain(|name, versions| now.get(name) == Some(versions));
        }
        let mut compared = Compared { shards: 1, shards_differing: 1, ..Compared::of("lights.view") };
        for (name, (fact, shown)) in found {
            let kind = if shown == 0 { "light missing" } else { "light wrong" };
            if fact >= BROKEN {
                let (subject, expected, found) = (name.clone(), fact.to_string(), shown.to_string());
                let kind = "light broken";
                compared.push_unrepairable(kind, || Difference { kind: kind.into(), subject, expected, found });
                continue;
            }
            let difference = || Difference {
                kind: kind.into(),
                subject: name.clone(),
                expected: fact.to_string(),
                found: shown.to_string(),
            };
            compared.push(kind, difference);
        }
        Ok(vec![compared])
    }

    fn key(&self, difference: &Difference) -> Option<String> {
        Some(difference.subject.clone())
    }

    async fn repair(&self, differences: &[Difference], ids: &EventIds, mut conn: Conn<'_>) -> Result<u64> {
        let mut events = Vec::new();
        for difference in differences {
            assert!(["light missing", "light wrong"].contains(&&*difference.kind));
            let name = difference.subject.as_str();
            let sql = format!("SELECT version FROM light WHERE name = ? {}", conn.engine().for_update());
            let row = conn.fetch_optional("repairing", sql, vec![name.into()]).await?.unwrap();
            let version = row.int(0)?.max(difference.found.parse().unwrap()) + 1;
            let sql = "UPDATE light SET version = ? WHERE name = ?";
            conn.execute("repairing", sql, vec![version.into(), name.into()]).await?;
            let at = Clock::system().now();
            events.push(Event {
                id: ids.next(at),
                event_type: TURNED.to_owned(),
                schema_version: 1,
                aggregate_type: "switch".to_owned(),
                aggregate_id: name.to_owned(),
                key: name.to_owned(),
                version: version.unsigned_abs(),
                occurred_at: at,
                payload: serde_json::value::to_raw_value(name).unwrap(),
                metadata: Metadata::default(),
            });
        }
        let count = events.len() as u64;
        outbox::emit(conn, events).await?;
        self.repaired.fetch_add(1, Ordering::SeqCst);
        let _gate = self.repair_gate.lock().await;
        Ok(count)
    }
}
