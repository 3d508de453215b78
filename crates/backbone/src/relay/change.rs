//! What a source hands to a formatter: changed rows of an outbox table, as the database saw them.

use serde::Deserialize;
use tidings_event::row::{self, Change, Operation};

/// Rows of one outbox table that one event of the binlog changed in one way.
///
/// Everything is borrowed from the event's bytes where it can be: a formatter writes its records from
/// it and keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'a> {
    /// The table, as it was defined when the rows were written.
    pub table: &'a Table,
    /// What happened to all of the rows.
    pub operation: Operation,
    /// The rows, in the order of their statement.
    pub rows: &'a [Change<'a>],
    /// When the statement began, by the server's clock, in seconds since the Unix epoch.
    pub event_seconds: u32,
    /// The transaction as the server names it: `0-1-7` (MariaDB), `uuid:7` (MySQL); empty where the
    /// server has no GTIDs, and for rows that were read from the table.
    pub gtid: &'a str,
    /// The file of the binlog the rows stand in; empty for rows that were read from the table.
    pub file: &'a str,
    /// Where in the file the event ends, in bytes; 0 for rows that were read from the table.
    pub position: u64,
    /// The server that first wrote the rows.
    pub server_id: u32,
}

/// An outbox table as one version of its definition has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Database, name and columns.
    pub definition: row::Table,
    /// Where the columns stand that the relay was told of.
    pub places: Places,
}

impl Table {
    /// Finds the columns called `names`.
    pub fn new(definition: row::Table, names: &ColumnNames) -> Self {
        let place = |name: &str| definition.position(name);
        let places = Places {
            seq: place(&names.seq),
            event_id: place(&names.event_id),
            event_type: place(&names.event_type),
            schema_version: place(&names.schema_version),
            aggregate_type: place(&names.aggregate_type),
            aggregate_id: place(&names.aggregate_id),
            event_key: place(&names.event_key),
            version: place(&names.version),
            occurred_at: place(&names.occurred_at),
            payload: place(&names.payload),
            metadata: place(&names.metadata),
        };
        Self { definition, places }
    }
}

/// Declares the roles that columns of an outbox have, once for their names and once for their places.
macro_rules! columns {
    ($($role:ident: $why:literal),+ $(,)?) => {
        /// How the columns of an outbox table are called. The default is Tidings' own outbox; a table
        /// that lacks a column leaves the name as it is.
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct ColumnNames {
            $(#[doc = $why] pub $role: String,)+
        }

        impl Default for ColumnNames {
            fn default() -> Self {
                Self { $($role: stringify!($role).to_owned(),)+ }
            }
        }

        impl ColumnNames {
            /// Each role, and the name of its column.
            pub(super) fn each_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut String)> {
                [$((stringify!($role), &mut self.$role)),+].into_iter()
            }
        }

        /// Where the columns of an outbox table stand, from 0; nothing for those it does not have.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Places {
            $(#[doc = $why] pub $role: Option<usize>,)+
        }
    };
}

columns! {
    seq: "A whole number that rises with each insert and is indexed, such as an auto-increment key: by it \
          rows are found again that the binlog no longer holds.",
    event_id: "Identity of the event.",
    event_type: "Dotted type of the event.",
    schema_version: "Version of the payload's schema.",
    aggregate_type: "Kind of the thing that changed.",
    aggregate_id: "Identity of the thing that changed.",
    event_key: "The unit of order.",
    version: "Version of the aggregate.",
    occurred_at: "When it happened.",
    payload: "What happened.",
    metadata: "Where it came from, as a JSON object.",
}
