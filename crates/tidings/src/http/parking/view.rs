//! What the routes of the parking lot answer.

use serde::Serialize;
use serde_json::value::RawValue;
use tidings_backbone::{
    limits::REDRIVE_KEPT_KEYS_MAX,
    parking::{Discarded, ParkedKey, Plan, Planned, State, WaitingEvent},
};
use utoipa::ToSchema;

use crate::http::{moment::Moment, problem::Problem};

/// A key that waits because one of its events failed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ParkedView {
    /// The projector whose event failed.
    #[schema(example = "relation")]
    projector: String,
    /// The part of the log that its events are in, as `topic/partition`.
    #[schema(example = "tidings.relation/3")]
    part: String,
    /// The key that waits.
    #[schema(example = "17")]
    key: String,
    /// `retrying`; `dead` when its attempts are spent; `redriving` when an operator lets it be tried.
    state: &'static str,
    /// Failed tries of the event at its head.
    attempts: u32,
    /// When it is tried next; null for a dead key.
    next_attempt_at: Option<Moment>,
    /// The last error and its causes.
    error: String,
    /// When the key was parked.
    parked_at: Moment,
    /// When it last died; null if it never did.
    died_at: Option<Moment>,
    /// The id of the event at its head; null if that is no event.
    event_id: Option<String>,
    /// The type of the event at its head; empty if that is no event.
    event_type: String,
    /// Events that wait, the failed one included.
    waiting: u64,
}

impl From<ParkedKey> for ParkedView {
    fn from(key: ParkedKey) -> Self {
        Self {
            part: key.part.to_string(),
            state: key.state.name(),
            next_attempt_at: (key.state != State::Dead).then_some(Moment(key.next_attempt_at)),
            parked_at: Moment(key.parked_at),
            died_at: key.died_at.map(Moment),
            projector: key.projector,
            key: key.key,
            attempts: key.attempts,
            error: key.error,
            event_id: key.event_id,
            event_type: key.event_type,
            waiting: key.waiting,
        }
    }
}

/// An event that waits under a parked key.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct WaitingView {
    /// The part of the log it is in, as `topic/partition`.
    #[schema(example = "tidings.relation/3")]
    part: String,
    /// Where it stands there.
    offset: i64,
    /// Its id; null if it is no event.
    event_id: Option<String>,
    /// Its type; empty if it is none that could be told.
    #[schema(example = "relation.followed")]
    event_type: String,
    /// When it occurred; of what is no event, when it was parked.
    occurred_at: Moment,
    /// Whether it is an event, and not a row that could not be read as one.
    readable: bool,
    /// The event as CloudEvents 1.0 JSON; of what is none, why it could not be read, and what could be.
    #[schema(value_type = Object)]
    event: Box<RawValue>,
}

impl WaitingView {
    pub(in crate::http) fn new(event: &WaitingEvent) -> Result<Self, Problem> {
        Ok(Self {
            part: event.part.to_string(),
            offset: event.offset.0,
            event_id: event.event_id.clone(),
            event_type: event.event_type.clone(),
            occurred_at: Moment(event.occurred_at),
            readable: event.is_event(),
            event: RawValue::from_string(event.event.clone()).map_err(|error| Problem::internal(&error))?,
        })
    }
}

/// What a redrive does, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct PlanView {
    /// Whether nothing was changed.
    dry_run: bool,
    /// Keys that are tried again.
    keys: usize,
    /// Events that wait under them.
    waiting: u64,
    /// Time until the last event is tried, in milliseconds, at the rate that was asked for.
    takes_ms: u64,
    /// Keys that match too and are left: one redrive takes 20,000. The same request again takes the next.
    left: u64,
    /// When the last one of the keys was parked or died. With `keys` it is what `shown` wants.
    until: Moment,
    /// The first keys, at most 100, in the order in which they are tried.
    items: Vec<PlannedView>,
}

/// One key of a redrive.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct PlannedView {
    /// The projector.
    #[schema(example = "relation")]
    projector: String,
    /// The part of the log, as `topic/partition`.
    #[schema(example = "tidings.relation/3")]
    part: String,
    /// The key.
    #[schema(example = "17")]
    key: String,
    /// What it was before.
    state: &'static str,
    /// Events that wait under it.
    waiting: u64,
    /// When it is tried, in milliseconds from now.
    after_ms: u64,
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl PlanView {
    pub(in crate::http) fn new(plan: &Plan, dry_run: bool) -> Self {
        let view = |key: &Planned| PlannedView {
            projector: key.projector.clone(),
            part: key.part.to_string(),
            key: key.key.clone(),
            state: key.state.name(),
            waiting: key.waiting,
            after_ms: millis(key.after),
        };
        Self {
            dry_run,
            keys: plan.count,
            waiting: plan.waiting,
            takes_ms: millis(plan.takes),
            left: plan.left,
            until: Moment(plan.until),
            items: plan.keys.iter().take(REDRIVE_KEPT_KEYS_MAX).map(view).collect(),
        }
    }
}

/// What was discarded.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DiscardedView {
    /// The event.
    event: WaitingView,
    /// Whether it was the one that failed, so that the next one is tried now.
    was_head: bool,
    /// Whether nothing waits under the key any more, so that it is free.
    freed: bool,
}

impl DiscardedView {
    pub(in crate::http) fn new(discarded: &Discarded) -> Result<Self, Problem> {
        let Discarded { event, was_head, freed } = discarded;
        Ok(Self { event: WaitingView::new(event)?, was_head: *was_head, freed: *freed })
    }
}
