//! The parking lot: where a key waits after one of its events failed.
//!
//! An event that fails is stored here under its key in the transaction that moves the projector's
//! position past it; later events of the key are appended behind it, so their order is kept and no
//! other key waits. Each failed try makes the gap to the next one grow; when the attempts are
//! spent the key is dead and waits for an operator.
//!
//! The projector's task alone applies events. An operator changes rows: [`redrive`] lets keys be tried
//! again, [`discard`] takes one event out. On MySQL and MariaDB, where several transactions work at once, also of
//! processes that do not know yet that the part of the log is no longer theirs:
//!
//! - Whoever tries or changes a key holds its row of `parked_key`, so that they take turns key by key. A task does
//!   not wait for a row: other keys go on while somebody who is frozen holds it.
//! - Whoever frees a key holds the position at the end, and a task frees one only while the position is where the
//!   task believes it to be. Whoever appends behind a key moves the position, and then looks whether the key is still
//!   parked. So one of the two sees the other, and no event is left behind under a key that is free.
//!
//! In reading order: `lot` and `due` are what the projector's task does, `look` what can be looked at, `filter` chooses
//! keys, `redrive` and `discard` are the operator's, and `deaths` is what [`crate::alerts`] tells.

mod deaths;
mod discard;
mod due;
mod filter;
mod look;
mod lot;
mod redrive;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use tidings_event::Timestamp;

use crate::{
    Error, Result,
    db::Value,
    idempotency::KeyReused,
    log::{Offset, Part},
};

pub(crate) use self::{
    deaths::{Dead, Death, note_crowd_told, note_told, take_crowd, take_untold},
    due::{Due, Lot, Waiting, due, lot, waiting_if_due},
    look::oldest,
    lot::{append, are_still_parked, note_failure, park, park_malformed, parked_among, remove_applied},
};
pub use self::{
    discard::{Discard, Discarded, Which, discard, find},
    filter::Filter,
    look::{Counts, Mark, ParkedKey, WaitingEvent, count, events, list, waiting},
    redrive::{Plan, Planned, Redrive, Shown, plan, redrive},
};

/// Whose lot: each projector has one on each part of the log, so that whoever owns the part owns the
/// lot, and the offsets in it are of one sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) projector: &'a str,
    pub(crate) part: &'a Part,
}

impl Owner<'_> {
    fn values(self) -> [Value; 2] {
        [self.projector.into(), self.part.to_string().into()]
    }

    fn args<const N: usize>(self, rest: [Value; N]) -> Vec<Value> {
        self.values().into_iter().chain(rest).collect()
    }
}

/// The rows of one lot.
const OWNED: &str = "projector = ? AND part = ?";

/// Whether and how a parked key is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is tried again when its time has come.
    Retrying,
    /// Its attempts are spent; only an operator lets it be tried again.
    Dead,
    /// An operator lets it be tried when its time has come; at its first failure it is dead again.
    Redriving,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Retrying, Self::Dead, Self::Redriving];

    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retrying => "retrying",
            Self::Dead => "dead",
            Self::Redriving => "redriving",
        }
    }

    fn code(self) -> i64 {
        match self {
            Self::Retrying => 0,
            Self::Dead => 1,
            Self::Redriving => 2,
        }
    }

    pub(crate) fn from_code(code: i64) -> Result<Self> {
        let state = Self::ALL.into_iter().find(|state| state.code() == code);
        state.ok_or_else(|| Error::MalformedRow { table: "parked_key", reason: format!("state is {code}") })
    }
}

impl std::str::FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or(UnknownState)
    }
}

/// No state has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a state is `retrying`, `dead` or `redriving`")]
pub struct UnknownState;

/// Why an operator's action was not done. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No key that is parked was meant.
    #[error("no parked key matches")]
    NoneParked,
    /// At this rate it would take longer than [`crate::limits::REDRIVE_TIME_MAX`].
    #[error(
        "{waiting} events at {events_per_second} a second take more than a day: choose a higher rate or fewer keys"
    )]
    TooLong {
        /// Events that wait under the keys.
        waiting: u64,
        /// The rate asked for.
        events_per_second: u32,
    },
    /// It would do more than was shown to whoever asks.
    #[error("more keys match now ({keys}) than were shown ({shown}): look again")]
    MoreThanShown {
        /// Keys that match.
        keys: usize,
        /// Keys that were shown.
        shown: usize,
    },
    /// No such event waits under the key.
    #[error("no such event waits under this key")]
    NoSuchEvent,
    /// More than one is meant: an id that stands in the log twice, an offset in several parts.
    #[error("{} events are meant: name one by its part and offset ({})", at.len(), places(at))]
    SeveralEvents {
        /// Where they are.
        at: Vec<(Part, Offset)>,
    },
    /// The idempotency key belongs to another request.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
}

impl From<KeyReused> for Refusal {
    fn from(KeyReused: KeyReused) -> Self {
        Self::KeyReused
    }
}

fn places(at: &[(Part, Offset)]) -> String {
    at.iter().map(|(part, offset)| format!("{part} {}", offset.0)).collect::<Vec<_>>().join(", ")
}

/// A time as a column that may hold none.
fn moment(at: Option<i64>) -> Option<Timestamp> {
    at.map(Timestamp)
}
