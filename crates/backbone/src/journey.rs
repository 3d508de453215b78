//! The journey of one event: committed when, by which request and trace; where it is in the log, and since when;
//! and what became of it for each projector, with the times between.
//!
//! Nearly all of it is written down anyway: the outbox row, the record in the log, the projectors' positions, the
//! parking lot, the audit. Only when a projector passed an event is not, since its position tells of the last one
//! alone. So positions leave a trail (`trail`): when a position is left in another tenth of a second than it was
//! come to, the transaction that moves it writes one row. A busy projector writes ten rows a second, however many
//! batches it commits; an idle one writes none.
//!
//! [`crate::projector::Handle::journey`] tells it.

mod applied;
mod committed;
mod relayed;
mod replayed;
pub(crate) mod trail;

use std::{collections::BTreeMap, time::Duration};

use tidings_event::{Event, EventId, Timestamp};

use crate::{
    Db, Result,
    log::{Log, Offset, Part},
    projector::Generation,
    trace::{Context, TraceId},
};

/// Types of events by the name of the projector that takes them.
pub(crate) type Taken = BTreeMap<&'static str, &'static [&'static str]>;

/// Where one event is, and since when.
#[derive(Clone, Debug, PartialEq)]
pub struct Journey {
    /// The event. It was committed when it occurred.
    pub event: Event,
    /// Where it is in the log.
    pub relayed: Relayed,
    /// What became of it for each projector: the generation that is read, and the one that is built, or the replay in
    /// place, if any.
    pub projectors: Vec<Stage>,
}

/// Where an event is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// Whether it is there.
    pub state: RelayState,
    /// The part that it is in, or comes into.
    pub part: Part,
    /// Where it stands there.
    pub offset: Option<Offset>,
    /// When it was appended, by the clock of the log.
    pub at: Option<Timestamp>,
    /// Of one that is waiting: events committed and not yet in the log, as far as that can be told.
    pub behind: Option<i64>,
}

/// Whether an event is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayState {
    /// It is there.
    Relayed,
    /// It is committed, and the relay has not come to it.
    Waiting,
    /// The relay could not publish it, or an earlier one of its key, and has set it aside: see [`crate::relay`].
    DeadLetter,
    /// It was not found: the log does not hold it any more, cannot be asked, or holds too much to look through.
    Unknown,
}

impl RelayState {
    /// As answers have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relayed => "relayed",
            Self::Waiting => "waiting",
            Self::DeadLetter => "dead-letter",
            Self::Unknown => "unknown",
        }
    }
}

/// What became of an event for one generation of a projector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The projector.
    pub projector: String,
    /// Which generation of its projection.
    pub generation: Generation,
    /// Whether it is the one that readers are given.
    pub is_live: bool,
    /// Whether this is the last replay in place, which applies it to the generation that is read once more.
    pub is_replay: bool,
    /// What became of it.
    pub state: State,
    /// When that came about, where it is known: of what was applied, discarded, or is dead.
    pub at: Option<Timestamp>,
    /// How exactly `at` is known: it came about no longer before it than this.
    pub resolution: Option<Duration>,
    /// Failed tries of the event itself.
    pub attempts: u32,
    /// When it is tried next; of one that waits behind another of its key, when that one is.
    pub next_attempt_at: Option<Timestamp>,
    /// Its last error and its causes; of one that waits behind another of its key, that one's.
    pub error: Option<String>,
    /// Events that have to be dealt with first: of its key where that is parked, else of its part of the log. There
    /// the ends of Kafka's transactions count too.
    pub events_before: i64,
}

/// What became of an event for a projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its effects are in the projection.
    Applied,
    /// Its turn has not come: others are before it.
    Waiting,
    /// It failed, and is tried again.
    Retrying,
    /// It failed, and waits for an operator.
    Dead,
    /// An operator took it out.
    Discarded,
    /// The projector does not take events of its type.
    Skipped,
    /// It cannot be told: where it is in the log is not known, or nobody here knows the projector.
    Unknown,
}

impl State {
    /// As answers have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
        }
    }
}

impl Journey {
    /// The trace of the request that committed it.
    pub fn trace_id(&self) -> Option<TraceId> {
        let context = self.event.metadata.traceparent.as_deref()?.parse::<Context>();
        context.ok().map(|context| context.trace_id)
    }

    /// Milliseconds from its commit to a moment; none where clocks say that it came first.
    pub fn after_ms(&self, at: Timestamp) -> i64 {
        (at.0 - self.event.occurred_at.0).max(0)
    }
}

/// The journey of an event; nothing where nobody knows the event any more, or ever did.
pub(crate) async fn tell(db: &Db, log: &Log, taken: &Taken, id: EventId) -> Result<Option<Journey>> {
    let Some(found) = committed::find(db, log, taken, id).await? else { return Ok(None) };
    // The log first: what is there by then, projectors have had the chance to see.
    let relayed = relayed::of(log, &found).await;
    let projectors = applied::stages(db, log, taken, &found.event, &relayed).await?;
    Ok(Some(Journey { event: found.event, relayed, projectors }))
}
