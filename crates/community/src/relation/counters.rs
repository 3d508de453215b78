//! Counters of a user: five numbers in one compact value, kept by the projector, recounted from
//! their facts whenever the value is missing, malformed or found to differ.
//!
//! A counter is never clamped. One that would leave its range is drift: it is counted, said, and
//! recounted.
//!
//! The facts of `followings` and `followers` are the rows of the mirror, which hold exactly the
//! events applied so far. Counting `following` instead would count events on their way twice: now,
//! and again when they are applied.

mod codec;
mod in_place;
mod reader;
mod recount;
mod seed;
mod store;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidings_backbone::{Conn, Result, db::Engine, projector::Generation};
use tidings_event::Timestamp;

pub use codec::{Counters, SLOTS_BYTES};
pub use reader::CounterReader;

pub(super) use recount::recount;
pub(super) use seed::seed;
#[cfg(test)]
pub(super) use store::select_stored_after;
pub(super) use store::{Stored, raise_changes, read_stored, read_stored_after};

use super::generation::Of;
use crate::{UserId, telemetry};

/// What a batch of events changes for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) followings: i64,
    pub(super) followers: i64,
    /// When the last of them occurred.
    pub(super) at: Timestamp,
}

impl Delta {
    /// What `changes` begins with in a new row.
    fn first_changes(self, generation: Generation) -> i64 {
        first_changes(generation, self.at)
    }
}

/// What `changes` begins with in a new row of a generation. It rises by one with each change, much more slowly
/// than time; so a row that was lost and made anew never has a number that it had before. And no row of another
/// generation ever has it: each counts in a range of its own, above those of the generations before it, so
/// that what is kept at a number of an old one is never taken for the new one's.
pub(super) fn first_changes(generation: Generation, at: Timestamp) -> i64 {
    let range = generation.0.saturating_sub(1).clamp(0, RANGES_MAX) * CHANGES_OF_A_GENERATION;
    range + at.0.clamp(0, CHANGES_FIRST_MAX)
}

/// The same for a row that is made by whoever reads it, since it was lost. Without a number, nothing of the user's
/// would be kept until his next change.
async fn first_changes_now(conn: &mut Conn<'_>, generation: Generation) -> Result<i64> {
    let sql = format!("SELECT {}", conn.engine().now());
    let now = conn.fetch_optional("reading the clock of the database", sql, Vec::new()).await?;
    Ok(first_changes(generation, Timestamp(now.map_or(Ok(0), |row| row.int(0))?)))
}

const CHANGES_OF_A_GENERATION: i64 = 1 << 42;
/// Milliseconds until the year 2074: from there one can still count on for long.
const CHANGES_FIRST_MAX: i64 = CHANGES_OF_A_GENERATION - (1 << 40);
/// A number of Lua's, which Redis compares them by, has 53 bits: 2,048 generations differ.
const RANGES_MAX: i64 = (1 << 11) - 1;

/// Adds `deltas` to the counters of their users, on the transaction that has already changed the
/// mirror: a counter that is recounted here must find the batch in it. Those of `recounts`, who have deltas too, are
/// recounted in any case.
pub(super) async fn add(
    conn: &mut Conn<'_>,
    generation: Generation,
    deltas: &BTreeMap<UserId, Delta>,
    recounts: &BTreeSet<UserId>,
) -> Result<()> {
    match conn.engine() {
        Engine::Sqlite => add_to_read(conn, generation, deltas, recounts).await,
        Engine::Mysql | Engine::Mariadb => in_place::add(conn, generation, deltas, recounts).await,
    }
}

/// Where one writer at a time works, what was read can be written back.
async fn add_to_read(
    conn: &mut Conn<'_>,
    generation: Generation,
    deltas: &BTreeMap<UserId, Delta>,
    recounts: &BTreeSet<UserId>,
) -> Result<()> {
    let of = Of::One(generation);
    let users: Vec<UserId> = deltas.keys().copied().collect();
    let stored = read_stored(conn, of, &users).await?;
    let mut values = HashMap::with_capacity(users.len());
    let mut uncounted = Vec::new();
    for (user, delta) in deltas {
        let stored = stored.get(user).filter(|_| !recounts.contains(user));
        match stored.and_then(|stored| summed(*user, stored, *delta)) {
            Some(counters) => {
                values.insert(*user, counters);
            }
            None => uncounted.push(*user),
        }
    }
    values.extend(recount(conn, of, &uncounted).await?);
    let rows = deltas.iter().filter_map(|(user, delta)| {
        let before = stored.get(user).and_then(|stored| stored.changes).map_or(0, |changes| changes.saturating_add(1));
        Some((*user, *values.get(user)?, Some(before.max(delta.first_changes(generation)))))
    });
    store::write(conn, generation, rows).await
}

/// The stored counters with `delta` added, or `None` when they must be recounted.
fn summed(user: UserId, stored: &Stored, delta: Delta) -> Option<Counters> {
    let Some(counters) = stored.counters else {
        telemetry::counter_malformed(1);
        tracing::warn!(%user, "a counter's value is malformed; recounting");
        return None;
    };
    let sum = counters.plus(delta);
    if sum.is_none() {
        telemetry::counter_drift(1);
        tracing::error!(%user, ?counters, ?delta, "a counter would leave its range; recounting");
    }
    sum
}
