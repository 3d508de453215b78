//! SQLite: one writer at a time, many readers, write-ahead log.

use std::{path::Path, sync::Arc};

use sqlx::{
    Connection as _, SqliteConnection, SqlitePool, Transaction,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::{Durability, checkpoint};
use crate::{
    Error, Result,
    limits::{OTHER_PROCESS_POLL_GAP, SQLITE_BUSY_TIME_MAX, SQLITE_READERS_MAX},
};

/// Page cache of the writing connection and of each reading one, in KiB (negative is how SQLite's
/// pragma tells KiB from pages). It fills with use.
const WRITER_CACHE_KIB: &str = "-32768";
const READER_CACHE_KIB: &str = "-4096";
/// Pages of the write-ahead log after which a commit moves them into the database itself, should
/// nobody else have done so: 512 MiB.
const LAST_RESORT_CHECKPOINT_PAGES: &str = "131072";
/// Prepared statements a connection keeps: each multi-row text comes in some ten lengths.
const STATEMENTS_MAX: usize = 512;
/// Rows that may be on their way from the thread of a connection; few would make both threads wait.
const ROWS_AHEAD: usize = 1_024;

/// Who may write, and the durability the writing connection is set to, if known.
pub(super) type Turn = Arc<Mutex<Option<Durability>>>;

#[derive(Clone, Debug)]
pub(super) struct Sqlite {
    options: SqliteConnectOptions,
    readers: SqlitePool,
    /// One connection for every writer of this process: a second one would empty the page cache of
    /// the first with each commit.
    writer: SqlitePool,
    /// Writers of this process queue here, in order; SQLite's own busy wait is neither fair nor prompt.
    turn: Turn,
}

/// A transaction on SQLite; `turn` is held while it writes.
#[derive(Debug)]
pub struct SqliteTx {
    transaction: Transaction<'static, sqlx::Sqlite>,
    turn: Option<OwnedMutexGuard<Option<Durability>>>,
    commits: Option<watch::Sender<u64>>,
}

impl Sqlite {
    /// Opens the database; `commits` changes with each commit and is closed with the last handle.
    pub(super) async fn open(file: &Path, commits: watch::Receiver<u64>) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(SQLITE_BUSY_TIME_MAX)
            .foreign_keys(true)
            .statement_cache_capacity(STATEMENTS_MAX)
            .row_buffer_size(ROWS_AHEAD)
            .pragma("cache_size", READER_CACHE_KIB)
            .pragma("wal_autocheckpoint", LAST_RESORT_CHECKPOINT_PAGES)
            .pragma("temp_store", "MEMORY");
        let writer = pool(1).connect_with(options.clone().pragma("cache_size", WRITER_CACHE_KIB)).await;
        let writer = writer.map_err(Error::database("opening the database"))?;
        let readers = pool(SQLITE_READERS_MAX).connect_lazy_with(options.clone().pragma("query_only", "ON"));
        let turn = Turn::default();
        tokio::spawn(checkpoint::run(options.clone(), Arc::clone(&turn), commits));
        Ok(Self { options, readers, writer, turn })
    }

    pub(super) async fn read(&self) -> Result<SqliteTx> {
        let transaction = self.readers.begin().await.map_err(Error::database("beginning to read"))?;
        Ok(SqliteTx { transaction, turn: None, commits: None })
    }

    pub(super) async fn write(&self, durability: Durability, commits: watch::Sender<u64>) -> Result<SqliteTx> {
        let mut turn = Arc::clone(&self.turn).lock_owned().await;
        if turn.take() != Some(durability) {
            let setting = match durability {
                Durability::Full => "PRAGMA synchronous = FULL",
                Durability::Rebuildable => "PRAGMA synchronous = NORMAL",
            };
            sqlx::query(setting).execute(&self.writer).await.map_err(Error::database("setting durability"))?;
        }
        // Known only from here on: a caller that gave up half-way must not leave a wrong memory. A
        // connection that the pool opens anew is set to FULL, which is the safe side.
        *turn = Some(durability);
        // IMMEDIATE takes the write lock now: a deferred one could fail half-way, when it is too late to wait.
        let transaction = self.writer.begin_with("BEGIN IMMEDIATE").await;
        let transaction = transaction.map_err(Error::database("beginning to write"))?;
        Ok(SqliteTx { transaction, turn: Some(turn), commits: Some(commits) })
    }

    /// Runs migrations on a connection of their own, inside one transaction of SQLite's, so that
    /// several processes may start at once.
    pub(super) async fn migrate(&self, migrator: &sqlx::migrate::Migrator) -> Result<(), sqlx::migrate::MigrateError> {
        let _turn = self.turn.lock().await;
        let mut connection = SqliteConnection::connect_with(&self.options).await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        migrator.run_direct(None, &mut *transaction, false).await?;
        transaction.commit().await?;
        connection.close().await?;
        Ok(())
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

    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

impl SqliteTx {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    pub(super) async fn commit(self) -> Result<()> {
        self.transaction.commit().await.map_err(Error::database("committing"))?;
        drop(self.turn);
        if let Some(commits) = self.commits {
            commits.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    pub(super) async fn rollback(self) -> Result<()> {
        self.transaction.rollback().await.map_err(Error::database("rolling back"))
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .min_connections(0)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}
