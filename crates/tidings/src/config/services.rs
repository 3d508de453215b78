//! The services of the distributed mode: the database, Kafka, Redis, and the relay between the first two.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    secret::{Address, Properties, Secret},
    values::{COUNT_MAX, between, wrong},
};
use crate::{Error, Result};

/// Partitions of a topic at most: each is files and memory on every broker and client.
const PARTITIONS_MAX: u64 = 10_000;
const REPLICAS_MAX: u64 = 100;
const NAME_BYTES_MAX: usize = 64;

/// How the parts of a Tidings are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One process, SQLite in the data folder.
    Embedded,
    /// MySQL or MariaDB, Kafka, and any number of processes of each role.
    Distributed,
}

impl Mode {
    /// As answers and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Distributed => "distributed",
        }
    }
}

/// `[database]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// Address of the database; empty for SQLite in the data folder.
    pub url: Address,
    /// Password for `url`.
    pub password: Secret,
    /// File with the password.
    pub password_file: PathBuf,
    /// Connections for writing.
    pub writers_max: u32,
    /// Connections for reading.
    pub readers_max: u32,
}

/// `[kafka]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kafka {
    /// `host:port`, several separated by commas; empty where there is no Kafka.
    pub brokers: String,
    /// What names begin with.
    pub prefix: String,
    /// Partitions of a topic of events.
    pub partitions: i32,
    /// Replicas of a topic that is made.
    pub replicas: i32,
    /// Properties of the client.
    pub properties: Properties,
}

/// `[redis]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    /// Address of Redis; empty where there is none.
    pub url: Address,
    /// Password for `url`.
    pub password: Secret,
    /// File with the password.
    pub password_file: PathBuf,
    /// What every key begins with.
    pub key_prefix: String,
}

/// `[relay]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Relays of one group take turns; empty for the prefix of Kafka.
    pub group: String,
    /// How committed events are read.
    pub mode: RelayMode,
    /// Where a group without a checkpoint begins.
    pub start: RelayStart,
    /// How events are written.
    pub format: EventFormat,
    /// How those of some families are written.
    pub formats: BTreeMap<String, EventFormat>,
}

/// How committed events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelayMode {
    /// From the binlog of the database, as a replica does.
    Binlog,
    /// From the outbox table.
    Poll,
}

/// Where a group of relays begins that has no checkpoint yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelayStart {
    /// With the first event that the outbox holds.
    Earliest,
    /// With what is committed from now on.
    Latest,
}

/// How events are written to their topics. Projectors read both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventFormat {
    /// CloudEvents 1.0 as structured JSON.
    #[serde(rename = "cloudevents-json")]
    CloudEventsJson,
    /// CloudEvents 1.0 as Protobuf.
    #[serde(rename = "cloudevents-protobuf")]
    CloudEventsProtobuf,
}

/// Which mode the two services that make it distributed choose.
///
/// # Errors
/// When one of them is given without the other: half of it would be a third mode, with events that nobody
/// relays.
pub(super) fn mode(database: &Database, kafka: &Kafka) -> Result<Mode> {
    match (database.url.is_empty(), kafka.brokers.is_empty()) {
        (true, true) => Ok(Mode::Embedded),
        (false, false) => Ok(Mode::Distributed),
        (false, true) => {
            let reason = "is empty although `database.url` is set; the distributed mode needs both, the embedded none";
            Err(wrong("kafka.brokers", reason.to_owned()))
        }
        (true, false) => {
            let reason = "is empty although `kafka.brokers` is set; the distributed mode needs both, the embedded none";
            Err(wrong("database.url", reason.to_owned()))
        }
    }
}

impl Database {
    pub(super) fn check(&self) -> Result<()> {
        between("database.writers_max", self.writers_max.into(), 1, COUNT_MAX)?;
        between("database.readers_max", self.readers_max.into(), 1, COUNT_MAX)?;
        check_password("database", &self.url, &self.password, &self.password_file)?;
        if self.url.is_empty() {
            return Ok(());
        }
        let options = tidings_backbone::db::MysqlOptions::from_url(self.url.reveal());
        options.map(drop).map_err(|error| wrong("database.url", tidings_backbone::Error::chain(&error)))
    }

    /// The address with its password.
    ///
    /// # Errors
    /// When the file of the password cannot be read.
    pub fn address(&self) -> Result<Address> {
        address("database", &self.url, &self.password, &self.password_file)
    }
}

impl Kafka {
    pub(super) fn check(&self) -> Result<()> {
        between("kafka.partitions", u64::try_from(self.partitions).unwrap_or(0), 1, PARTITIONS_MAX)?;
        between("kafka.replicas", u64::try_from(self.replicas).unwrap_or(0), 1, REPLICAS_MAX)?;
        check_name("kafka.prefix", &self.prefix)?;
        let is_broker = |broker: &str| {
            let port = broker.trim().rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
            port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
        };
        if !self.brokers.is_empty() && !self.brokers.split(',').all(is_broker) {
            let reason = format!("is `host:port`, several separated by commas, not `{}`", self.brokers);
            return Err(wrong("kafka.brokers", reason));
        }
        Ok(())
    }
}

impl Redis {
    pub(super) fn check(&self, mode: Mode) -> Result<()> {
        check_password("redis", &self.url, &self.password, &self.password_file)?;
        if self.url.is_empty() {
            return Ok(());
        }
        if mode == Mode::Embedded {
            let reason = "is of no use in the embedded mode; `database.url` and `kafka.brokers` make it distributed";
            return Err(wrong("redis.url", reason.to_owned()));
        }
        let parsed = reqwest::Url::parse(self.url.reveal());
        match parsed {
            Ok(url) if ["redis", "rediss"].contains(&url.scheme()) && url.has_host() => Ok(()),
            _ => Err(wrong("redis.url", "is redis://host:port/number, or rediss:// with TLS".to_owned())),
        }
    }

    /// The address with its password.
    ///
    /// # Errors
    /// When the file of the password cannot be read.
    pub fn address(&self) -> Result<Address> {
        address("redis", &self.url, &self.password, &self.password_file)
    }
}

impl Relay {
    pub(super) fn check(&self) -> Result<()> {
        if self.group.is_empty() { Ok(()) } else { check_name("relay.group", &self.group) }
    }

    /// The format of a family of event types.
    pub fn format_of(&self, family: &str) -> EventFormat {
        self.formats.get(family).copied().unwrap_or(self.format)
    }
}

/// Names of topics and groups are made of it.
fn check_name(key: &str, name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(wrong(key, format!("has 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, `.`, `_` and `-`, not `{name}`")))
}

fn check_password(section: &str, url: &Address, password: &Secret, file: &Path) -> Result<()> {
    let has_file = !file.as_os_str().is_empty();
    let key = if has_file { format!("{section}.password_file") } else { format!("{section}.password") };
    if has_file && !password.is_empty() {
        return Err(wrong(&key, format!("is set beside `{section}.password`; one of them is enough")));
    }
    if (has_file || !password.is_empty()) && !url.is_empty() && url.with_password(password).is_none() {
        return Err(wrong(&key, format!("is set although `{section}.url` has a password, or can have none")));
    }
    Ok(())
}

fn address(section: &str, url: &Address, password: &Secret, file: &Path) -> Result<Address> {
    let password = if file.as_os_str().is_empty() {
        password.clone()
    } else {
        let text = std::fs::read_to_string(file).map_err(Error::file("reading the password in", file))?;
        Secret::from(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    if password.is_empty() {
        return Ok(url.clone());
    }
    let key = format!("{section}.url");
    url.with_password(&password).ok_or_else(|| wrong(&key, "can have no password".to_owned()))
}

#[cfg(test)]
mod tests;
