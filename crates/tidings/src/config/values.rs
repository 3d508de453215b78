//! The values of the configuration, checked. What each means stands in `tidings.default.toml`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::{
    alerts::Alerts,
    secret::Address,
    services::{self, Database, Kafka, Mode, Redis, Relay},
    telemetry::Telemetry,
};
use crate::{Error, Result};

/// The configuration in effect. It can only be made valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where data lives.
    pub data: Data,
    /// Facts and projections.
    pub database: Database,
    /// The log of the distributed mode.
    pub kafka: Kafka,
    /// Hot state and caches of the distributed mode.
    pub redis: Redis,
    /// What carries events from the database to Kafka.
    pub relay: Relay,
    /// The HTTP server.
    pub http: Http,
    /// Tokens and console logins.
    pub auth: Auth,
    /// Token buckets.
    pub rate: Rate,
    /// Log lines.
    pub log: Logging,
    /// Traces.
    pub telemetry: Telemetry,
    /// Events and how long they are kept.
    pub events: Events,
    /// Retries and missing history.
    pub projector: ProjectorOptions,
    /// Who is told when a key dies.
    pub alerts: Alerts,
    /// What operators did, and how long it is kept.
    pub audit: Audit,
    /// What follows from facts, compared with them.
    pub reconcile: Reconcile,
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
    /// Address where roles without an API tell how they are; empty for none.
    #[serde(with = "optional_address")]
    pub ops_listen: Option<SocketAddr>,
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
    /// Time between saying that it ends and taking no more connections, in milliseconds.
    pub shutdown_delay_ms: u64,
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
    pub jwks_url: Address,
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
    /// How long it is kept when projectors passed what, in minutes; 0 for not at all.
    pub trail_minutes: u32,
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

/// `[audit]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// How long it is kept, in days; 0 for ever.
    pub retention_days: u32,
}

/// `[reconcile]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconcile {
    /// Time between two runs, in hours; 0 for none on schedule.
    pub every_hours: u32,
    /// Time from a commit to its being in the log after which that is a difference, in milliseconds.
    pub relay_late_ms: u64,
    /// How far back outbox and log are compared, in hours.
    pub window_hours: u32,
    /// A run on schedule with at most so many differences is repaired at once; 0 for none.
    pub repair_max: u64,
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

/// Largest numbers, far above what makes sense and far below where arithmetic or memory ends.
const MINUTES_MAX: u64 = 366 * 24 * 60;
const HOURS_MAX: u64 = 100 * 366 * 24;
pub(super) const MS_MAX: u64 = 24 * 3_600_000;
pub(super) const COUNT_MAX: u64 = 1_000_000;
const BODY_BYTES_MAX: u64 = 64 * 1_048_576;
const HEADER_BYTES_MAX: u64 = 1_048_576;
/// The type that holds a path and query holds no more.
const URI_BYTES_MAX: u64 = 65_534;
/// hyper cannot read heads with a smaller buffer.
const HEADER_BYTES_MIN: u64 = 8_192;

/// What `log.level` may say for everything that no other rule is about.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Config {
    /// Reads and checks values that the layers have merged.
    pub(super) fn from_table(table: &toml::Table) -> Result<Self> {
        let value = toml::Value::Table(table.clone());
        let config: Self = serde_path_to_error::deserialize(value)
            .map_err(|error| wrong(&error.path().to_string(), one_line(&error.inner().to_string())))?;
        config.database.check()?;
        config.kafka.check()?;
        config.redis.check(services::mode(&config.database, &config.kafka)?)?;
        config.relay.check()?;
        config.http.check()?;
        config.auth.check()?;
        config.projector.check()?;
        between("rate.follow_capacity", config.rate.follow_capacity.into(), 1, COUNT_MAX)?;
        between("rate.follow_per_second", config.rate.follow_per_second.into(), 1, COUNT_MAX)?;
        config.alerts.check()?;
        between("audit.retention_days", config.audit.retention_days.into(), 0, HOURS_MAX / 24)?;
        config.reconcile.check()?;
        between("events.retention_hours", config.events.retention_hours.into(), 0, HOURS_MAX)?;
        between("relation.top_page_followers_min", config.relation.top_page_followers_min.into(), 1, u32::MAX.into())?;
        if config.data.dir.as_os_str().is_empty() {
            return Err(wrong("data.dir", "is empty".to_owned()));
        }
        config.log.check()?;
        config.telemetry.check()?;
        Ok(config)
    }

    /// How the parts are divided.
    pub fn mode(&self) -> Mode {
        // That they are given together was checked.
        if self.kafka.brokers.is_empty() { Mode::Embedded } else { Mode::Distributed }
    }

    /// The group of this Tidings' relays.
    pub fn relay_group(&self) -> &str {
        if self.relay.group.is_empty() { &self.kafka.prefix } else { &self.relay.group }
    }
}

/// An address, or an empty text for none.
mod optional_address {
    use std::net::SocketAddr;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(address: &Option<SocketAddr>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&address.map_or_else(String::new, |address| address.to_string()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(D::Error::custom) }
    }
}

impl Logging {
    /// The filter takes a word that is no level for a module, and then logs nothing else.
    fn check(&self) -> Result<()> {
        let rules = self.level.split(',');
        for rule in rules.filter(|rule| !rule.contains('=')) {
            if !LEVELS.iter().any(|level| rule.eq_ignore_ascii_case(level)) {
                let reason = format!("`{rule}` is neither a level ({}) nor a rule `MODULE=LEVEL`", LEVELS.join(", "));
                return Err(wrong("log.level", reason));
            }
        }
        let filter = EnvFilter::try_new(&self.level);
        filter.map(drop).map_err(|error| wrong("log.level", error.to_string()))
    }
}

impl ProjectorOptions {
    fn check(&self) -> Result<()> {
        between("projector.retry_attempts", self.retry_attempts.into(), 1, COUNT_MAX)?;
        between("projector.retry_gap_ms", self.retry_gap_ms, 1, MS_MAX)?;
        between("projector.retry_gap_max_ms", self.retry_gap_max_ms, self.retry_gap_ms, MS_MAX)?;
        between("projector.trail_minutes", self.trail_minutes.into(), 0, MINUTES_MAX)
    }
}

impl Reconcile {
    fn check(&self) -> Result<()> {
        between("reconcile.every_hours", self.every_hours.into(), 0, HOURS_MAX)?;
        between("reconcile.relay_late_ms", self.relay_late_ms, 1, MS_MAX)?;
        between("reconcile.window_hours", self.window_hours.into(), 1, HOURS_MAX)?;
        between("reconcile.repair_max", self.repair_max, 0, COUNT_MAX)
    }
}

impl Http {
    /// Time a request may take.
    pub fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    fn check(&self) -> Result<()> {
        between("http.body_bytes_max", self.body_bytes_max as u64, 1_024, BODY_BYTES_MAX)?;
        between("http.header_bytes_max", self.header_bytes_max as u64, HEADER_BYTES_MIN, HEADER_BYTES_MAX)?;
        between("http.uri_bytes_max", self.uri_bytes_max as u64, 1_024, URI_BYTES_MAX)?;
        between("http.request_timeout_ms", self.request_timeout_ms, 1, MS_MAX)?;
        between("http.requests_in_flight_max", self.requests_in_flight_max as u64, 1, COUNT_MAX)?;
        between("http.connections_max", self.connections_max as u64, 1, COUNT_MAX)?;
        between("http.header_read_timeout_ms", self.header_read_timeout_ms, 1, MS_MAX)?;
        between("http.shutdown_delay_ms", self.shutdown_delay_ms, 0, MS_MAX)?;
        between("http.shutdown_timeout_ms", self.shutdown_timeout_ms, 0, MS_MAX)
    }
}

impl Auth {
    /// The external issuer's key set, if there is one.
    pub fn jwks(&self) -> Option<reqwest::Url> {
        reqwest::Url::parse(self.jwks_url.reveal()).ok()
    }

    fn check(&self) -> Result<()> {
        for (key, text) in [("auth.issuer", &self.issuer), ("auth.audience", &self.audience)] {
            if text.is_empty() {
                return Err(wrong(key, "is empty".to_owned()));
            }
        }
        between("auth.access_token_minutes", self.access_token_minutes.into(), 1, MINUTES_MAX)?;
        between("auth.session_minutes", self.session_minutes.into(), 1, MINUTES_MAX)?;
        if self.jwks_url.is_empty() {
            if self.jwks_issuer.is_empty() {
                return Ok(());
            }
            let reason = "is of no use without `auth.jwks_url`, where the issuer's keys are";
            return Err(wrong("auth.jwks_issuer", reason.to_owned()));
        }
        let url =
            reqwest::Url::parse(self.jwks_url.reveal()).map_err(|error| wrong("auth.jwks_url", error.to_string()))?;
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
pub(super) fn is_safe_to_fetch(url: &reqwest::Url) -> bool {
    let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.scheme() == "https" || (url.scheme() == "http" && loopback)
}

pub(super) fn between(key: &str, value: u64, least: u64, most: u64) -> Result<()> {
    let right = (least..=most).contains(&value);
    if right { Ok(()) } else { Err(wrong(key, format!("must be from {least} to {most}, is {value}"))) }
}

/// The origin is added by whoever knows the layers.
pub(super) fn wrong(key: &str, reason: String) -> Error {
    Error::Config { origin: String::new(), key: key.to_owned(), reason }
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}
