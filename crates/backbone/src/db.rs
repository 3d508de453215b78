//! One SQL text for every engine: `?` placeholders, times as epoch milliseconds and ids as BIGINT.
//!
//! What differs between engines is in `dialect`; the driver is met only here. Migrations are
//! written per engine.

mod checkpoint;
mod conn;
mod dialect;
mod migrate;
mod mysql;
mod row;
mod sqlite;
mod tx;
mod value;

use std::{path::Path, sync::Arc};

use tokio::sync::watch;

pub use conn::Conn;
#[cfg(test)]
pub(crate) use conn::SAID;
pub use dialect::Engine;
pub use migrate::{BACKBONE_MIGRATIONS, Migration};
pub use mysql::MysqlOptions;
pub use row::Row;
pub use tx::Tx;
pub use value::Value;

use crate::{Result, clock::Stopwatch, telemetry};

/// A database of facts and projections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Db {
    backend: Backend,
    commits: watch::Sender<u64>,
}

/// The engines, chosen by configuration.
#[derive(Clone, Debug)]
enum Backend {
    Sqlite(Arc<sqlite::Sqlite>),
    Mysql(Arc<mysql::Mysql>),
}

/// What a commit survives, embedded. MySQL and MariaDB commit as their server is set: both
/// `innodb_flush_log_at_trx_commit` and `sync_binlog` must be 1 there, which [`Db::open_mysql`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The commit is on disk when it returns: for facts.
    Full,
    /// The commit survives a crash of the process; a power cut may undo the last ones as a whole.
    /// For projections: effects and position are undone together and the events are still in the
    /// outbox, so they are simply applied again.
    Rebuildable,
}

impl Db {
    /// Opens (or creates) an SQLite database in WAL mode.
    pub async fn open_sqlite(file: &Path) -> Result<Self> {
        let commits = watch::Sender::new(0);
        let backend = Backend::Sqlite(Arc::new(sqlite::Sqlite::open(file, commits.subscribe()).await?));
        Ok(Self { backend, commits })
    }

    /// Opens a MySQL (8.0 and later) or MariaDB (10.6 and later) database, which must exist.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or is too old.
    pub async fn open_mysql(options: MysqlOptions) -> Result<Self> {
        let backend = Backend::Mysql(Arc::new(mysql::Mysql::open(options).await?));
        Ok(Self { backend, commits: watch::Sender::new(0) })
    }

    /// Which engine it is.
    pub fn engine(&self) -> Engine {
        match &self.backend {
            Backend::Sqlite(_) => Engine::Sqlite,
            Backend::Mysql(mysql) => mysql.engine(),
        }
    }

    /// Applies the migrations that are missing, in order, safely beside other processes.
    pub async fn migrate(&self, migrations: &[Migration]) -> Result<()> {
        match &self.backend {
            Backend::Sqlite(sqlite) => migrate::run(sqlite, migrations).await,
            Backend::Mysql(mysql) => mysql.migrate(migrations).await,
        }
    }

    /// Begins a snapshot to read from: it sees no commit made after its first statement.
    pub async fn read(&self) -> Result<Tx> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.read().await.map(Tx::Sqlite),
            Backend::Mysql(mysql) => mysql.read().await.map(Tx::Mysql),
        }
    }

    /// A connection for single reads, each a snapshot of its own: for loops that must be quick.
    pub(crate) async fn glance(&self) -> Result<Tx> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.glance().await.map(Tx::Sqlite),
            Backend::Mysql(mysql) => mysql.glance().await.map(Tx::Mysql),
        }
    }

    /// Begins a transaction that may write. On SQLite, writers of one process take turns in the
    /// order they came, and other processes are waited for. On MySQL and MariaDB writers work side
    /// by side, and each statement sees what is committed when it begins: whoever decides on what
    /// it has read locks it first, see [`Engine::for_update`].
    pub async fn write(&self, durability: Durability) -> Result<Tx> {
        let waiting = Stopwatch::start();
        let tx = match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(durability, self.commits.clone()).await.map(Tx::Sqlite),
            Backend::Mysql(mysql) => mysql.write(self.commits.clone()).await.map(Tx::Mysql),
        };
        telemetry::write_waited(waiting.seconds());
        tx
    }

    /// Publishes how many connections are in use; called when metrics are scraped.
    pub fn publish_gauges(&self) {
        let [writers, readers] = match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.used(),
            Backend::Mysql(mysql) => mysql.used(),
        };
        telemetry::connections("write", writers.0, writers.1);
        telemetry::connections("read", readers.0, readers.1);
    }

    /// A receiver that changes with each commit made through this handle, or noticed by
    /// [`Db::watch_other_processes`].
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Notices commits of other processes on the same embedded database and reports them through
    /// [`Db::commits`]. Returns only with an error. On MySQL and MariaDB nothing is to be noticed:
    /// what follows from a commit there comes through the log.
    pub async fn watch_other_processes(&self) -> Result<std::convert::Infallible> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.watch(&self.commits).await,
            Backend::Mysql(_) => std::future::pending().await,
        }
    }

    /// The file of an embedded database; `None` where a server keeps the files.
    pub fn file(&self) -> Option<&Path> {
        match &self.backend {
            Backend::Sqlite(sqlite) => Some(sqlite.file()),
            Backend::Mysql(_) => None,
        }
    }

    /// Closes every connection; waits for those in use.
    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.close().await,
            Backend::Mysql(mysql) => mysql.close().await,
        }
    }
}
