//! A database of its own on any engine, a feature with facts and events, and a projector that can be told to fail.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tidings_backbone::{
    Clock, Conn, Db, Durability, Error, EventIds,
    audit::Actor,
    db::{BACKBONE_MIGRATIONS, MysqlOptions},
    ledger::{Decide, Ledger},
    log::{KafkaLog, Log, Recorded},
    outbox, parking,
    projector::{ApplyError, Gaps, Handle, Options, Projector, Runtime, Target},
};
use tidings_event::{Event, Metadata, Timestamp};
use tidings_testkit::database::{Database, Engine, Place};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longest time a test waits for the runtime before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) log: Log,
    pub(crate) clock: Clock,
    pub(crate) ids: EventIds,
    pub(crate) database: Database,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_clock(Clock::system()).await
    }

    /// A world whose projectors read Kafka.
    pub(crate) async fn on_kafka(broker: &crate::kafka::Broker) -> Self {
        Self::new().await.reading(broker).await
    }

    /// This world with projectors that read Kafka, where offsets alone name no event.
    pub(crate) async fn reading(mut self, broker: &crate::kafka::Broker) -> Self {
        self.record_order().await;
        self.log = Log::Kafka(KafkaLog::new(self.db.clone(), broker.options.clone()));
        self
    }

    /// Keeps in which order events are applied, rather than where they stand in the log.
    pub(crate) async fn record_order(&self) {
        self.execute("DROP TABLE applied").await;
        self.execute(match self.db.engine() {
            tidings_backbone::db::Engine::Sqlite => {
                "CREATE TABLE applied (seq INTEGER PRIMARY KEY, log_offset BIGINT NOT NULL, event_key TEXT NOT NULL, \
                 version BIGINT NOT NULL)"
            }
            _ => {
                "CREATE TABLE applied (seq BIGINT AUTO_INCREMENT PRIMARY KEY, log_offset BIGINT NOT NULL, \
                 event_key VARBINARY(255) NOT NULL, version BIGINT NOT NULL)"
            }
        })
        .await;
    }

    /// Events of their own, `(key, version)` each.
    pub(crate) fn events(&self, event_type: &str, events: impl IntoIterator<Item = (String, u64)>) -> Vec<Event> {
        events.into_iter().map(|(key, version)| self.event(event_type, &key, version)).collect()
    }

    pub(crate) async fn with_clock(clock: Clock) -> Self {
        Self::on_with_clock(Engine::Sqlite, clock).await
    }

    pub(crate) async fn on(engine: Engine) -> Self {
        Self::on_with_clock(engine, Clock::system()).await
    }

    pub(crate) async fn on_with_clock(engine: Engine, clock: Clock) -> Self {
        let database = Database::new(engine).await;
        let db = open(&database.place).await;
        db.migrate(BACKBONE_MIGRATIONS).await.unwrap();
        let text = match engine {
            Engine::Sqlite => "TEXT",
            Engine::Mariadb | Engine::Mysql => "VARBINARY(255)",
        };
        let mut tx = db.write(Durability::Full).await.unwrap();
        for table in [
            format!("CREATE TABLE switch (name {text} PRIMARY KEY, is_on BIGINT NOT NULL CHECK (is_on IN (0, 1)))"),
            format!(
                "CREATE TABLE applied (log_offset BIGINT PRIMARY KEY, event_key {text} NOT NULL, \
                 version BIGINT NOT NULL)"
            ),
        ] {
            tx.conn().execute("making a table", table, vec![]).await.unwrap();
        }
        tx.commit().await.unwrap();
        Self { log: Log::Embedded(db.clone()), db, clock, ids: EventIds::from_seed(7), database }
    }

    /// The same database through a handle of its own, as another process would have it.
    pub(crate) async fn reopen(&self) -> Db {
        open(&self.database.place).await
    }

    pub(crate) fn event(&self, event_type: &str, key: &str, version: u64) -> Event {
        let now = self.clock.now();
        Event {
            id: self.ids.next(now),
            event_type: event_type.to_owned(),
            schema_version: 1,
            aggregate_type: "switch".to_owned(),
            aggregate_id: key.to_owned(),
            key: key.to_owned(),
            version,
            occurred_at: now,
            payload: serde_json::value::to_raw_value(&key).unwrap(),
            metadata: Metadata::default(),
        }
    }

    /// Commits events of their own, `(key, version)` each.
    pub(crate) async fn emit(&self, event_type: &str, events: impl IntoIterator<Item = (String, u64)>) {
        let events = events.into_iter().map(|(key, version)| self.event(event_type, &key, version)).collect();
        let mut tx = self.db.write(Durability::Full).await.unwrap();
        outbox::emit(tx.conn(), events).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) fn start(&self, projector: &Arc<Recorder>, options: Options) -> Running {
        self.start_as(Arc::clone(projector) as Arc<dyn Projector>, options)
    }

    pub(crate) fn start_as(&self, projector: Arc<dyn Projector>, options: Options) -> Running {
        let runtime = Runtime::new(self.db.clone(), self.log.clone(), self.clock.clone()).with(projector, options);
        let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
        Running { handle, task: tokio::spawn(runtime.run(shutdown.clone())), shutdown }
    }

    /// Starts a ledger of switches.
    pub(crate) fn ledger(&self) -> (Ledger<Switches>, JoinHandle<()>, CancellationToken) {
        self.ledger_on(self.db.clone())
    }

    pub(crate) fn ledger_on(&self, db: Db) -> (Ledger<Switches>, JoinHandle<()>, CancellationToken) {
        let decide = Switches { ids: self.ids.clone() };
        let (ledger, worker) = Ledger::new(decide, db, self.clock.clone());
        let shutdown = CancellationToken::new();
        (ledger, tokio::spawn(worker.run(shutdown.clone())), shutdown)
    }

    /// What the projection holds: for each key its versions in the order of the log.
    pub(crate) async fn applied(&self) -> HashMap<String, Vec<i64>> {
        let mut applied: HashMap<String, Vec<i64>> = HashMap::new();
        for row in self.rows("SELECT event_key, version FROM applied ORDER BY log_offset").await {
            applied.entry(row.0).or_default().push(row.1);
        }
        applied
    }

    /// The same in the order in which it was applied, which is that of the log for each key.
    pub(crate) async fn applied_by_key(&self) -> HashMap<String, Vec<i64>> {
        let mut applied: HashMap<String, Vec<i64>> = HashMap::new();
        for row in self.rows("SELECT event_key, version FROM applied ORDER BY seq").await {
            applied.entry(row.0).or_default().push(row.1);
        }
        applied
    }

    pub(crate) async fn rows(&self, sql: &'static str) -> Vec<(String, i64)> {
        let mut tx = self.db.read().await.unwrap();
        let rows = tx.conn().fetch("looking", sql, vec![]).await.unwrap();
        rows.iter().map(|row| (row.text(0).unwrap(), row.int(1).unwrap())).collect()
    }

    pub(crate) async fn execute(&self, sql: &'static str) {
        let mut tx = self.db.write(Durability::Full).await.unwrap();
        tx.conn().execute("preparing", sql, vec![]).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        let mut tx = self.db.read().await.unwrap();
        tx.conn().fetch_optional("counting", sql, vec![]).await.unwrap().unwrap().int(0).unwrap()
    }

    pub(crate) async fn parked(&self) -> Vec<parking::ParkedKey> {
        let mut tx = self.db.read().await.unwrap();
        parking::list(tx.conn(), &parking::Filter::default(), None, 1_000).await.unwrap()
    }

    /// Lets keys of the recorder be tried again as an operator does; answers what was planned.
    pub(crate) async fn redrive(&self, wanted: &parking::Redrive) -> Result<parking::Plan, parking::Refusal> {
        parking::redrive(&self.db, wanted, &Actor::new("cli:ada"), None, self.clock.now()).await.unwrap()
    }

    /// The same for one key; answers whether it was parked.
    pub(crate) async fn redrive_key(&self, key: &str) -> bool {
        let filter = parking::Filter::one("recorder", key);
        self.redrive(&parking::Redrive { filter, ..Default::default() }).await.is_ok()
    }

    /// Waits until `condition` holds, looking again after each commit.
    pub(crate) async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let mut commits = self.db.commits();
        let held = async {
            loop {
                commits.mark_unchanged();
                if condition().await {
                    return;
                }
                commits.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("never came about: {what}"));
    }
}

pub(crate) async fn open(place: &Place) -> Db {
    match place {
        Place::File(file) => Db::open_sqlite(file).await.unwrap(),
        Place::Url(url) => Db::open_mysql(MysqlOptions::from_url(url).unwrap()).await.unwrap(),
    }
}

pub(crate) struct Running {
    pub(crate) handle: Handle,
    pub(crate) task: JoinHandle<tidings_backbone::Result<()>>,
    pub(crate) shutdown: CancellationToken,
}

/// A test that fails ends its runtime too: a consumer group has a thread that would outlive it.
impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Running {
    pub(crate) async fn settle(&self) {
        let settled = self.handle.settle(PATIENCE).await.unwrap();
        assert!(settled, "the projector did not settle: {:?}", self.handle.statuses().await);
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        (&mut self.task).await.unwrap().unwrap();
    }
}

/// Quick retries for tests.
pub(crate) fn quick(attempts_max: u32) -> Options {
    let gaps = Gaps { attempts_max, first: Duration::from_millis(1), longest: Duration::from_millis(4) };
    Options { gaps, ..Options::default() }
}

/// How an event makes the recorder fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Error,
    Panic,
    Dependency,
    /// An error, with a savepoint of the projector's own left open.
    OpenSavepoint,
    /// No end.
    Hang,
    /// A panic after the commit.
    PanicAfterCommit,
}

/// A projector that records what it applies, and fails on the events it is told to, after having written.
pub(crate) struct Recorder {
    name: &'static str,
    faults: Mutex<HashMap<(String, u64), (Fault, u32)>>,
    tries: Mutex<HashMap<(String, u64), u32>>,
    /// Batches that it was given.
    calls: AtomicU32,
}

impl Recorder {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, faults: Mutex::default(), tries: Mutex::default(), calls: AtomicU32::default() })
    }

    /// Lets the event fail this many times when it is tried alone.
    pub(crate) fn fail(&self, key: &str, version: u64, fault: Fault, times: u32) {
        self.faults.lock().unwrap().insert((key.to_owned(), version), (fault, times));
    }

    pub(crate) fn tries_alone(&self, key: &str, version: u64) -> u32 {
        self.tries.lock().unwrap().get(&(key.to_owned(), version)).copied().unwrap_or_default()
    }

    /// How often it was given a batch.
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn fault(&self, batch: &[Recorded]) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        for recorded in batch {
            let id = (recorded.event.key.clone(), recorded.event.version);
            if batch.len() == 1 {
                *self.tries.lock().unwrap().entry(id.clone()).or_default() += 1;
            }
            let Some((fault, times)) = faults.get_mut(&id) else { continue };
            if *times == 0 {
                continue;
            }
            if *fault == Fault::PanicAfterCommit {
                continue;
            }
            if batch.len() == 1 || *fault == Fault::Dependency {
                *times -= 1;
            }
            return Some(*fault);
        }
        None
    }
}

#[async_trait::async_trait]
impl Projector for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    fn event_types(&self) -> &'static [&'static str] {
        &["switch.turned", "switch.renamed"]
    }

    async fn apply(&self, batch: &[Recorded], _target: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let rows = batch
            .iter()
            .map(|recorded| {
                let version = i64::try_from(recorded.event.version).unwrap();
                [recorded.offset.0.into(), recorded.event.key.as_str().into(), version.into()]
            })
            .collect();
        let head = "INSERT INTO applied (log_offset, event_key, version) VALUES";
        conn.execute_rows("recording", head, rows, "").await?;
        match self.fault(batch) {
            None => Ok(()),
            Some(Fault::Error) => Err(ApplyError::event("told to fail")),
            Some(Fault::Panic | Fault::PanicAfterCommit) => panic!("told to panic"),
            Some(Fault::OpenSavepoint) => {
                conn.execute("saving", "SAVEPOINT batch", vec![]).await?;
                Err(ApplyError::event("told to fail"))
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Dependency) => {
                Err(ApplyError::Dependency(Error::Invariant { message: "told to be down".to_owned() }))
            }
        }
    }

    async fn committed(&self, batch: &[Recorded]) {
        let faults = self.faults.lock().unwrap().clone();
        let fault = |recorded: &Recorded| faults.get(&(recorded.event.key.clone(), recorded.event.version)).copied();
        let panics = batch.iter().filter_map(fault).any(|(fault, _)| fault == Fault::PanicAfterCommit);
        assert!(!panics, "told to panic after the commit");
    }
}

/// Turns switches on and off; turning one named `panic` panics, and turning one to 2 breaks a constraint of the
/// database.
#[derive(Debug)]
pub(crate) struct Switches {
    pub(crate) ids: EventIds,
}

impl Decide for Switches {
    type Command = (String, i64);
    type Outcome = bool;
    type Refusal = String;

    const NAME: &'static str = "switch";

    async fn decide(
        &self,
        commands: &[&(String, i64)],
        at: Timestamp,
        mut conn: Conn<'_>,
    ) -> tidings_backbone::Result<Vec<Result<bool, String>>> {
        let mut decided = Vec::new();
        for (name, turn) in commands {
            assert_ne!(name, "panic", "told to panic");
            if name.is_empty() {
                decided.push(Err("a switch needs a name".to_owned()));
                continue;
            }
            let sql = format!("SELECT is_on FROM switch WHERE name = ? {}", conn.engine().for_update());
            let row = conn.fetch_optional("reading a switch", sql, vec![name.as_str().into()]).await?;
            let is_new = row.is_none();
            let is_on = row.map_or(Ok(0), |row| row.int(0))?;
            decided.push(Ok(is_on != *turn));
            if is_on == *turn {
                continue;
            }
            // A new one that another process stores first is met by its unique name, and decided anew.
            let sql = match is_new {
                true => "INSERT INTO switch (is_on, name) VALUES (?, ?)",
                false => "UPDATE switch SET is_on = ? WHERE name = ?",
            };
            conn.execute("turning a switch", sql, vec![(*turn).into(), name.as_str().into()]).await?;
            let event = Event {
                id: self.ids.next(at),
                event_type: "switch.turned".to_owned(),
                schema_version: 1,
                aggregate_type: "switch".to_owned(),
                aggregate_id: name.clone(),
                key: name.clone(),
                version: 1,
                occurred_at: at,
                payload: serde_json::value::to_raw_value(turn).unwrap(),
                metadata: Metadata::default(),
            };
            outbox::emit(conn.reborrow(), vec![event]).await?;
        }
        Ok(decided)
    }
}
