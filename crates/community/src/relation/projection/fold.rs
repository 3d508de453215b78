//! A batch of events folded onto the rows they find: pure, so that it can be tested alone.

use std::collections::{BTreeMap, BTreeSet};

use tidings_backbone::log::Recorded;
use tidings_event::{
    Event, Timestamp,
    payload::{Followed, Payload, RecountRequested, Restated, Unfollowed},
};

use crate::{
    Error, Pair, Result, UserId,
    relation::{counters::Delta, mirror::Mirrored},
};

/// One event, as far as the projection is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) enum Step {
    /// A pair's state.
    Pair(PairStep),
    /// The counters of this user are to be counted anew.
    Recount(UserId, Timestamp),
}

/// An event of a pair, as far as the mirror is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) struct PairStep {
    pub(in crate::relation) pair: Pair,
    version: i64,
    active: bool,
    /// Since when the pair has been so.
    since: Timestamp,
    /// When the event occurred.
    at: Timestamp,
    /// Of a pair that is stated anew: when it first became active.
    restated: Option<Timestamp>,
}

impl Step {
    /// Reads an event.
    ///
    /// # Errors
    /// When the event cannot be one that was written here; each such error is the event's own.
    pub(in crate::relation) fn read(recorded: &Recorded) -> Result<Self> {
        let event = &recorded.event;
        Ok(match event.event_type.as_str() {
            Followed::EVENT_TYPE => {
                let payload = Followed::read(event)?;
                let pair = Pair { from: payload.from.into(), to: payload.to.into() };
                Self::Pair(PairStep::new(event, pair, true, payload.followed_at)?)
            }
            Unfollowed::EVENT_TYPE => {
                let payload = Unfollowed::read(event)?;
                let pair = Pair { from: payload.from.into(), to: payload.to.into() };
                Self::Pair(PairStep::new(event, pair, false, payload.unfollowed_at)?)
            }
            Restated::EVENT_TYPE => {
                let payload = Restated::read(event)?;
                let pair = Pair { from: payload.from.into(), to: payload.to.into() };
                let step = PairStep::new(event, pair, payload.following, payload.updated_at)?;
                Self::Pair(PairStep { restated: Some(payload.created_at), ..step })
            }
            RecountRequested::EVENT_TYPE => {
                Self::Recount(RecountRequested::read(event)?.user.into(), event.occurred_at)
            }
            other => return Err(Error::UnknownEvent { event_type: other.to_owned() }),
        })
    }

    /// The pair, if it is about one.
    pub(in crate::relation) fn pair(&self) -> Option<Pair> {
        match self {
            Self::Pair(step) => Some(step.pair),
            Self::Recount(..) => None,
        }
    }
}

impl PairStep {
    fn new(event: &Event, pair: Pair, active: bool, since: Timestamp) -> Result<Self> {
        let version = i64::try_from(event.version).ok().filter(|version| *version > 0);
        let version = version.ok_or(Error::Version { version: event.version })?;
        Ok(Self { pair, version, active, since, at: event.occurred_at, restated: None })
    }
}

/// What a batch comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::relation) struct Folded {
    /// Rows that change, each with its last state.
    pub(in crate::relation) rows: BTreeMap<Pair, Mirrored>,
    /// What changes for each user.
    pub(in crate::relation) deltas: BTreeMap<UserId, Delta>,
    /// Those of them whose counters are not to be believed, and are counted anew from the mirror.
    pub(in crate::relation) recounts: BTreeSet<UserId>,
    /// Events applied over a gap.
    pub(super) gaps: usize,
    /// Events without effect, since their pair was as new or newer.
    pub(super) stale: usize,
}

/// Applies `steps` in their order to the rows `stored`.
pub(super) fn fold(steps: &[Step], stored: &BTreeMap<Pair, Mirrored>) -> Folded {
    let mut folded = Folded::default();
    for step in steps {
        match step {
            Step::Pair(step) => folded.turn(step, stored),
            Step::Recount(user, at) => folded.recount(*user, *at),
        }
    }
    folded
}

impl Folded {
    fn turn(&mut self, step: &PairStep, stored: &BTreeMap<Pair, Mirrored>) {
        let before = self.rows.get(&step.pair).or_else(|| stored.get(&step.pair)).copied();
        let seen = before.map_or(0, |row| row.version);
        if step.version <= seen {
            self.stale += 1;
            return;
        }
        // What states a pair anew is above every version that was found, on purpose.
        if step.version > seen + 1 && step.restated.is_none() {
            self.gaps += 1;
            tracing::warn!(pair = %step.pair, seen, version = step.version, "events of a pair are missing");
        }
        let row = Mirrored {
            active: step.active,
            version: step.version,
            created_at: step.restated.or(before.map(|row| row.created_at)).unwrap_or(step.since),
            updated_at: step.since,
        };
        self.rows.insert(step.pair, row);
        if step.restated.is_some() {
            // The row was wrong and the counters may have been right all along, or the reverse: no difference
            // between two rows tells.
            self.recount(step.pair.from, step.at);
            self.recount(step.pair.to, step.at);
        } else {
            self.count(step, before.is_some_and(|row| row.active));
        }
    }

    /// Moves the counters of both users if the row turned.
    fn count(&mut self, step: &PairStep, was_active: bool) {
        let by = i64::from(step.active) - i64::from(was_active);
        for (user, followings, followers) in [(step.pair.from, by, 0), (step.pair.to, 0, by)] {
            let delta = self.deltas.entry(user).or_default();
            delta.followings += followings;
            delta.followers += followers;
            delta.at = delta.at.max(step.at);
        }
    }

    fn recount(&mut self, user: UserId, at: Timestamp) {
        let delta = self.deltas.entry(user).or_default();
        delta.at = delta.at.max(at);
        self.recounts.insert(user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(version: i64, active: bool, restated: Option<Timestamp>) -> Step {
        let users = [1, 2].map(|id| UserId::try_from(id).unwrap());
        let pair = Pair { from: users[0], to: users[1] };
        Step::Pair(PairStep { pair, version, active, since: Timestamp(version), at: Timestamp(90), restated })
    }

    #[test]
    fn a_pair_that_is_stated_anew_is_the_newest_state_over_no_gap_and_is_counted_anew() {
        let (first, again) = (Some(Timestamp(1)), step(9, true, Some(Timestamp(1))));
        let folded = fold(&[step(1, true, None), again, again, step(5, false, first)], &BTreeMap::new());
        assert_eq!((folded.gaps, folded.stale), (0, 2));
        let row = Mirrored { active: true, version: 9, created_at: Timestamp(1), updated_at: Timestamp(9) };
        assert_eq!(folded.rows.values().collect::<Vec<_>>(), [&row]);
        assert_eq!(folded.recounts, folded.deltas.keys().copied().collect());
        assert_eq!(folded.recounts.len(), 2);

        // The next change is over no gap either; another one is.
        let folded = fold(&[step(10, false, None), step(12, true, None)], &folded.rows);
        assert_eq!((folded.gaps, folded.stale), (1, 0));
        assert!(folded.recounts.is_empty());
    }
}
