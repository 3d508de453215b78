//! A database of its own on a running server, with an outbox table, and whoever collects batches.

use std::{future::Future, time::Duration};

use mysql_async::{Conn, Opts, OptsBuilder, prelude::Queryable};
use tidings_backbone::{
    Clock,
    relay::{Checkpoint, Formatter, Options, Record, Route, Source, State},
};
use tidings_testkit::database::Engine;

/// Longest time a test waits before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Makes each test of the list a test on MariaDB and a test on MySQL; what can be shown on one of them alone stands
/// behind its name: `on_both!(first, second; mysql: third)`.
macro_rules! on_both {
    ($($lists:tt)+) => {
        $crate::relay::world::on_servers!($crate::relay::world::World, only_on_mariadb, only_on_mysql; $($lists)+);
    };
}
pub(crate) use on_both;

/// The same for whatever `on` makes for an engine and the path of a test. The names of the modules are those by which
/// `scripts/test` knows what was left out.
macro_rules! on_servers {
    (@one $module:ident, $engine:ident, $on:ty, $($name:ident),+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let engine = tidings_testkit::database::Engine::$engine;
                if engine.is_left_out() {
                    eprintln!("not run: this engine was left out");
                    return;
                }
                super::$name(<$on>::on(engine, concat!(module_path!(), "::", stringify!($name))).await).await;
            })+
        }
    };
    (
        $on:ty, $on_mariadb:ident, $on_mysql:ident; $($both:ident),+ $(,)?
        $(; mariadb: $($mariadb:ident),+ $(,)?)? $(; mysql: $($mysql:ident),+ $(,)?)?
    ) => {
        $crate::relay::world::on_servers!(@one $on_mariadb, Mariadb, $on, $($both),+ $($(, $mariadb)+)?);
        $crate::relay::world::on_servers!(@one $on_mysql, Mysql, $on, $($both),+ $($(, $mysql)+)?);
    };
}
pub(crate) use on_servers;

pub(crate) const OUTBOX: &str = "CREATE TABLE outbox (
    seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, event_id BINARY(16) NOT NULL UNIQUE,
    event_type VARCHAR(255) NOT NULL, schema_version BIGINT NOT NULL, aggregate_type VARCHAR(255) NOT NULL,
    aggregate_id VARCHAR(255) NOT NULL, event_key VARCHAR(255) NOT NULL, version BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL, payload LONGTEXT NOT NULL, metadata LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

pub(crate) struct World {
    pub(crate) conn: Conn,
    pub(crate) database: String,
    /// The group of its relays.
    pub(crate) group: String,
    pub(crate) address: String,
    pub(crate) is_mariadb: bool,
}

impl World {
    /// A fresh database for the test of this path, on a server that all tests share.
    pub(crate) async fn on(engine: Engine, test: &str) -> Self {
        let variable = match engine {
            Engine::Sqlite => panic!("SQLite has no relay"),
            Engine::Mariadb => "TIDINGS_TEST_MARIADB",
            Engine::Mysql => "TIDINGS_TEST_MYSQL",
        };
        let address = std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} is not set: run `scripts/services up`, then eval its `env`"));
        Self::at(address, &short(test)).await
    }

    /// A fresh database on the server at `address`.
    pub(crate) async fn at(address: String, name: &str) -> Self {
        // Names have at most 64 bytes.
        let database = format!("tidings_{}", &name[..name.len().min(56)]);
        let mut conn = connect(&address).await;
        conn.query_drop(format!("DROP DATABASE IF EXISTS {database}")).await.unwrap();
        conn.query_drop(format!("CREATE DATABASE {database} CHARACTER SET utf8mb4")).await.unwrap();
        conn.query_drop(format!("USE {database}")).await.unwrap();
        conn.query_drop(OUTBOX).await.unwrap();
        let version: String = conn.query_first("SELECT VERSION()").await.unwrap().unwrap();
        Self { conn, group: database.clone(), database, address, is_mariadb: version.contains("MariaDB") }
    }

    pub(crate) async fn sql(&mut self, sql: impl AsRef<str>) {
        self.conn.query_drop(sql.as_ref()).await.unwrap();
    }

    /// Another connection to the same database.
    pub(crate) async fn another(&self) -> Conn {
        let mut conn = connect(&self.address).await;
        conn.query_drop(format!("USE {}", self.database)).await.unwrap();
        conn
    }

    /// Commits an event for each number, all in one statement.
    pub(crate) async fn emit(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let sql = insert(numbers);
        self.sql(sql).await;
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(format!("{}/{}", self.address, self.database), self.group.clone())
    }

    pub(crate) fn collect(&self, checkpoint: Option<Checkpoint>) -> Collector {
        Collector::start(self.options(), checkpoint)
    }
}

/// A name for the test of this path. Tests of two files, and of two engines, have names that differ.
pub(crate) fn short(test: &str) -> String {
    let name = test.rsplit("::").next().unwrap();
    format!("{:08x}_{name}", crc32fast::hash(test.as_bytes()))
}

async fn connect(address: &str) -> Conn {
    let opts = Opts::from_url(address).unwrap();
    Conn::new(OptsBuilder::from_opts(opts).prefer_socket(false)).await.unwrap()
}

/// The statement that commits an event for each number. Event n has key n % 7.
pub(crate) fn insert(numbers: impl IntoIterator<Item = u64>) -> String {
    insert_of(7, numbers)
}

/// The same with so many keys.
pub(crate) fn insert_of(keys: u64, numbers: impl IntoIterator<Item = u64>) -> String {
    let row = |number: u64| {
        format!(
            "(UNHEX('{number:032x}'), 'test.happened', 1, 'thing', '{number}', 'k{}', {}, UNIX_TIMESTAMP() * 1000, \
             '{{\"n\":{number}}}', '{{}}')",
            number % keys,
            number + 1
        )
    };
    let rows: Vec<String> = numbers.into_iter().map(row).collect();
    format!(
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, \
         version, occurred_at, payload, metadata) VALUES {}",
        rows.join(", ")
    )
}

/// Takes batches as a sink would: records and checkpoint in one step.
pub(crate) struct Collector {
    source: Source,
    options: Options,
    pub(crate) records: Vec<Record>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) largest_batch: usize,
}

impl Collector {
    pub(crate) fn start(options: Options, checkpoint: Option<Checkpoint>) -> Self {
        Self::start_as(&Route::default(), options, checkpoint)
    }

    /// With records in another format.
    pub(crate) fn start_as(route: &Route, options: Options, checkpoint: Option<Checkpoint>) -> Self {
        Self::start_with(route, 1_000_000, options, checkpoint)
    }

    /// The same, and records may have so many bytes.
    pub(crate) fn start_with(
        route: &Route,
        bytes_max: usize,
        options: Options,
        checkpoint: Option<Checkpoint>,
    ) -> Self {
        let formatter = Formatter::new(std::slice::from_ref(route), "tidings", Clock::system(), bytes_max).unwrap();
        let source = Source::start(options.clone(), formatter, checkpoint.clone(), Clock::system()).unwrap();
        Self { source, options, records: Vec::new(), checkpoint, largest_batch: 0 }
    }

    /// As a process that was killed and started again: behind the last batch that was taken.
    pub(crate) fn restarted(self) -> Self {
        let Self { source, options, checkpoint, .. } = self;
        drop(source);
        Self::start(options, checkpoint)
    }

    /// Takes one batch.
    pub(crate) async fn step(&mut self) {
        self.try_step().await.unwrap();
    }

    pub(crate) async fn try_step(&mut self) -> tidings_backbone::Result<()> {
        let handle = self.source.handle();
        let Ok(batch) = tokio::time::timeout(PATIENCE, self.source.next()).await else {
            panic!("nothing came for too long: {:?}", handle.status());
        };
        let batch = batch?;
        self.largest_batch = self.largest_batch.max(batch.records.len());
        self.records.extend(batch.records.iter().cloned());
        self.checkpoint = Some(batch.checkpoint.clone());
        Ok(())
    }

    /// Takes batches until all is read that was there before the first start.
    pub(crate) async fn started(&mut self) {
        self.until_checkpoint(|checkpoint| checkpoint.recovery.as_ref().is_none_or(|reading| reading.until.is_some()))
            .await;
    }

    /// Waits until the source says that the database is away. Batches that come meanwhile are taken.
    pub(crate) async fn gone(&mut self) {
        let mut handle = self.source.handle();
        tokio::select! {
            _gone = within(handle.wait_for(|status| status.state == State::BackingOff)) => {}
            () = async { loop { self.step().await } } => {}
        }
    }

    /// Waits until its status says this. No batch is taken meanwhile.
    pub(crate) async fn until_told(&mut self, text: &str) {
        let mut handle = self.source.handle();
        within(handle.wait_for(|status| status.detail.as_ref().is_some_and(|detail| detail.contains(text))))
            .await
            .unwrap();
    }

    /// Takes batches until there are so many records.
    pub(crate) async fn until(&mut self, records: usize) {
        while self.records.len() < records {
            self.step().await;
        }
    }

    /// Takes batches until the checkpoint meets a condition.
    pub(crate) async fn until_checkpoint(&mut self, condition: impl Fn(&Checkpoint) -> bool) {
        while !self.checkpoint.as_ref().is_some_and(&condition) {
            self.step().await;
        }
    }

    /// The numbers of the events that came, in their order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.records.iter().map(number).collect()
    }
}

/// The number of an event.
pub(crate) fn number(record: &Record) -> u64 {
    let value: serde_json::Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
    value.get("data").unwrap_or(&value)["n"].as_u64().unwrap()
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}
