//! Why an operator's wish is not followed.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use super::State;
use crate::idempotency::KeyReused;

/// Why an operator's wish is not followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No projector here has this name.
    UnknownProjector,
    /// The projector does not hold several generations.
    NotRebuildable,
    /// The projector's effects would be doubled.
    NotReplayable,
    /// The projector cannot be made from facts.
    NoFacts,
    /// It would lack what was before the time or the offset that it begins at, and its check would find that out.
    NotWhole,
    /// The wish contradicts itself, or the log has no such place.
    Wish(Cow<'static, str>),
    /// Its end is before its beginning.
    EndsBeforeItBegins,
    /// A replay in place has no switch that could wait.
    NothingToHold,
    /// Another rebuild of the projector is under way.
    UnderWay(State),
    /// There is no rebuild, or it has ended.
    NoneUnderWay,
    /// That is not possible in this state.
    NotIn(State),
    /// Some keys of what is built are dead: it lacks their events.
    DeadKeys(i64),
    /// The idempotency key belongs to another request.
    KeyReused,
}

impl Refusal {
    pub(super) fn wish(what: &'static str) -> Self {
        Self::Wish(Cow::Borrowed(what))
    }
}

impl From<KeyReused> for Refusal {
    fn from(KeyReused: KeyReused) -> Self {
        Self::KeyReused
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownProjector => f.write_str("no projector has this name"),
            Self::NotRebuildable => f.write_str("its projection holds no several generations"),
            Self::NotReplayable => f.write_str("events that are applied to it twice count twice"),
            Self::NoFacts => f.write_str("it cannot be made from facts"),
            Self::NotWhole => f.write_str(
                "what begins at a time or an offset lacks what was before, and its check compares it with all the \
                 facts: build it from the beginning or from facts, or apply the events in place",
            ),
            Self::Wish(what) => f.write_str(what),
            Self::EndsBeforeItBegins => f.write_str("it ends before it begins"),
            Self::NothingToHold => f.write_str("in place there is no switch that could wait"),
            Self::UnderWay(State::Failed) => f.write_str(
                "a rebuild of it has failed and is still there: resume it, which checks it again, or cancel it",
            ),
            Self::UnderWay(state) => write!(f, "a rebuild of it is under way ({})", state.name()),
            Self::NoneUnderWay => f.write_str("no rebuild of it is under way"),
            Self::NotIn(state) => write!(f, "that cannot be done while it is {}", state.name()),
            Self::DeadKeys(1) => {
                f.write_str("1 of its keys is dead; redrive it, or force the switch without its events")
            }
            Self::DeadKeys(keys) => {
                write!(f, "{keys} of its keys are dead; redrive them, or force the switch without their events")
            }
            Self::KeyReused => f.write_str("the idempotency key belongs to another request"),
        }
    }
}
