//! Events that the projection does not hold yet, by pair.

use std::collections::{HashMap, HashSet};

use tidings_backbone::{
    Conn, Result,
    log::{self, Offset, Part, Recorded},
    parking,
};
use tidings_event::{
    Timestamp,
    payload::{Followed, Payload, RecountRequested, Restated, Unfollowed},
};

use crate::{Pair, UserId, relation::EVENT_TYPES};

/// Events read at once.
const STEP_EVENTS: usize = 5_000;

/// The pending events of all pairs.
#[derive(Debug, Default)]
pub(in crate::relation) struct Pending {
    pairs: HashMap<Pair, PendingPair>,
    recounts: HashSet<UserId>,
    events: u64,
}

/// The pending events of one pair, as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) struct PendingPair {
    /// Version of the first; the projection must be at the one before.
    pub(super) first_version: u64,
    /// Whether the follow held before the first.
    pub(in crate::relation) held_before: bool,
    /// Since when the state before the first had been so, where the event tells.
    pub(super) since_before: Option<Timestamp>,
    /// Version of the last; the fact must be at it.
    pub(super) last_version: u64,
    /// Whether the follow holds after the last.
    pub(super) holds_after: bool,
    /// Version of the last that states the pair anew: the repair of a row that was wrong, and may be wrong in
    /// any way until then.
    restated: Option<u64>,
}

impl PendingPair {
    /// Whether a row at this version will be overwritten, whatever it says.
    pub(super) fn is_repair_of(&self, version: i64) -> bool {
        self.restated.is_some_and(|restated| i64::try_from(restated).is_ok_and(|restated| version < restated))
    }
}

impl Pending {
    /// Reads what waits in the parking lot of a generation in these parts of the log.
    pub(in crate::relation) async fn parked(conn: &mut Conn<'_>, identity: &str, parts: &[Part]) -> Result<Self> {
        let mut pending = Self::default();
        for part in parts {
            let mut last: Option<(String, Offset)> = None;
            loop {
                let after = last.as_ref().map(|(key, offset)| (key.as_str(), *offset));
                let parked = parking::waiting(conn, identity, part, after, STEP_EVENTS).await?;
                let Some((key, offset, _)) = parked.last() else { break };
                last = Some((key.clone(), *offset));
                // What cannot be read says nothing of a pair; if it changed one, that shows as a difference.
                let readable = parked.iter().filter_map(|(_, _, recorded)| recorded.as_ref());
                readable.for_each(|recorded| pending.add(recorded));
            }
        }
        Ok(pending)
    }

    /// Adds the events of the outbox behind a position. They come after what is parked, which was read
    /// before the position: so each pair's are in the order in which they were committed.
    pub(super) async fn and_behind(mut self, conn: &mut Conn<'_>, position: Offset) -> Result<Self> {
        let mut after = position;
        loop {
            let events = log::read_after(conn, after, STEP_EVENTS).await?;
            let Some(end) = events.last() else { return Ok(self) };
            after = end.offset;
            events.iter().for_each(|recorded| self.add(recorded));
        }
    }

    /// How many events are pending.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(in crate::relation) fn get(&self, pair: Pair) -> Option<&PendingPair> {
        self.pairs.get(&pair)
    }

    /// Whether the user's counters are going to be counted anew; until then they may be wrong in any way.
    pub(in crate::relation) fn will_recount(&self, user: UserId) -> bool {
        self.recounts.contains(&user)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Pair, &PendingPair)> {
        self.pairs.iter().map(|(pair, pending)| (*pair, pending))
    }

    /// Adds an event. The pair comes from the envelope: an event may be parked for its payload.
    fn add(&mut self, recorded: &Recorded) {
        let event = &recorded.event;
        if !EVENT_TYPES.contains(&event.event_type.as_str()) {
            return;
        }
        self.events += 1;
        if event.event_type == RecountRequested::EVENT_TYPE {
            self.recounts.extend(event.aggregate_id.parse::<UserId>());
            return;
        }
        let Ok(pair) = event.aggregate_id.parse::<Pair>() else { return };
        // It states what the fact was, and so does not change.
        let restated = Restated::read(event).ok().map(|payload| payload.following);
        let follows = restated.unwrap_or(event.event_type == Followed::EVENT_TYPE);
        let entry = self.pairs.entry(pair).or_insert_with(|| PendingPair {
            first_version: event.version,
            held_before: restated.unwrap_or(!follows),
            since_before: Unfollowed::read(event).ok().map(|payload| payload.followed_at),
            last_version: event.version,
            holds_after: follows,
            restated: None,
        });
        entry.last_version = event.version;
        entry.holds_after = follows;
        if event.event_type == Restated::EVENT_TYPE {
            entry.restated = Some(event.version);
            self.recounts.extend([pair.from, pair.to]);
        }
    }
}
