//! Moves what commits appended to the write-ahead log into the database, beside the commits.
//!
//! Left to itself, SQLite does this inside some unlucky commit, which then takes tens of
//! milliseconds. Here a connection of its own does it while writers go on (a PASSIVE checkpoint);
//! only when the log has grown long all the same do writers wait for the small rest.

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::watch;

use super::sqlite::Turn;
use crate::{
    Error, Result,
    limits::{CHECKPOINT_GAP, CHECKPOINT_PAGES, JOURNAL_PAGES_MAX},
};

/// Runs until every handle of the database is gone.
pub(super) async fn run(options: SqliteConnectOptions, turn: Turn, mut commits: watch::Receiver<u64>) {
    let mut connection = None;
    while commits.changed().await.is_ok() {
        if let Err(error) = round(&options, &turn, &mut connection).await {
            // The writer's own, much later, checkpoint stands behind this one.
            tracing::warn!(error = Error::chain(&error), "the write-ahead log was not shortened");
            connection = None;
        }
        tokio::time::sleep(CHECKPOINT_GAP).await;
    }
}

async fn round(options: &SqliteConnectOptions, turn: &Turn, connection: &mut Option<SqliteConnection>) -> Result<()> {
    let doing = "opening a connection for checkpoints";
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(SqliteConnection::connect_with(options).await.map_err(Error::database(doing))?),
    };
    let journal = checkpoint(connection, "PRAGMA wal_checkpoint(NOOP)").await?;
    if journal.pages - journal.moved < CHECKPOINT_PAGES {
        return Ok(());
    }
    let journal = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)").await?;
    if journal.pages > JOURNAL_PAGES_MAX {
        let _turn = turn.lock().await;
        checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)").await?;
    }
    Ok(())
}

/// The write-ahead log: its pages, and how many of them are in the database already.
struct Journal {
    pages: i64,
    moved: i64,
}

async fn checkpoint(connection: &mut SqliteConnection, pragma: &'static str) -> Result<Journal> {
    let row: (i64, i64, i64) = sqlx::query_as(pragma)
        .fetch_one(connection)
        .await
        .map_err(Error::database("moving the write-ahead log into the database"))?;
    let (_busy, pages, moved) = row;
    Ok(Journal { pages, moved })
}
