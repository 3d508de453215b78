//! A batch of events folded onto the rows they find: pure, so that it can be tested alone.

use std::collections::BTreeMap;

use tidings_backbone::log::Recorded;
use tidings_event::{
    Timestamp,
    payload::{Followed, Payload, Unfollowed},
};

use crate::{
    Error, Pair, Result, UserId,
    relation::{counters::Delta, mirror::Mirrored},
};

/// One event, as far as the mirror is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) struct Step {
    pub(in crate::relation) pair: Pair,
    pub(in crate::relation) version: i64,
    pub(in crate::relation) active: bool,
    pub(in crate::relation) at: Timestamp,
}

impl Step {
    /// Reads an event.
    ///
    /// # Errors
    /// When the event cannot be one that was written here; each such error is the event's own.
    pub(in crate::relation) fn read(recorded: &Recorded) -> Result<Self> {
        let event = &recorded.event;
        let (from, to, active, at) = match event.event_type.as_str() {
            Followed::EVENT_TYPE => {
                let payload = Followed::read(event)?;
                (payload.from, payload.to, true, payload.followed_at)
            }
            Unfollowed::EVENT_TYPE => {
                let payload = Unfollowed::read(event)?;
                (payload.from, payload.to, false, payload.unfollowed_at)
            }
            other => return Err(Error::UnknownEvent { event_type: other.to_owned() }),
        };
        let version = i64::try_from(event.version).ok().filter(|version| *version > 0);
        Ok(Self {
            pair: Pair { from: from.into(), to: to.into() },
            version: version.ok_or(Error::Version { version: event.version })?,
            active,
            at,
        })
    }
}

/// What a batch comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::relation) struct Folded {
    /// Rows that change, each with its last state.
    pub(in crate::relation) rows: BTreeMap<Pair, Mirrored>,
    /// What changes for each user.
    pub(in crate::relation) deltas: BTreeMap<UserId, Delta>,
    /// Events applied over a gap.
    pub(super) gaps: usize,
    /// Events without effect, since their pair was as new or newer.
    pub(super) stale: usize,
}

/// Applies `steps` in their order to the rows `stored`.
pub(super) fn fold(steps: &[Step], stored: &BTreeMap<Pair, Mirrored>) -> Folded {
    let mut folded = Folded::default();
    for step in steps {
        let before = folded.rows.get(&step.pair).or_else(|| stored.get(&step.pair)).copied();
        let seen = before.map_or(0, |row| row.version);
        if step.version <= seen {
            folded.stale += 1;
            continue;
        }
        if step.version > seen + 1 {
            folded.gaps += 1;
            tracing::warn!(pair = %step.pair, seen, version = step.version, "events of a pair are missing");
        }
        let row = Mirrored {
            active: step.active,
            version: step.version,
            created_at: before.map_or(step.at, |row| row.created_at),
            updated_at: step.at,
        };
        folded.rows.insert(step.pair, row);
        folded.count(step, before.is_some_and(|row| row.active));
    }
    folded
}

impl Folded {
    /// Moves the counters of both users if the row turned.
    fn count(&mut self, step: &Step, was_active: bool) {
        let by = i64::from(step.active) - i64::from(was_active);
        for (user, followings, followers) in [(step.pair.from, by, 0), (step.pair.to, 0, by)] {
            let delta = self.deltas.entry(user).or_default();
            delta.followings += followings;
            delta.followers += followers;
            delta.at = delta.at.max(step.at);
        }
    }
}
