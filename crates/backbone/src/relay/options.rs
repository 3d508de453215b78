//! What a relay is told.

use std::time::Duration;

use serde::Deserialize;

use super::ColumnNames;
use crate::limits::{RELAY_BATCH_BYTES_MAX, RELAY_BATCH_RECORDS_MAX, RELAY_PAYLOAD_BYTES_MAX};

/// Where the relay reads, and what.
#[derive(Clone)]
pub struct Options {
    /// The database: `mysql://user:password@host:port/database`.
    pub source: String,
    /// Relays of one group take turns: one is active, the others wait. Lease, checkpoint and the number
    /// under which the relay presents itself as a replica are made from it.
    pub group: String,
    /// The outbox tables. At least one.
    pub tables: Vec<OutboxTable>,
    /// What to do where there is no checkpoint yet.
    pub first_start: FirstStart,
    /// How often the server says that it is alive while it has nothing to send. Three of these without
    /// a word mean that it is not.
    pub heartbeat: Duration,
    /// Records after which a batch is full.
    pub batch_records_max: usize,
    /// Bytes of records after which a batch is full. A transaction with more is published in pieces.
    pub batch_bytes_max: usize,
    /// Bytes of a compressed transaction, or event, once it is decompressed. What has more is left out, and its rows
    /// are read from the outbox tables.
    pub payload_bytes_max: usize,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address of the source may hold a password.
        f.debug_struct("Options").field("group", &self.group).field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl Options {
    /// Tidings' own outbox in the database that `source` names.
    pub fn new(source: impl Into<String>, group: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            group: group.into(),
            tables: vec![OutboxTable::default()],
            first_start: FirstStart::Earliest,
            heartbeat: Duration::from_secs(1),
            batch_records_max: RELAY_BATCH_RECORDS_MAX,
            batch_bytes_max: RELAY_BATCH_BYTES_MAX,
            payload_bytes_max: RELAY_PAYLOAD_BYTES_MAX,
        }
    }
}

/// One outbox table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutboxTable {
    /// Its database; empty for the one in the address of the source.
    pub database: String,
    /// Its name.
    pub name: String,
    /// How its columns are called.
    pub columns: ColumnNames,
}

impl Default for OutboxTable {
    fn default() -> Self {
        Self { database: String::new(), name: "outbox".to_owned(), columns: ColumnNames::default() }
    }
}

impl OutboxTable {
    /// The database and the name, with a dot between them.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }
}

/// What to do where there is no checkpoint yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstStart {
    /// Publish all rows that the outbox tables hold, then what comes: nothing is left out.
    #[default]
    Earliest,
    /// Publish only what is committed from now on.
    Latest,
}
