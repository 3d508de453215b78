//! Compares the mirror, the lists and the counters with the facts, exactly, also while a server
//! writes.
//!
//! All is read in one snapshot. Where the log is in the same database ([`verify`]), the projection
//! trails the facts in it by the events not yet applied: those after the projector's position, and
//! those in the parking lot. Taking them back, pair by pair, gives what the projection must be: the
//! state before a pair's first pending event.
//!
//! Where it is not ([`compare`]), what is on its way cannot be told from what is wrong. So the differences
//! are suspects: when all that was on its way has been applied, [`compare_again`] looks at these alone,
//! and what has not changed since then and still differs is wrong.
//!
//! Memory: some 50 bytes for each pair with pending events and for each user in the graph.

mod pairs;
mod pending;
mod report;
mod suspects;
mod users;

use tidings_backbone::{
    Db, Result,
    log::{Offset, Part},
    projector::position,
};

pub use report::{Difference, Kind, Report};
pub use suspects::{Suspects, compare_again};

use self::pending::Pending;
use super::projection;

/// Compares everything once, where the outbox is the log: with the events taken back that are on
/// their way.
///
/// # Errors
/// When the database fails. Differences are not errors: they are in the report.
pub async fn verify(db: &Db) -> Result<Report> {
    let mut tx = db.read().await?;
    let mut conn = tx.conn();
    let position = position(&mut conn, projection::NAME, &Part::outbox()).await?.unwrap_or(Offset(0));
    let pending = Pending::load(&mut conn, position).await?;
    let mut report = Report::new(position, pending.events());
    pairs::compare(&mut conn, &pending, &mut report).await?;
    users::compare(&mut conn, &pending, &mut report).await?;
    tx.rollback().await?;
    Ok(report)
}

/// Compares everything once, with no word of what is on its way: where nothing is, exactly.
///
/// # Errors
/// When the database fails. Differences are not errors: they are in the report.
pub async fn compare(db: &Db) -> Result<Report> {
    let mut tx = db.read().await?;
    let mut conn = tx.conn();
    let pending = Pending::default();
    let mut report = Report::new(Offset(0), 0);
    pairs::compare(&mut conn, &pending, &mut report).await?;
    users::compare(&mut conn, &pending, &mut report).await?;
    tx.rollback().await?;
    Ok(report)
}
