//! Compares the mirror, the lists and the counters with the facts, exactly, also while a server
//! writes.
//!
//! All is read in one snapshot. Where the log is in the same database ([`verify`]), the projection
//! trails the facts in it by the events not yet applied: those after the projector's position, and
//! those in the parking lot. Taking them back, pair by pair, gives what the projection must be: the
//! state before a pair's first pending event.
//!
//! Where it is not ([`compare`]), only what is parked is known to be on its way. Counters are compared
//! with the mirror, which changes with them in one transaction. A pair whose mirror row is not the image of
//! its fact is a suspect: when all that was on its way has been applied, [`compare_again`] looks at it
//! alone, and if its fact has not changed since, the mirror must be at it.
//!
//! However many rows there are, each statement reads some [`crate::limits::VERIFY_STEP_ROWS`] of them, by the primary
//! key: servers give up what takes too long.
//!
//! Memory: some 50 bytes for each pair with pending events; where counters are compared with facts and not with the
//! mirror, for each user in the graph as well.

mod active;
pub(super) mod counters;
pub(super) mod pairs;
pub(super) mod pending;
mod report;
pub(super) mod shards;
pub(super) mod stretches;
pub(super) mod suspects;
pub(super) mod users;

use tidings_backbone::{
    Db, Result, Tx,
    log::{Log, Offset, Part},
    projector::{Generation, generation::live, position},
};

pub use report::{Difference, Kind, Report};
pub use suspects::{Suspects, compare_again};

pub(super) use suspects::look_again;

use self::{pending::Pending, shards::Shards};
use super::{EVENT_TYPES, projection};

/// Compares the live generation once, where the outbox is the log: with the events taken back that are on
/// their way.
///
/// # Errors
/// When the database fails. Differences are not errors: they are in the report.
pub async fn verify(db: &Db) -> Result<Report> {
    let mut tx = db.read().await?;
    let live = live(&mut tx.conn(), projection::NAME).await?;
    verify_generation(tx, live).await
}

/// The same for a generation, in the snapshot of `tx`.
pub(super) async fn verify_generation(mut tx: Tx, generation: Generation) -> Result<Report> {
    let mut conn = tx.conn();
    let identity = generation.identity(projection::NAME);
    let position = position(&mut conn, &identity, &Part::outbox()).await?.unwrap_or(Offset(0));
    let parked = Pending::parked(&mut conn, &identity, &[Part::outbox()]).await?;
    let pending = parked.and_behind(&mut conn, position).await?;
    let mut report = Report::new(position, pending.events());
    pairs::compare(&mut conn, generation, &Shards::ALL, &pending, &mut report, None).await?;
    users::compare(&mut conn, generation, &pending, &mut report).await?;
    tx.rollback().await?;
    Ok(report)
}

/// Compares the live generation once, with no word of what is on its way to the projector through `log`: the
/// report has what is wrong whatever that is, the suspects what may be.
///
/// # Errors
/// When the database fails. Differences are not errors: they are in the report.
pub async fn compare(db: &Db, log: &Log) -> Result<(Report, Suspects)> {
    let mut tx = db.read().await?;
    let live = live(&mut tx.conn(), projection::NAME).await?;
    compare_generation(tx, live, log).await
}

/// The same for a generation, in the snapshot of `tx`.
pub(super) async fn compare_generation(mut tx: Tx, generation: Generation, log: &Log) -> Result<(Report, Suspects)> {
    let mut conn = tx.conn();
    let identity = generation.identity(projection::NAME);
    let parked = Pending::parked(&mut conn, &identity, &log.parts(EVENT_TYPES)).await?;
    let (mut report, mut suspects) = (Report::new(Offset(0), parked.events()), Suspects::default());
    pairs::compare(&mut conn, generation, &Shards::ALL, &parked, &mut report, Some(&mut suspects)).await?;
    counters::compare_with_mirror(&mut conn, generation, &parked, &mut report).await?;
    tx.rollback().await?;
    Ok((report, suspects))
}
