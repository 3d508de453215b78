//! Transactions, on whatever engine.

use super::{Conn, mysql::MysqlTx, sqlite::SqliteTx};
use crate::Result;

/// A transaction. Dropped without [`Tx::commit`], it is rolled back.
#[derive(Debug)]
pub enum Tx {
    /// On SQLite.
    #[doc(hidden)]
    Sqlite(SqliteTx),
    /// On MySQL or MariaDB.
    #[doc(hidden)]
    Mysql(MysqlTx),
}

impl Tx {
    /// The connection of the transaction.
    pub fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(tx) => Conn::Sqlite(tx.connection()),
            Self::Mysql(tx) => Conn::Mysql(tx.session()),
        }
    }

    /// Makes the transaction's changes durable and visible, and wakes whoever waits for commits.
    ///
    /// # Errors
    /// [`crate::Error::CommitUnknown`] when the connection to a server ended before its answer came;
    /// with any other error nothing was committed.
    pub async fn commit(self) -> Result<()> {
        match self {
            Self::Sqlite(tx) => tx.commit().await,
            Self::Mysql(tx) => tx.commit().await,
        }
    }

    /// Undoes the transaction's changes.
    pub async fn rollback(self) -> Result<()> {
        match self {
            Self::Sqlite(tx) => tx.rollback().await,
            Self::Mysql(tx) => tx.rollback().await,
        }
    }
}
