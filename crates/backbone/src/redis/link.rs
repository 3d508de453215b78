//! The connection: one at a time, each to one process of Redis, renewed in the background.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use ::redis::{
    AsyncConnectionConfig, Client, ErrorKind, InfoDict, RedisError, RedisResult, ServerErrorKind,
    aio::MultiplexedConnection,
};
use tokio::sync::OnceCell;

use crate::{
    Error,
    limits::{REDIS_BACKOFF_MAX, REDIS_BACKOFF_MIN},
    telemetry,
};

/// A connection to one process of Redis. It never becomes a connection to another one.
#[derive(Clone, Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    run_id: Arc<str>,
}

/// Makes links, and keeps the current one.
#[derive(Debug)]
pub(super) struct Links {
    client: Client,
    call_time_max: Duration,
    /// Done once the first try to connect has ended, well or not.
    first: OnceCell<()>,
    current: Mutex<Option<Link>>,
    /// Codes of refusals that were said: each is said once.
    refusals: Mutex<BTreeSet<String>>,
}

impl Link {
    pub(super) fn connection(&self) -> &MultiplexedConnection {
        &self.connection
    }

    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }
}

impl Links {
    pub(super) fn new(client: Client, call_time_max: Duration) -> Self {
        Self { client, call_time_max, first: OnceCell::new(), current: Mutex::new(None), refusals: Mutex::default() }
    }

    /// The current link; none while Redis is down. Only the first who asks waits for a connection.
    pub(super) async fn current(self: &Arc<Self>) -> Option<Link> {
        self.first.get_or_init(|| self.connect_first()).await;
        let link = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if link.is_none() {
            telemetry::redis_refused("down");
        }
        link
    }

    /// Gives a link up, unless a newer one has taken its place.
    pub(super) fn lost(self: &Arc<Self>, link: &Link, error: &Error) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Another start of Redis is another link, and so is another connection to the same one.
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(&current.run_id, &link.run_id)) {
            *current = None;
            self.look_for_return(error);
        }
    }

    /// Whether a refusal with this code was not said yet.
    pub(super) fn is_news(&self, code: String) -> bool {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).insert(code)
    }

    async fn connect_first(self: &Arc<Self>) {
        match self.connect().await {
            Ok(link) => self.found(link),
            Err(error) => self.look_for_return(&error),
        }
    }

    fn found(&self, link: Link) {
        telemetry::redis_up(true);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
    }

    /// Tries to connect until it succeeds, or until nobody is left who wants it.
    fn look_for_return(self: &Arc<Self>, error: &Error) {
        telemetry::redis_up(false);
        tracing::warn!(error = Error::chain(error), "Redis is down; going on without it, slower");
        let links: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut pause = REDIS_BACKOFF_MIN;
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(REDIS_BACKOFF_MAX);
                let Some(links) = links.upgrade() else { return };
                if let Ok(link) = links.connect().await {
                    links.found(link);
                    tracing::info!("Redis is back");
                    return;
                }
            }
        });
    }

    async fn connect(&self) -> Result<Link, Error> {
        const DOING: &str = "connecting to Redis";
        let time = self.call_time_max;
        // A name that does not resolve, a server that takes connections and says nothing: all of it is bounded.
        let tried = tokio::time::timeout(3 * time, self.try_connect()).await;
        tried
            .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
            .map_err(Error::redis(DOING))
    }

    async fn try_connect(&self) -> RedisResult<Link> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.call_time_max))
            .set_response_timeout(Some(self.call_time_max));
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        // A server that is still reading its file refuses this, and answers INFO.
        let _: String = ::redis::cmd("PING").query_async(&mut connection).await?;
        let info: InfoDict = ::redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let run_id: String = info
            .get("run_id")
            .ok_or_else(|| RedisError::from((ErrorKind::UnexpectedReturnType, "INFO names no run_id")))?;
        Ok(Link { connection, run_id: run_id.into() })
    }
}

/// Whether a failed call says that this process of Redis is of no use any more, or not for now: it is
/// gone, silent, still reading its file, or no longer the one that takes writes.
pub(super) fn is_lost(error: &RedisError) -> bool {
    let is_server_lost = matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown | ServerErrorKind::ReadOnly)
    );
    error.is_io_error() || error.is_unrecoverable_error() || is_server_lost || error.code() == Some("BUSY")
}
