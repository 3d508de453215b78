//! One SQL text for every engine: `?` placeholders, times as epoch milliseconds and ids as BIGINT.
//!
//! What differs between engines is in `dialect`; the driver is met only here. Migrations are
//! written per engine.

mod checkpoint;
mod dialect;
mod migrate;
mod row;
mod sqlite;
mod value;

use std::{borrow::Cow, path::Path};

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection, sqlite::SqliteArguments};
use tokio::sync::watch;

pub use dialect::Engine;
pub use migrate::{BACKBONE_MIGRATIONS, Migration};
pub use row::Row;
pub use value::Value;

use crate::{Error, Result, limits::STATEMENT_ROWS_MAX};

/// A database of facts and projections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Db {
    backend: Backend,
    commits: watch::Sender<u64>,
}

/// The engines, chosen by configuration. MySQL and MariaDB take their place here.
#[derive(Clone, Debug)]
enum Backend {
    Sqlite(sqlite::Sqlite),
}

/// What a commit survives.
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
        let backend = Backend::Sqlite(sqlite::Sqlite::open(file, commits.subscribe()).await?);
        Ok(Self { backend, commits })
    }

    /// Applies the migrations that are missing, in order, safely beside other processes.
    pub async fn migrate(&self, migrations: &[Migration]) -> Result<()> {
        match &self.backend {
            Backend::Sqlite(sqlite) => migrate::run(sqlite, migrations).await,
        }
    }

    /// Begins a snapshot to read from: it sees no commit made after its first statement.
    pub async fn read(&self) -> Result<Tx> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.read().await.map(Tx::Sqlite),
        }
    }

    /// A connection for single reads, each a snapshot of its own: for loops that must be quick.
    pub(crate) async fn glance(&self) -> Result<Tx> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.glance().await.map(Tx::Sqlite),
        }
    }

    /// Begins a transaction that may write. Writers of one process take turns in the order they
    /// came; other processes are waited for.
    pub async fn write(&self, durability: Durability) -> Result<Tx> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(durability, self.commits.clone()).await.map(Tx::Sqlite),
        }
    }

    /// A receiver that changes with each commit made through this handle, or noticed by
    /// [`Db::watch_other_processes`].
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Notices commits of other processes on the same database and reports them through
    /// [`Db::commits`]. Returns only with an error.
    pub async fn watch_other_processes(&self) -> Result<std::convert::Infallible> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.watch(&self.commits).await,
        }
    }

    /// The file of an embedded database.
    pub fn file(&self) -> &Path {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.file(),
        }
    }

    /// Closes every connection; waits for those in use.
    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.close().await,
        }
    }
}

/// A transaction. Dropped without [`Tx::commit`], it is rolled back.
#[derive(Debug)]
pub enum Tx {
    /// On SQLite.
    #[doc(hidden)]
    Sqlite(sqlite::SqliteTx),
}

impl Tx {
    /// The connection of the transaction.
    pub fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(tx) => Conn::Sqlite(tx.connection()),
        }
    }

    /// Makes the transaction's changes durable and visible, and wakes whoever waits for commits.
    pub async fn commit(self) -> Result<()> {
        match self {
            Self::Sqlite(tx) => tx.commit().await,
        }
    }

    /// Undoes the transaction's changes.
    pub async fn rollback(self) -> Result<()> {
        match self {
            Self::Sqlite(tx) => tx.rollback().await,
        }
    }
}

/// A connection inside a transaction, whoever began it: `Conn::from(&mut *sqlx_transaction)` lets
/// an application emit events in a transaction of its own.
#[derive(Debug)]
pub enum Conn<'c> {
    /// A connection to SQLite.
    Sqlite(&'c mut SqliteConnection),
}

impl<'c> From<&'c mut SqliteConnection> for Conn<'c> {
    fn from(connection: &'c mut SqliteConnection) -> Self {
        Self::Sqlite(connection)
    }
}

impl Conn<'_> {
    /// The engine behind the connection, for the few texts that differ.
    pub fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// The same connection for a shorter time.
    pub fn reborrow(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(connection) => Conn::Sqlite(connection),
        }
    }

    /// Runs one statement; answers the number of rows it changed. `doing` is a participle for
    /// the error, such as "storing a bookmark".
    pub async fn execute(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
    ) -> Result<u64> {
        match self {
            Self::Sqlite(connection) => query(sql.into(), args)
                .execute(&mut **connection)
                .await
                .map(|done| done.rows_affected())
                .map_err(Error::database(doing)),
        }
    }

    /// Runs one query; answers all its rows, so the query itself must bound them.
    pub async fn fetch(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
    ) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(connection) => query(sql.into(), args)
                .fetch_all(&mut **connection)
                .await
                .map(|rows| rows.into_iter().map(Row::Sqlite).collect())
                .map_err(Error::database(doing)),
        }
    }

    /// Runs one query and reads its rows while `wanted` says yes: for results bounded by more than
    /// their number.
    pub(crate) async fn fetch_while(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
        mut wanted: impl FnMut(&Row) -> Result<bool>,
    ) -> Result<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut rows = query(sql.into(), args).fetch(&mut **connection);
                while let Some(row) = rows.try_next().await.map_err(Error::database(doing))? {
                    if !wanted(&Row::Sqlite(row))? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Runs one query; answers its first row, if any.
    pub async fn fetch_optional(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
    ) -> Result<Option<Row>> {
        match self {
            Self::Sqlite(connection) => query(sql.into(), args)
                .fetch_optional(&mut **connection)
                .await
                .map(|row| row.map(Row::Sqlite))
                .map_err(Error::database(doing)),
        }
    }

    /// Runs one statement for many rows, in as few round trips as the limits allow.
    ///
    /// `head` ends before the rows (`INSERT INTO t (a, b) VALUES`), `tail` begins after them
    /// (`ON CONFLICT ...`, or empty). Answers the number of rows changed.
    pub async fn execute_rows<const COLUMNS: usize>(
        &mut self,
        doing: &'static str,
        head: &str,
        rows: Vec<[Value; COLUMNS]>,
        tail: &str,
    ) -> Result<u64> {
        let mut changed = 0;
        let mut rows = rows.into_iter();
        for count in dialect::chunks(rows.len(), STATEMENT_ROWS_MAX) {
            let args = rows.by_ref().take(count).flatten().collect();
            let sql = format!("{head} {} {tail}", dialect::row_placeholders(count, COLUMNS));
            changed += self.execute(doing, sql, args).await?;
        }
        Ok(changed)
    }

    /// Runs one query for many rows of input; answers the rows of all its round trips together.
    ///
    /// `sql` is given the text of the input rows, as [`Engine::values`] writes it, for each trip. A
    /// row of the input may be asked for several times, so the query must not count them.
    pub async fn fetch_rows<const COLUMNS: usize>(
        &mut self,
        doing: &'static str,
        sql: impl Fn(&str) -> String,
        rows: Vec<[Value; COLUMNS]>,
    ) -> Result<Vec<Row>> {
        let mut found = Vec::with_capacity(rows.len());
        for part in rows.chunks(STATEMENT_ROWS_MAX) {
            let count = dialect::padded(part.len(), STATEMENT_ROWS_MAX);
            let padding = part.iter().cycle().skip(part.len()).take(count - part.len());
            let args = part.iter().chain(padding).flatten().cloned().collect();
            let values = self.engine().values(count, COLUMNS);
            found.append(&mut self.fetch(doing, sql(&values), args).await?);
        }
        Ok(found)
    }

    /// Marks a point inside the transaction to which [`Conn::rollback_to_savepoint`] can return. It
    /// is the runtime's own: returning to it undoes whatever savepoints were set after it.
    pub(crate) async fn savepoint(&mut self) -> Result<()> {
        self.execute("setting a savepoint", "SAVEPOINT tidings_apply", Vec::new()).await.map(drop)
    }

    /// Undoes what was done since the last [`Conn::savepoint`] and forgets it.
    pub(crate) async fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.execute("returning to a savepoint", "ROLLBACK TO SAVEPOINT tidings_apply", Vec::new()).await?;
        self.release_savepoint().await
    }

    /// Keeps what was done since the last [`Conn::savepoint`] and forgets it.
    pub(crate) async fn release_savepoint(&mut self) -> Result<()> {
        self.execute("releasing a savepoint", "RELEASE SAVEPOINT tidings_apply", Vec::new()).await.map(drop)
    }
}

/// Values travel as arguments only; that no value is written into a text is up to its author.
fn query(sql: Cow<'static, str>, args: Vec<Value>) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
    args.into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Int(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
    })
}
