//! The one connection that writes, and the transaction on it.
//!
//! A pool would look after the connection between two transactions, at the price of several trips
//! to its thread; here a transaction costs two beyond its statements: begin and commit.

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{sync::OwnedMutexGuard, time::Instant};

use super::{Durability, Turn, turnstile::Turnstile};
use crate::{
    Error, Result,
    limits::{SQLITE_BUSY_TIME_MAX, SQLITE_OPEN_GAP, SQLITE_TURN_LOOK_GAP},
};

/// Page cache of the writing connection, in KiB.
const CACHE_KIB: &str = "-32768";

/// The connection, while nobody writes.
#[derive(Debug)]
pub(in crate::db) struct Writer {
    options: SqliteConnectOptions,
    turnstile: Turnstile,
    /// `None` after it was closed, or while its state is not known.
    connection: Option<SqliteConnection>,
}

/// A transaction that may write. Dropped without a commit, it is rolled back.
#[derive(Debug)]
pub(super) struct Writing {
    turn: OwnedMutexGuard<Writer>,
    /// Taken out of the writer until it is known to be clean again, so that a caller that gives up
    /// half-way cannot leave a transaction open on it.
    connection: Option<SqliteConnection>,
}

impl Writer {
    pub(super) async fn open(options: SqliteConnectOptions) -> Result<Self> {
        let options = options.pragma("cache_size", CACHE_KIB);
        let connection = connect(&options).await?;
        let turnstile = Turnstile::open(options.get_filename());
        Ok(Self { options, turnstile, connection: Some(connection) })
    }

    pub(super) async fn close(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        // Other processes may be reading; then the log stays, and is read at the next start.
        let shortened = sqlx::raw_sql("PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE)");
        if let Err(error) = shortened.execute(&mut connection).await {
            tracing::debug!(%error, "the write-ahead log stays");
        }
        if let Err(error) = connection.close().await {
            tracing::warn!(%error, "the database was not closed in order");
        }
    }
}

impl Writing {
    pub(super) async fn begin(turn: &Turn, durability: Durability) -> Result<Self> {
        let mut turn = Turn::clone(turn).lock_owned().await;
        let mut connection = match turn.connection.take() {
            Some(connection) => connection,
            None => connect(&turn.options).await?,
        };
        let begun = Instant::now();
        turn.turnstile.let_others_go_before().await;
        let mut waiting = None;
        loop {
            match sqlx::raw_sql(begin(durability)).execute(&mut connection).await {
                Ok(_) => break,
                Err(error) => {
                    let error = Error::database("beginning to write")(error);
                    if !error.is_busy_in_sqlite() || begun.elapsed() >= SQLITE_BUSY_TIME_MAX {
                        drop(waiting);
                        // Nothing has begun, so the connection is as good as before.
                        turn.connection = Some(connection);
                        return Err(error);
                    }
                }
            }
            if waiting.is_none() {
                waiting = turn.turnstile.wait();
            }
            tokio::time::sleep(SQLITE_TURN_LOOK_GAP).await;
        }
        drop(waiting);
        Ok(Self { turn, connection: Some(connection) })
    }

    #[expect(clippy::expect_used, reason = "only commit, rollback and drop take the connection, and each ends this")]
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("a transaction has its connection until it ends")
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        sqlx::raw_sql("COMMIT").execute(self.connection()).await.map_err(Error::database("committing"))?;
        self.turn.connection = self.connection.take();
        Ok(())
    }

    pub(super) async fn rollback(mut self) -> Result<()> {
        sqlx::raw_sql("ROLLBACK").execute(self.connection()).await.map_err(Error::database("rolling back"))?;
        self.turn.connection = self.connection.take();
        Ok(())
    }
}

impl Drop for Writing {
    /// Closing the connection rolls back what it had begun and frees the write lock, whatever state
    /// an abandoned statement left it in; the next writer opens another.
    fn drop(&mut self) {
        drop(self.connection.take());
    }
}

/// Said each time, on the way: remembering it would be one more thing to be wrong about. IMMEDIATE takes the write lock
/// now; a deferred transaction could fail half-way, when it is too late to wait. SQLite itself does not wait for it:
/// its pauses are long, so that whoever writes without one is always there before.
fn begin(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "PRAGMA busy_timeout = 0; PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
        Durability::Rebuildable => "PRAGMA busy_timeout = 0; PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
    }
}

/// Whoever opens a new file first turns it to write-ahead logging. SQLite refuses who comes meanwhile at once, whatever
/// its busy timeout says, so the same time is waited here.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection> {
    let begun = Instant::now();
    loop {
        let opened = SqliteConnection::connect_with(options).await.map_err(Error::database("opening the database"));
        match opened {
            Err(error) if error.is_busy_in_sqlite() && begun.elapsed() < SQLITE_BUSY_TIME_MAX => {
                tokio::time::sleep(SQLITE_OPEN_GAP).await;
            }
            opened => return opened,
        }
    }
}
