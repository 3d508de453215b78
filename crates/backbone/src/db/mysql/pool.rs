//! Connections of one process to one server, kept between transactions.
//!
//! A connection comes back only when it is known to be clean; one that was given up in the middle
//! of a statement, or in a transaction whose end is unknown, is closed, and the server rolls back
//! what it had begun. When one connection finds the server gone or turned read-only, every
//! connection made before is closed as well, so that the next ones reach whoever serves now.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connect::Connect;
use super::session::{Kind, Session, is_lost};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::{MYSQL_ACQUIRE_TIME_MAX, MYSQL_CONNECT_TIME_MAX, MYSQL_IDLE_TIME_MAX},
};

/// Which connections may still be used: those made since the server last failed one.
#[derive(Debug, Default)]
pub(in crate::db) struct Health(AtomicU64);

impl Health {
    /// No connection made so far is to be used again.
    pub(super) fn fail(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn generation(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    connect: Connect,
    /// Said once on each connection.
    settings: String,
    kind: Kind,
    health: Arc<Health>,
    permits: Arc<Semaphore>,
    permits_max: u32,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: MySqlConnection,
    generation: u64,
    since: Stopwatch,
}

/// A connection that is in use.
#[derive(Debug)]
pub(super) struct Pooled {
    pool: Pool,
    connection: Option<MySqlConnection>,
    generation: u64,
    /// Whether a statement was begun on it and its answer not read to the end.
    in_flight: bool,
    permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(
        connect: Connect,
        settings: String,
        kind: Kind,
        health: Arc<Health>,
        connections_max: u32,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(connections_max as usize));
        let idle = Mutex::default();
        Self(Arc::new(Shared { connect, settings, kind, health, permits, permits_max: connections_max, idle }))
    }

    /// A connection, the one used last if there is one: its statements are prepared.
    pub(super) async fn acquire(&self) -> Result<Pooled> {
        let waiting = Arc::clone(&self.0.permits).acquire_owned();
        let permit = within(MYSQL_ACQUIRE_TIME_MAX, waiting)
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)
            .and_then(|permit| permit.map_err(|_| sqlx::Error::PoolClosed))
            .map_err(Error::database("waiting for a connection"))?;
        let generation = self.0.health.generation();
        let connection = match self.take_idle(generation) {
            Some(connection) => connection,
            None => self.connect().await.map_err(Error::database("connecting to the database"))?,
        };
        Ok(Pooled { pool: self.clone(), connection: Some(connection), generation, in_flight: false, permit })
    }

    fn take_idle(&self, generation: u64) -> Option<MySqlConnection> {
        let mut idle = self.idle();
        // Those that have waited long may have been closed by the server or by something on the way.
        let limit = MYSQL_IDLE_TIME_MAX.as_secs_f64();
        idle.retain(|idle| idle.generation == generation && idle.since.seconds() < limit);
        idle.pop().map(|idle| idle.connection)
    }

    async fn connect(&self) -> Result<MySqlConnection, sqlx::Error> {
        let connecting = async {
            let mut connection = self.0.connect.connect().await?;
            sqlx::raw_sql(AssertSqlSafe(self.0.settings.clone())).execute(&mut connection).await?;
            Ok(connection)
        };
        let connected = within(MYSQL_CONNECT_TIME_MAX, connecting).await.unwrap_or_else(Err);
        if connected.as_ref().is_err_and(is_lost) {
            self.0.health.fail();
        }
        connected
    }

    /// Connections in use, and how many there may be.
    pub(super) fn used(&self) -> (usize, usize) {
        let max = self.0.permits_max as usize;
        (max.saturating_sub(self.0.permits.available_permits()), max)
    }

    /// Waits until no connection is in use, and closes all.
    pub(super) async fn close(&self) {
        let all = self.0.permits.acquire_many(self.0.permits_max).await;
        self.0.permits.close();
        drop(all);
        let idle: Vec<Idle> = std::mem::take(&mut *self.idle());
        for idle in idle {
            if let Err(error) = idle.connection.close().await {
                tracing::debug!(%error, "a connection was not closed in order");
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pooled {
    #[expect(clippy::expect_used, reason = "only giving it back takes the connection, and that ends this")]
    pub(super) fn session(&mut self) -> Session<'_> {
        let connection = self.connection.as_mut().expect("a connection in use is there");
        Session::watched(connection, self.pool.0.kind, &mut self.in_flight, &self.pool.0.health)
    }

    /// Whether the answers to all statements were read: only then can it be used again.
    pub(super) fn is_clean(&self) -> bool {
        !self.in_flight && self.connection.is_some()
    }

    /// Gives the connection back, outside of any transaction.
    pub(super) fn give_back(mut self) {
        let is_clean = self.is_clean();
        let Some(connection) = self.connection.take().filter(|_| is_clean) else { return };
        if self.generation == self.pool.0.health.generation() && !self.pool.0.permits.is_closed() {
            let idle = Idle { connection, generation: self.generation, since: Stopwatch::start() };
            self.pool.idle().push(idle);
        }
        drop(self.permit);
    }
}

/// The output of `future`, or an error when it takes longer than `time`.
pub(super) async fn within<F: Future>(time: Duration, future: F) -> Result<F::Output, sqlx::Error> {
    tokio::time::timeout(time, future)
        .await
        .map_err(|elapsed| sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, elapsed)))
}

impl std::fmt::Debug for Shared {
    /// Without the options: they hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("kind", &self.kind).finish_non_exhaustive()
    }
}
