//! SQLite: one writer at a time, many readers, write-ahead log.

mod turnstile;
mod writer;

use std::{path::Path, sync::Arc};

use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection, SqlitePool, Transaction,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::{Mutex, watch};

use self::writer::Writing;
use super::{Durability, checkpoint};
use crate::{
    Error, Result,
    limits::{OTHER_PROCESS_POLL_GAP, SQLITE_BUSY_TIME_MAX, SQLITE_READERS_MAX},
};

/// Size of a database page, in bytes. Each change of a row writes whole pages to the write-ahead
/// log, so smaller ones make small batches cheaper: half the size of SQLite's default halved the
/// delay from commit to visible, at the same throughput. It holds for databases made from now on.
const PAGE_BYTES: u32 = 2_048;
/// Page cache of each reading connection, in KiB (negative is how SQLite's pragma tells KiB from
/// pages). It fills with use.
const READER_CACHE_KIB: &str = "-4096";
/// Pages of the write-ahead log after which a commit moves them into the database itself, should
/// nobody else have done so: 512 MiB.
const LAST_RESORT_CHECKPOINT_PAGES: &str = "262144";
/// Prepared statements a connection keeps: each multi-row text comes in some forty lengths.
const STATEMENTS_MAX: usize = 512;
/// Rows that may be on their way from the thread of a connection; few would make both threads wait.
const ROWS_AHEAD: usize = 1_024;

/// Who may write.
pub(super) type Turn = Arc<Mutex<writer::Writer>>;

#[derive(Clone, Debug)]
pub(super) struct Sqlite {
    options: SqliteConnectOptions,
    readers: SqlitePool,
    /// One connection for every writer of this process: a second one would empty the page cache of
    /// the first with each commit. Writers queue here, in order; SQLite's own busy wait is neither
    /// fair nor prompt.
    turn: Turn,
}

/// What is done on SQLite until a commit.
#[derive(Debug)]
pub struct SqliteTx(Kind);

#[derive(Debug)]
enum Kind {
    Reading(Transaction<'static, sqlx::Sqlite>),
    Glancing(PoolConnection<sqlx::Sqlite>),
    Writing { writing: Writing, commits: watch::Sender<u64> },
}

impl Sqlite {
    /// Opens the database; `commits` changes with each commit and is closed with the last handle.
    pub(super) async fn open(file: &Path, commits: watch::Receiver<u64>) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .page_size(PAGE_BYTES)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(SQLITE_BUSY_TIME_MAX)
            .foreign_keys(true)
            .statement_cache_capacity(STATEMENTS_MAX)
            .row_buffer_size(ROWS_AHEAD)
            // A statement that waits for another process's turn is not slow; what is slow shows in the metrics.
            .disable_statement_logging()
            .pragma("cache_size", READER_CACHE_KIB)
            .pragma("wal_autocheckpoint", LAST_RESORT_CHECKPOINT_PAGES)
            .pragma("temp_store", "MEMORY");
        let turn = Turn::new(Mutex::new(writer::Writer::open(options.clone()).await?));
        let readers = readers().connect_lazy_with(options.clone().pragma("query_only", "ON"));
        tokio::spawn(checkpoint::run(options.clone(), Arc::clone(&turn), commits));
        Ok(Self { options, readers, turn })
    }

    pub(super) async fn read(&self) -> Result<SqliteTx> {
        let transaction = self.readers.begin().await.map_err(Error::database("beginning to read"))?;
        Ok(SqliteTx(Kind::Reading(transaction)))
    }

    pub(super) async fn glance(&self) -> Result<SqliteTx> {
        let connection = self.readers.acquire().await.map_err(Error::database("beginning to read"))?;
        Ok(SqliteTx(Kind::Glancing(connection)))
    }

    pub(super) async fn write(&self, durability: Durability, commits: watch::Sender<u64>) -> Result<SqliteTx> {
        let writing = Writing::begin(&self.turn, durability).await?;
        Ok(SqliteTx(Kind::Writing { writing, commits }))
    }

    /// Runs migrations on a connection of their own, inside one transaction of SQLite's, so that
    /// several processes may start at once.
    pub(super) async fn migrate(&self, migrator: &sqlx::migrate::Migrator) -> Result<(), sqlx::migrate::MigrateError> {
        if self.is_migrated(migrator).await {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let mut connection = SqliteConnection::connect_with(&self.options).await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        migrator.run_direct(None, &mut *transaction, false).await?;
        transaction.commit().await?;
        connection.close().await?;
        Ok(())
    }

    /// Whether nothing is to be migrated, told without the write lock: who only reads must not wait
    /// for a writer. Where it cannot be told, the migration says why.
    async fn is_migrated(&self, migrator: &sqlx::migrate::Migrator) -> bool {
        let applied = sqlx::query_scalar::<_, i64>("SELECT version FROM _tidings_migrations WHERE success");
        let Ok(applied) = applied.fetch_all(&self.readers).await else { return false };
        migrator.iter().all(|migration| applied.contains(&migration.version))
    }

    pub(super) async fn watch(&self, commits: &watch::Sender<u64>) -> Result<std::convert::Infallible> {
        let doing = "watching for other processes";
        let mut connection = SqliteConnection::connect_with(&self.options).await.map_err(Error::database(doing))?;
        let mut seen = 0;
        loop {
            // `data_version` changes when another connection, of whatever process, has committed.
            let version: i64 = sqlx::query_scalar("PRAGMA data_version")
                .fetch_one(&mut connection)
                .await
                .map_err(Error::database(doing))?;
            if version != seen {
                seen = version;
                commits.send_modify(|count| *count += 1);
            }
            tokio::time::sleep(OTHER_PROCESS_POLL_GAP).await;
        }
    }

    pub(super) fn file(&self) -> &Path {
        self.options.get_filename()
    }

    /// Connections in use, and how many there may be: for writing, for reading.
    pub(super) fn used(&self) -> [(usize, usize); 2] {
        let readers = (self.readers.size() as usize).saturating_sub(self.readers.num_idle());
        [(usize::from(self.turn.try_lock().is_err()), 1), (readers, SQLITE_READERS_MAX as usize)]
    }

    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.turn.lock().await.close().await;
    }
}

impl SqliteTx {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        match &mut self.0 {
            Kind::Reading(transaction) => transaction,
            Kind::Glancing(connection) => connection,
            Kind::Writing { writing, .. } => writing.connection(),
        }
    }

    pub(super) async fn commit(self) -> Result<()> {
        match self.0 {
            Kind::Reading(transaction) => transaction.commit().await.map_err(Error::database("committing")),
            Kind::Glancing(_) => Ok(()),
            Kind::Writing { writing, commits } => {
                writing.commit().await?;
                commits.send_modify(|count| *count += 1);
                Ok(())
            }
        }
    }

    pub(super) async fn rollback(self) -> Result<()> {
        match self.0 {
            Kind::Reading(transaction) => transaction.rollback().await.map_err(Error::database("rolling back")),
            Kind::Glancing(_) => Ok(()),
            Kind::Writing { writing, .. } => writing.rollback().await,
        }
    }
}

fn readers() -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(SQLITE_READERS_MAX)
        .min_connections(0)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}
