//! Redis: hot state and caches that may be lost at any moment.
//!
//! Whoever asks Redis must be right without it, so no question waits long: while Redis is down, or
//! answers too slowly, each is refused at once, and a task in the background looks for its return.
//! That it is down, and that it is back, is said once.
//!
//! What is done there is done by [`Script`]s, each atomic, sent by their digest. All keys begin with
//! one prefix. A script names keys of several kinds, so Redis Cluster is no place for them.

mod link;
mod script;

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

pub use script::{Call, Script};

use self::link::{Link, Links};
use crate::{
    Error, Result,
    limits::{REDIS_CALL_TIME_MAX, REDIS_CALLS_MAX},
    telemetry,
};

/// Where Redis is, and how long it may take.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// `redis://user:password@host:port/database`, or `rediss://` with TLS.
    pub url: String,
    /// What every key begins with.
    pub key_prefix: String,
    /// Time one call may take; after it Redis counts as down.
    pub call_time_max: Duration,
    /// Calls that may be under way; one more is refused.
    pub calls_max: usize,
}

impl Options {
    /// The usual limits for the server at `url`.
    pub fn new(url: impl Into<String>, key_prefix: impl Into<String>) -> Self {
        let (url, key_prefix) = (url.into(), key_prefix.into());
        Self { url, key_prefix, call_time_max: REDIS_CALL_TIME_MAX, calls_max: REDIS_CALLS_MAX }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        let Self { url: _, key_prefix, call_time_max, calls_max } = self;
        f.debug_struct("Options")
            .field("key_prefix", key_prefix)
            .field("call_time_max", call_time_max)
            .field("calls_max", calls_max)
            .finish_non_exhaustive()
    }
}

/// A Redis server. Cheap to clone; clones share their connection.
#[derive(Clone, Debug)]
pub struct Redis {
    links: Arc<Links>,
    key_prefix: Arc<str>,
    calls: Arc<Semaphore>,
    calls_max: usize,
}

impl Redis {
    /// Connects when it is first asked, and again whenever the connection is lost.
    ///
    /// # Errors
    /// When the address is none.
    pub fn open(options: &Options) -> Result<Self> {
        let client =
            ::redis::Client::open(options.url.as_str()).map_err(Error::redis("reading the address of Redis"))?;
        Ok(Self {
            links: Arc::new(Links::new(client, options.call_time_max)),
            key_prefix: options.key_prefix.as_str().into(),
            calls: Arc::new(Semaphore::new(options.calls_max)),
            calls_max: options.calls_max,
        })
    }

    /// The key that is called `name` here.
    pub fn key(&self, name: impl fmt::Display) -> String {
        format!("{}{name}", self.key_prefix)
    }

    /// The process that Redis is now.
    ///
    /// # Errors
    /// When Redis is down.
    pub async fn server(&self) -> Result<Server> {
        let link = self.links.current().await.ok_or(Error::RedisDown)?;
        Ok(Server { redis: self.clone(), link })
    }

    /// Runs a script on whatever process Redis is now; see [`Server::call`].
    pub async fn call<T: ::redis::FromRedisValue>(&self, doing: &'static str, call: &Call<'_>) -> Result<T> {
        self.server().await?.call(doing, call).await
    }
}

/// One process of Redis, from its start to its end: what a later one remembers of it may be old.
#[derive(Debug)]
pub struct Server {
    redis: Redis,
    link: Link,
}

impl Server {
    /// The id that Redis chose at its start: another one after each restart, and on each replica.
    pub fn run_id(&self) -> &str {
        self.link.run_id()
    }

    /// Runs a script on this process, and on no other.
    ///
    /// # Errors
    /// When too many calls are under way, when Redis does not answer in its time, or when it is no
    /// longer this process; then Redis counts as down until it is found again. Also when the script
    /// fails.
    pub async fn call<T: ::redis::FromRedisValue>(&self, doing: &'static str, call: &Call<'_>) -> Result<T> {
        let limit = self.redis.calls_max;
        let Ok(_under_way) = self.redis.calls.try_acquire() else {
            telemetry::redis_refused("busy");
            return Err(Error::LimitExceeded { what: "calls of Redis under way", limit });
        };
        let answer = call.invoke(self.link.connection()).await;
        answer.map_err(|error| {
            telemetry::redis_refused("failed");
            let (is_lost, code) = (link::is_lost(&error), error.code().unwrap_or_default().to_owned());
            let error = Error::redis(doing)(error);
            if is_lost {
                self.redis.links.lost(&self.link, &error);
            } else if self.redis.links.is_news(code) {
                tracing::error!(error = Error::chain(&error), "Redis refuses a script; going on without it, slower");
            }
            error
        })
    }
}
