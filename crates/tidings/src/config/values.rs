//! The values of the configuration, checked. What each means stands in `tidings.default.toml`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::{Error, Result};

/// The configuration in effect. It can only be made valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where data lives.
    pub data: Data,
    /// The HTTP server.
    pub http: Http,
    /// Tokens and console logins.
    pub auth: Auth,
    /// Token buckets.
    pub rate: Rate,
    /// Log lines.
    pub log: Logging,
    /// Events and how long they are kept.
    pub events: Events,
    /// Retries and missing history.
    pub projector: ProjectorOptions,
    /// The follow graph.
    pub relation: Relation,
}

/// `[data]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Folder of everything that is kept.
    pub dir: PathBuf,
}

/// `[http]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Address to serve on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Whether `/metrics` needs no credentials.
    pub metrics_public: bool,
    /// Whether cookies are marked `Secure`.
    pub secure_cookies: bool,
    /// Largest request body, in bytes.
    pub body_bytes_max: usize,
    /// Largest head of a request, in bytes.
    pub header_bytes_max: usize,
    /// Longest path and query, in bytes.
    pub uri_bytes_max: usize,
    /// Time a request may take, in milliseconds.
    pub request_timeout_ms: u64,
    /// Requests worked on at once.
    pub requests_in_flight_max: usize,
    /// Connections open at once.
    pub connections_max: usize,
    /// Time to send the head of a request, in milliseconds.
    pub header_read_timeout_ms: u64,
    /// Time for requests in flight to end at shutdown, in milliseconds.
    pub shutdown_timeout_ms: u64,
}

/// `[auth]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// `iss` of own tokens.
    pub issuer: String,
    /// `aud` of every token.
    pub audience: String,
    /// Lifetime of own tokens, in minutes.
    pub access_token_minutes: u32,
    /// Lifetime of a console login, in minutes.
    pub session_minutes: u32,
    /// Key set of an external issuer, or empty.
    pub jwks_url: String,
    /// `iss` of the external issuer's tokens, or empty.
    pub jwks_issuer: String,
}

/// `[rate]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Follows and unfollows at once.
    pub follow_capacity: u32,
    /// Tokens that come back, per second.
    pub follow_per_second: u32,
}

/// `[log]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logging {
    /// How lines are written.
    pub format: LogFormat,
    /// What is written, in the language of `tracing_subscriber::EnvFilter`.
    pub level: String,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[events]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// How long applied events are kept, in hours; 0 for ever.
    pub retention_hours: u32,
}

/// `[projector]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectorOptions {
    /// Tries before a key is dead.
    pub retry_attempts: u32,
    /// First pause between tries, in milliseconds.
    pub retry_gap_ms: u64,
    /// Longest pause between tries, in milliseconds.
    pub retry_gap_max_ms: u64,
    /// What to do when the next event is gone.
    pub on_missing_history: MissingHistory,
}

/// What a projector does whose next event is no longer in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MissingHistory {
    /// Says so and waits for an operator.
    Stop,
    /// Goes on with the earliest event there is, and says so.
    Earliest,
}

/// `[relation]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// Followers from which the first page of the list is kept in memory.
    pub top_page_followers_min: u32,
    /// One read of counters in this many is checked; 0 for none.
    pub counter_check_every: u32,
}

/// hyper cannot read heads with a smaller buffer.
const HEADER_BYTES_MIN: usize = 8_192;

impl Config {
    /// Reads and checks values that the layers have merged.
    pub(super) fn from_table(table: &toml::Table) -> Result<Self> {
        let value = toml::Value::Table(table.clone());
        let config: Self = serde_path_to_error::deserialize(value)
            .map_err(|error| wrong(&error.path().to_string(), one_line(&error.inner().to_string())))?;
        config.http.check()?;
        config.auth.check()?;
        at_least("rate.follow_capacity", config.rate.follow_capacity.into(), 1)?;
        at_least("rate.follow_per_second", config.rate.follow_per_second.into(), 1)?;
        at_least("projector.retry_attempts", config.projector.retry_attempts.into(), 1)?;
        at_least("projector.retry_gap_ms", config.projector.retry_gap_ms, 1)?;
        at_least("projector.retry_gap_max_ms", config.projector.retry_gap_max_ms, config.projector.retry_gap_ms)?;
        at_least("relation.top_page_followers_min", config.relation.top_page_followers_min.into(), 1)?;
        if config.data.dir.as_os_str().is_empty() {
            return Err(wrong("data.dir", "is empty".to_owned()));
        }
        EnvFilter::try_new(&config.log.level).map_err(|error| wrong("log.level", error.to_string()))?;
        Ok(config)
    }
}

impl Http {
    /// Time a request may take.
    pub fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    fn check(&self) -> Result<()> {
        let header_bytes_min = HEADER_BYTES_MIN as u64;
        at_least("http.body_bytes_max", self.body_bytes_max as u64, 1_024)?;
        at_least("http.header_bytes_max", self.header_bytes_max as u64, header_bytes_min)?;
        at_least("http.uri_bytes_max", self.uri_bytes_max as u64, 1_024)?;
        at_least("http.request_timeout_ms", self.request_timeout_ms, 1)?;
        at_least("http.requests_in_flight_max", self.requests_in_flight_max as u64, 1)?;
        at_least("http.connections_max", self.connections_max as u64, 1)?;
        at_least("http.header_read_timeout_ms", self.header_read_timeout_ms, 1)
    }
}

impl Auth {
    /// The external issuer's key set, if there is one.
    pub fn jwks(&self) -> Option<reqwest::Url> {
        reqwest::Url::parse(&self.jwks_url).ok()
    }

    fn check(&self) -> Result<()> {
        for (key, text) in [("auth.issuer", &self.issuer), ("auth.audience", &self.audience)] {
            if text.is_empty() {
                return Err(wrong(key, "is empty".to_owned()));
            }
        }
        at_least("auth.access_token_minutes", self.access_token_minutes.into(), 1)?;
        at_least("auth.session_minutes", self.session_minutes.into(), 1)?;
        if self.jwks_url.is_empty() {
            return Ok(());
        }
        let url = reqwest::Url::parse(&self.jwks_url).map_err(|error| wrong("auth.jwks_url", error.to_string()))?;
        if !is_safe_to_fetch(&url) {
            let reason = "must be an https URL, or an http URL of this machine (localhost, 127.0.0.1, [::1])";
            return Err(wrong("auth.jwks_url", reason.to_owned()));
        }
        if self.jwks_issuer.is_empty() || self.jwks_issuer == self.issuer {
            let reason = "must name the external issuer, and be another than `auth.issuer`";
            return Err(wrong("auth.jwks_issuer", reason.to_owned()));
        }
        Ok(())
    }
}

/// Keys decide who is admitted, so they come over TLS or never leave the machine.
fn is_safe_to_fetch(url: &reqwest::Url) -> bool {
    let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.scheme() == "https" || (url.scheme() == "http" && loopback)
}

fn at_least(key: &str, value: u64, least: u64) -> Result<()> {
    if value < least { Err(wrong(key, format!("must be at least {least}, is {value}"))) } else { Ok(()) }
}

fn wrong(key: &str, reason: String) -> Error {
    Error::Config { origin: "the configuration in effect".to_owned(), key: key.to_owned(), reason }
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}
