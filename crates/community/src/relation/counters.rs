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
mod reader;
mod recount;
mod store;

use std::collections::{BTreeMap, HashMap};

use tidings_backbone::{Conn, Result, log::Offset};

pub use codec::{Counters, SLOTS_BYTES};
pub use reader::CounterReader;

pub(super) use recount::recount;
pub(super) use store::{Stored, read_stored, read_stored_after};

use crate::{UserId, telemetry};

/// What a batch of events changes for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) followings: i64,
    pub(super) followers: i64,
    /// The last event of the batch that changed the user's follower list.
    pub(super) followers_offset: Option<Offset>,
}

/// Adds `deltas` to the counters of their users, on the transaction that has already changed the
/// mirror: a counter that is recounted here must find the batch in it.
pub(super) async fn add(conn: &mut Conn<'_>, deltas: &BTreeMap<UserId, Delta>) -> Result<()> {
    let users: Vec<UserId> = deltas.keys().copied().collect();
    let stored = read_stored(conn, &users).await?;
    let mut values = HashMap::with_capacity(users.len());
    let mut uncounted = Vec::new();
    for (user, delta) in deltas {
        match stored.get(user).and_then(|stored| summed(*user, stored, *delta)) {
            Some(counters) => {
                values.insert(*user, counters);
            }
            None => uncounted.push(*user),
        }
    }
    values.extend(recount(conn, &uncounted).await?);
    let rows = deltas.iter().filter_map(|(user, delta)| {
        let before = stored.get(user).and_then(|stored| stored.followers_offset);
        Some((*user, *values.get(user)?, delta.followers_offset.or(before)))
    });
    store::write(conn, rows).await
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
