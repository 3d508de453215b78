//! Which relay of a group is the active one.
//!
//! A lock that the source itself keeps for a connection (`GET_LOCK`): it needs no table and no right,
//! a killed holder frees it at once, and a frozen one when the server's patience with its silence
//! ends. It keeps two relays from working at once. That a relay which no longer holds it cannot write
//! is not its doing: the sink fences the former one when the next takes over.

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connection::{Address, Connection};
use crate::{
    Conn, Error, Result,
    db::Engine,
    limits::{RELAY_LEASE_LOOK_GAP, RELAY_LEASE_TIME_MAX, RELAY_POLLERS_MAX},
    telemetry,
};

/// The right to be the active relay of a group, held.
#[derive(Debug)]
pub(super) struct Lease {
    /// Cancelled once the lease is somebody else's.
    pub(super) lost: CancellationToken,
    release: CancellationToken,
    keeper: Option<JoinHandle<()>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A relay that is dropped in the middle of something gives it up too.
        self.release.cancel();
    }
}

impl Lease {
    /// Tries to take it, and waits for it about as long as between two looks.
    ///
    /// # Errors
    /// When the source cannot be reached.
    pub(super) async fn take(address: &Address, group: &str) -> Result<Option<Self>> {
        let (address, name) = (address.clone(), lock_name(group));
        let Some(connection) = lock(&address, &name).await? else { return Ok(None) };
        let (lost, release) = (CancellationToken::new(), CancellationToken::new());
        let keeper = Keeper { address, name, held: Some(connection), lost: lost.clone(), release: release.clone() };
        // A task of its own: a write that takes long must not cost the lease.
        Ok(Some(Self { lost, release, keeper: Some(tokio::spawn(keeper.keep())) }))
    }

    /// Gives it up; the next one need not wait.
    pub(super) async fn release(mut self) {
        self.release.cancel();
        if let Some(keeper) = self.keeper.take() {
            // A keeper that panicked has dropped its connection, and the lock with it.
            drop(keeper.await);
        }
    }
}

/// Whether some process is the active relay of a group, as the source tells to who is connected to it.
///
/// # Errors
/// When the source cannot be asked.
pub async fn is_held(conn: &mut Conn<'_>, group: &str) -> Result<bool> {
    if conn.engine() == Engine::Sqlite {
        return Ok(false);
    }
    // Of the binlog's readers one holds the lease; of those that poll each has a name of its own.
    let names: Vec<_> = std::iter::once(lock_name(group)).chain(member_names(group)).map(Into::into).collect();
    let sql = format!("SELECT COALESCE({}) IS NOT NULL", vec!["IS_USED_LOCK(?)"; names.len()].join(", "));
    let row = conn.fetch_optional("asking who is the active relay", sql, names).await?;
    Ok(row.map(|row| row.int(0)).transpose()? == Some(1))
}

/// Publishes whether any relay of the group is active; called when metrics are scraped.
///
/// # Errors
/// As [`is_held`].
pub async fn publish_lease(conn: &mut Conn<'_>, group: &str) -> Result<()> {
    telemetry::relay_lease_held(is_held(conn, group).await?);
    Ok(())
}

struct Keeper {
    address: Address,
    name: String,
    held: Option<Connection>,
    lost: CancellationToken,
    release: CancellationToken,
}

impl Keeper {
    async fn keep(mut self) {
        let release = self.release.clone();
        let is_lost = tokio::select! {
            () = self.until_lost() => true,
            () = release.cancelled() => false,
        };
        if is_lost {
            self.lost.cancel();
        } else if let Some(connection) = self.held.take() {
            // A connection that does not end in order ends nevertheless, and the lock with it.
            drop(connection.into_conn().disconnect().await);
        }
    }

    /// Returns once the lease is somebody else's. While the source cannot be reached, it is nobody's.
    async fn until_lost(&mut self) {
        loop {
            tokio::time::sleep(RELAY_LEASE_LOOK_GAP).await;
            match self.look().await {
                Ok(true) => {}
                Ok(false) => return,
                // The stream says it too; here it would only be said twice.
                Err(error) => tracing::debug!(error = Error::chain(&error), "the relay's lease cannot be looked at"),
            }
        }
    }

    /// Whether the lease is held, taking it again if the connection that held it is gone.
    async fn look(&mut self) -> Result<bool> {
        if let Some(connection) = &mut self.held {
            // That there is an answer is the answer: the lock lives as long as its connection.
            if connection.run("keeping the relay's lease", "DO 1").await.is_ok() {
                return Ok(true);
            }
            self.held = None;
        }
        self.held = lock(&self.address, &self.name).await?;
        Ok(self.held.is_some())
    }
}

/// A connection that has the lock; nothing if another one keeps it.
async fn lock(address: &Address, name: &str) -> Result<Option<Connection>> {
    const DOING: &str = "taking the relay's lease";
    let mut connection = address.connect().await?;
    let patience = format!("SET SESSION wait_timeout = {}", RELAY_LEASE_TIME_MAX.as_secs());
    connection.run(DOING, &patience).await?;
    let wait = RELAY_LEASE_LOOK_GAP.as_secs();
    let answer: Option<(Option<i64>,)> = connection.first(DOING, "SELECT GET_LOCK(?, ?)", (name, wait)).await?;
    Ok((answer == Some((Some(1),))).then_some(connection))
}

/// The names of the locks by which polling relays of a group know of each other.
pub(super) fn member_names(group: &str) -> impl Iterator<Item = String> {
    (0..RELAY_POLLERS_MAX).map(move |member| lock_name(&format!("{group}:member:{member}")))
}

/// The name of the group's lock. MySQL takes 64 bytes at most.
pub(super) fn lock_name(group: &str) -> String {
    const BYTES_MAX: usize = 64;
    let name = format!("tidings-relay:{group}");
    if name.len() <= BYTES_MAX {
        return name;
    }
    format!("tidings-relay:{:08x}:{}", crc32fast::hash(group.as_bytes()), group.len())
}
