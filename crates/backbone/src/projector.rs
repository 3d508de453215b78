//! Projectors maintain projections: a projector is a function of a batch of events.
//!
//! The runtime reads batches from the log and hands each to [`Projector::apply`] on a transaction
//! that also moves the projector's position, so every effect of an event happens once. A batch
//! that fails by an event's fault is halved until the culprit stands alone; its key is parked and
//! the other keys go on. A dependency that is down uses up no attempt.

mod apply;
mod clear;
mod feed;
pub mod generation;
mod group;
mod joint;
mod pace;
mod position;
pub mod rebuild;
mod retry;
mod runtime;
mod status;
mod supervisor;
mod task;

use async_trait::async_trait;

use crate::{Conn, Error, log::Recorded};

pub use generation::{Generation, Target};
pub use position::{Position, position, positions};
pub(crate) use position::{hold as hold_position, place};
pub use retry::Gaps;
pub use runtime::{MissingHistory, Options, Runtime};
pub use status::{Forgotten, Handle, NotForgotten, PartStatus, State, Status};

/// Maintains one projection.
#[async_trait]
pub trait Projector: Send + Sync + 'static {
    /// Identity of the projector: its position is stored under it, so it never changes. It has no `@`.
    fn name(&self) -> &'static str;

    /// The event types it applies; others are passed over.
    fn event_types(&self) -> &'static [&'static str];

    /// Applies a batch, in order, on a transaction that also holds the position. All events of
    /// one key come in commit order. Set-based statements make it fast. Whoever can be rebuilt has rows
    /// of several generations, and writes to those of `target`.
    async fn apply(&self, batch: &[Recorded], target: Target, conn: Conn<'_>) -> Result<(), ApplyError>;

    /// How its projection holds several generations side by side, so that the next one can be built while one
    /// is read. Without that it cannot be rebuilt.
    fn generations(&self) -> Option<&dyn rebuild::Generations> {
        None
    }

    /// Whether events may be applied a second time, out of turn: those that are not newer than what they find
    /// have no effect. Then they may be replayed in place.
    fn is_replayable(&self) -> bool {
        false
    }

    /// Called after a transaction on the live generation has committed, to refresh caches. `batch` has the
    /// events that were applied in it, and none that was parked: of each, the last call of `apply` is the one
    /// that was committed. It may be missed in a crash and is cut short after
    /// [`crate::limits::PROJECTOR_COMMITTED_TIME_MAX`], so nothing that must not be lost belongs here.
    async fn committed(&self, batch: &[Recorded]) {
        let _ = batch;
    }
}

/// Why a batch was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// An event of the batch is at fault: it is found by halving, and its key is parked.
    #[error("an event could not be applied")]
    Event(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Something the projector depends on is down: the whole batch is tried again later.
    #[error("a dependency failed")]
    Dependency(#[source] Error),
}

impl ApplyError {
    /// An error of the event's own.
    pub fn event(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Event(error.into())
    }
}

impl From<Error> for ApplyError {
    /// A database that finds the values at fault blames the event. Anything else it says, from
    /// "busy" to "no such table", is a dependency that is down: no event is parked for it.
    fn from(error: Error) -> Self {
        if error.is_fault_of_data() { Self::event(error) } else { Self::Dependency(error) }
    }
}

impl From<tidings_event::Error> for ApplyError {
    fn from(error: tidings_event::Error) -> Self {
        Self::event(error)
    }
}
