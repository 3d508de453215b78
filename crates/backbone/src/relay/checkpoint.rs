//! How far the relay has come, stored by the sink in the step that appends the records before it.

use serde::{Deserialize, Serialize};

use super::{Parked, seen::Seen};
use crate::{Error, Result, limits::RELAY_POLL_SENT_ROWS_MAX};

/// How far the relay has come: everything before it was acknowledged by the log, nothing after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Version of this form.
    version: Version,
    /// Where to go on reading: always the end of a transaction.
    pub position: Position,
    /// The transaction after `position`, if a part of it was published already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// Transactions that are prepared and neither committed nor rolled back (XA).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared: Vec<Prepared>,
    /// What is being read from the outbox tables because the binlog does not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Rows of the outbox tables that were published, table by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableSeen>,
    /// When the last transaction was written, by the server's clock, in epoch milliseconds.
    pub at_ms: i64,
    /// Keys whose later rows go to the dead letters too, because an earlier one did.
    #[serde(default, skip_serializing_if = "Parked::is_empty")]
    pub parked: Parked,
    /// What the polling relay has published and may meet again, table by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Sent>,
}

/// The version of the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Version(u32);

impl Default for Version {
    /// The one that this version of the code writes.
    fn default() -> Self {
        Self(1)
    }
}

/// A place in a binlog, between two transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The executed transactions as the server prints them: a list with one entry for each domain
    /// (MariaDB) or a set (MySQL); empty where the server has no GTIDs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtid: String,
    /// The file of the binlog, as its server names it.
    pub file: String,
    /// Where the next transaction begins in the file, in bytes.
    pub offset: u64,
}

/// A transaction too large for one batch, published in pieces once it was seen to have committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// The transaction as the server names it; empty where the server has no GTIDs.
    pub gtid: String,
    /// How many of its outbox rows are published, from its first one on.
    pub rows: u64,
}

/// A prepared transaction with outbox rows. They are read again once it is known to commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The transaction's identifier as `XA RECOVER FORMAT='SQL'` prints it.
    pub xid: String,
    /// The group that prepared it, as the server names it; empty where it is not known where its rows stand.
    pub gtid: String,
    /// The place before that group.
    pub before: Position,
}

/// Rows are read from the outbox tables, then the stream is joined where it stood before that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Why, for the log and the status.
    pub reason: String,
    /// Where the server stood once all rows had been read: what comes in the stream before it may have
    /// been read already. Nothing while rows are being read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Position>,
    /// Where the server stood before the rows were read: all that was committed before it was read. Nothing
    /// while rows are being read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<Position>,
    /// Whether it is the second look of a server that cannot tell which of its transactions are visible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_second_look: bool,
}

/// Rows of one outbox table that are in the log, and are not sure to be struck off for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The database and the name of the table, with a dot between them.
    pub table: String,
    /// The values of its `seq` column, each with a number that tells it from another row that has had it.
    pub rows: Vec<(u64, u64)>,
}

/// Which rows of one outbox table were published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSeen {
    /// The database and the name of the table, with a dot between them.
    pub table: String,
    /// The values of its `seq` column.
    pub seen: Seen,
}

impl std::fmt::Display for Position {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.file, self.offset)?;
        if self.gtid.is_empty() { Ok(()) } else { write!(out, " ({})", self.gtid) }
    }
}

impl Sent {
    /// Adds the rows of earlier batches that are still to be named, unless they are too many.
    pub(super) fn keep(&mut self, table: String, earlier: Vec<(u64, u64)>) {
        let left_out = earlier.len().saturating_sub(RELAY_POLL_SENT_ROWS_MAX);
        self.rows.splice(..0, earlier.into_iter().skip(left_out));
        self.table = table;
    }
}

impl Checkpoint {
    /// Nothing is published yet, and this is where the server stands.
    pub fn at(position: Position) -> Self {
        Self { position, ..Self::default() }
    }

    /// The text a sink stores.
    ///
    /// # Errors
    /// Never in practice: it holds texts and numbers only.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::json("writing a checkpoint of the relay"))
    }

    /// Reads what [`Checkpoint::to_json`] wrote.
    ///
    /// # Errors
    /// When the text is no checkpoint, or one of a later version: to guess would be to lose or to repeat.
    pub fn from_json(text: &str) -> Result<Self> {
        let checkpoint: Self = serde_json::from_str(text).map_err(Error::json("reading a checkpoint of the relay"))?;
        if checkpoint.version != Version::default() {
            let message = format!("the relay's checkpoint has the unknown version {}", checkpoint.version.0);
            return Err(Error::Invariant { message });
        }
        Ok(checkpoint)
    }

    /// The published rows of a table.
    pub fn seen(&mut self, table: &str) -> &mut Seen {
        if let Some(at) = self.tables.iter().position(|known| known.table == table) {
            return &mut self.tables[at].seen;
        }
        self.tables.push(TableSeen { table: table.to_owned(), seen: Seen::default() });
        let last = self.tables.len() - 1;
        &mut self.tables[last].seen
    }
}
