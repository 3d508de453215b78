//! Events, decoded.

mod control;
mod gtid;
mod payload;
mod query;
mod statement;
mod xid;

use std::sync::Arc;

pub use control::{FormatDescription, Heartbeat, Rotate};
pub use gtid::{MariadbGtid, MysqlGtid};
pub use payload::{Compression, TransactionPayload};
pub use query::Query;
pub use statement::Statement;
pub use xid::{XaPrepare, Xid};

pub(crate) use {
    control::{checkpoint, heartbeat, heartbeat_v2, incident, user_var},
    gtid::{mariadb as mariadb_gtid, mysql as mysql_gtid, mysql_tagged as mysql_tagged_gtid},
};

use crate::{
    EventType, Rows, Table, UnreadableTable,
    gtid::{mariadb, mysql},
};

/// An event, decoded as far as it is borrowed from its bytes; rows are decoded one by one by
/// [`Rows::reader`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The stream goes on in another file. Before the first file it tells which one that is.
    Rotate(Rotate<'a>),
    /// A file begins; how the events after it are to be read.
    FormatDescription(FormatDescription<'a>),
    /// A transaction of MySQL begins.
    MysqlGtid(MysqlGtid),
    /// A transaction of MySQL begins that has no GTID, since they are off.
    AnonymousGtid,
    /// A transaction of MariaDB begins. There is no `BEGIN` after it.
    MariadbGtid(MariadbGtid),
    /// What was in MySQL's files before this one.
    PreviousGtids(mysql::Set),
    /// What was in MariaDB's files before this one: for each domain the last GTID of each server, the
    /// newest of the domain last.
    GtidList(Vec<mariadb::Gtid>),
    /// A crash recovery of MariaDB would begin at that file.
    BinlogCheckpoint(&'a str),
    /// A statement: `BEGIN`, DDL, verdicts on XA transactions, and all changes in statement format.
    Query(Query<'a>),
    /// The transaction was committed, by the storage engine's number for it.
    Commit(u64),
    /// The rows since the transaction's begin were prepared under an XID. Whether they are committed
    /// is told later by a [`Statement::XaCommit`] or [`Statement::XaRollback`] under another GTID.
    XaPrepare(XaPrepare),
    /// Rows of the table will follow.
    TableMap(Arc<Table>),
    /// Rows.
    Rows(Rows<'a>),
    /// Rows of a table will follow that cannot be read.
    UnreadableTable(Arc<UnreadableTable>),
    /// Rows of such a table. **They are lost to whoever goes on.**
    UnreadableRows(Arc<UnreadableTable>),
    /// There is nothing to send, and the server is alive.
    Heartbeat(Heartbeat<'a>),
    /// The statement that the rows which follow come from, in the client's character set.
    RowsQuery(&'a [u8]),
    /// The file on disk is encrypted from here on. A server sends the events in clear nevertheless; who
    /// reads files cannot go on.
    StartEncryption,
    /// The server may have lost events.
    Incident {
        /// Its number for the kind of incident.
        kind: u16,
        /// What it says.
        message: &'a [u8],
    },
    /// A whole transaction, compressed: its events from after the GTID to the commit.
    TransactionPayload(TransactionPayload<'a>),
    /// A value that the next statement in statement format uses: 1 for `LAST_INSERT_ID()`, 2 for an
    /// AUTO_INCREMENT column.
    Intvar {
        /// Which one.
        kind: u8,
        /// The value.
        value: u64,
    },
    /// The seeds that the next statement in statement format uses.
    Rand {
        /// The seeds.
        seeds: [u64; 2],
    },
    /// A variable that the next statement in statement format uses, without its value.
    UserVar {
        /// Its name, without the `@`.
        name: &'a [u8],
    },
    /// The last rows event of a statement that, by the server's filters, has no rows.
    NoRows,
    /// Nothing that concerns rows: the end of a file, group replication, an event that the server marks
    /// as ignorable, contents of a file to be loaded (a [`Query`] says so itself).
    Ignored(EventType),
    /// An event that is not known here and that the server does not mark as ignorable. **Rows may be
    /// in it**: who goes on may lose some.
    Unknown(EventType),
}
