//! Moves what commits appended to the write-ahead log into the database, beside the commits.
//!
//! Left to itself, SQLite does this inside some unlucky commit, which then takes tens of
//! milliseconds. Here a connection of its own does it while writers go on (a PASSIVE checkpoint);
//! only when the log has grown long all the same do writers wait for the small rest.

use std::time::Duration;

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::watch;

use super::sqlite::Turn;
use crate::{
    Error, Result,
    limits::{CHECKPOINT_BUSY_GAP, CHECKPOINT_BUSY_TIME_MAX, CHECKPOINT_GAP, CHECKPOINT_PAGES, JOURNAL_PAGES_MAX},
};

/// Runs until every handle of the database is gone.
pub(super) async fn run(options: SqliteConnectOptions, turn: Turn, mut commits: watch::Receiver<u64>) {
    let options = options.busy_timeout(CHECKPOINT_BUSY_TIME_MAX);
    let mut connection = None;
    let mut gap = CHECKPOINT_GAP;
    loop {
        // What a long read prevented is tried again although nobody commits any more.
        let is_open = match tokio::time::timeout(CHECKPOINT_BUSY_GAP, commits.changed()).await {
            Ok(changed) => changed.is_ok(),
            Err(_) if gap == CHECKPOINT_GAP => commits.changed().await.is_ok(),
            Err(_) => true,
        };
        if !is_open {
            return;
        }
        gap = round(&options, &turn, &mut connection).await.unwrap_or_else(|error| {
            // The writer's own, much later, checkpoint stands behind this one.
            tracing::warn!(error = Error::chain(&error), "the write-ahead log was not shortened");
            connection = None;
            CHECKPOINT_BUSY_GAP
        });
        tokio::time::sleep(gap).await;
    }
}

/// Answers the pause before the next round.
async fn round(
    options: &SqliteConnectOptions,
    turn: &Turn,
    connection: &mut Option<SqliteConnection>,
) -> Result<Duration> {
    let doing = "opening a connection for checkpoints";
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(SqliteConnection::connect_with(options).await.map_err(Error::database(doing))?),
    };
    let journal = checkpoint(connection, LOOK).await?;
    if journal.pages - journal.moved < CHECKPOINT_PAGES {
        return Ok(CHECKPOINT_GAP);
    }
    checkpoint(connection, PASSIVE).await?;
    if journal.pages <= JOURNAL_PAGES_MAX {
        return Ok(CHECKPOINT_GAP);
    }
    // Writers will have to wait for what was appended meanwhile, so that is made little first.
    for _ in 0..PASSES_MAX {
        let journal = checkpoint(connection, LOOK).await?;
        if journal.pages - journal.moved < CHECKPOINT_PAGES / 8 {
            break;
        }
        checkpoint(connection, PASSIVE).await?;
    }
    let _turn = turn.lock().await;
    let journal = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await?;
    // A long read, such as a verification, needs the log as it is; asking again at once would only hold up writers.
    Ok(if journal.is_busy { CHECKPOINT_BUSY_GAP } else { CHECKPOINT_GAP })
}

const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const PASSES_MAX: usize = 4;

/// The write-ahead log: its pages, and how many of them are in the database already.
struct Journal {
    is_busy: bool,
    pages: i64,
    moved: i64,
}

async fn checkpoint(connection: &mut SqliteConnection, pragma: &'static str) -> Result<Journal> {
    let row: (i64, i64, i64) = sqlx::query_as(pragma)
        .fetch_one(connection)
        .await
        .map_err(Error::database("moving the write-ahead log into the database"))?;
    let (is_busy, pages, moved) = row;
    Ok(Journal { is_busy: is_busy != 0, pages, moved })
}
