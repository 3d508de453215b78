//! The journey of one event, as the command line and the admin API show it.

use serde::Serialize;
use tidings_backbone::{
    journey::{Journey, RelayState, Stage},
    log::Offset,
};
use tidings_event::Timestamp;
use utoipa::ToSchema;

/// Where one event is, and since when. Every field is always there; what is not known is null.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JourneyView {
    /// The event.
    #[schema(example = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c")]
    pub event_id: String,
    /// What happened.
    #[schema(example = "relation.followed")]
    pub event_type: String,
    /// The unit of order.
    #[schema(example = "17")]
    pub key: String,
    /// The kind of thing that changed.
    #[schema(example = "relation")]
    pub aggregate_type: String,
    /// The thing that changed.
    #[schema(example = "17:42")]
    pub aggregate_id: String,
    /// Which of its changes it was.
    pub version: u64,
    /// When and by what.
    pub committed: CommittedView,
    /// Where it is in the log.
    pub relayed: RelayedView,
    /// What became of it for each projector.
    pub projectors: Vec<StageView>,
}

/// When an event was committed, and by what.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CommittedView {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// By which request.
    pub request_id: Option<String>,
    /// In which trace.
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    pub trace_id: Option<String>,
}

/// Where an event is in the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RelayedView {
    /// `relayed`; `waiting` before the relay has come to it; `dead-letter` where the relay could not publish it, or an
    /// earlier one of its key; `unknown` where the log does not hold it any more, cannot be asked, or holds too much to
    /// look through.
    #[schema(example = "relayed")]
    pub state: &'static str,
    /// The topic that it is in, or comes into; embedded, `outbox`.
    #[schema(example = "tidings.relation")]
    pub topic: String,
    /// The partition of the topic.
    pub partition: i32,
    /// Where it stands there.
    pub offset: Option<i64>,
    /// When it was appended, by the clock of the log.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// Milliseconds from its commit to that.
    pub after_ms: Option<i64>,
}

/// What became of an event for one generation of a projector.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StageView {
    /// The projector.
    #[schema(example = "relation")]
    pub projector: String,
    /// Which generation of its projection.
    pub generation: i64,
    /// Whether it is the one that readers are given; else it is being built, or this is a replay.
    pub live: bool,
    /// Whether this is the last replay in place, which applies the event to the generation that is read once more.
    pub replay: bool,
    /// `applied`, `waiting` (others are before it), `retrying`, `dead`, `discarded`, `skipped` (the projector does not
    /// take its type) or `unknown`.
    #[schema(example = "applied")]
    pub state: &'static str,
    /// When it was applied or discarded, or its key died; null where that is not kept any more.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// How exactly `at` is known, in milliseconds: it came about no longer before it than this.
    pub resolution_ms: Option<u64>,
    /// Milliseconds from its commit to that.
    pub after_ms: Option<i64>,
    /// Failed tries of the event itself.
    pub attempts: u32,
    /// When it is tried next; of one that waits behind another of its key, when that one is.
    #[schema(format = DateTime)]
    pub next_attempt_at: Option<String>,
    /// Its last error and its causes; of one that waits behind another of its key, that one's.
    pub error: Option<String>,
    /// Events that have to be dealt with first: of its key where that is parked, else of its part of the log.
    pub events_before: i64,
}

impl From<&Journey> for JourneyView {
    fn from(journey: &Journey) -> Self {
        let Journey { event, relayed, projectors } = journey;
        Self {
            event_id: event.id.to_string(),
            event_type: event.event_type.clone(),
            key: event.key.clone(),
            aggregate_type: event.aggregate_type.clone(),
            aggregate_id: event.aggregate_id.clone(),
            version: event.version,
            committed: CommittedView {
                at: event.occurred_at.to_string(),
                request_id: event.metadata.request_id.clone(),
                trace_id: journey.trace_id().map(|trace| trace.to_string()),
            },
            relayed: RelayedView {
                state: relayed.state.name(),
                topic: relayed.part.topic.to_string(),
                partition: relayed.part.number,
                offset: relayed.offset.map(|Offset(offset)| offset),
                at: text(relayed.at),
                after_ms: relayed.at.map(|at| journey.after_ms(at)),
            },
            projectors: projectors.iter().map(|stage| view(journey, stage)).collect(),
        }
    }
}

fn view(journey: &Journey, stage: &Stage) -> StageView {
    StageView {
        projector: stage.projector.clone(),
        generation: stage.generation.0,
        live: stage.is_live,
        replay: stage.is_replay,
        state: stage.state.name(),
        at: text(stage.at),
        resolution_ms: stage.resolution.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        after_ms: stage.at.map(|at| journey.after_ms(at)),
        attempts: stage.attempts,
        next_attempt_at: text(stage.next_attempt_at),
        error: stage.error.clone(),
        events_before: stage.events_before,
    }
}

fn text(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// What there is to say of the log, for people.
pub fn of_the_log(journey: &Journey) -> String {
    let relayed = &journey.relayed;
    let at = match relayed.offset {
        Some(Offset(offset)) => format!("{}, offset {offset}", relayed.part),
        None => relayed.part.to_string(),
    };
    match (relayed.state, relayed.behind) {
        (RelayState::Relayed, _) => at,
        (RelayState::Waiting, Some(1)) => format!("for {at}; 1 event is not in the log"),
        (RelayState::Waiting, Some(behind)) => format!("for {at}; {behind} events are not in the log"),
        (RelayState::Waiting, None) => format!("for {at}"),
        (RelayState::DeadLetter, _) => format!("set aside, or behind one of its key that is, and not in {at}"),
        (RelayState::Unknown, _) => format!("not found in {at}: it is gone, Kafka is away, or there is too much"),
    }
}
