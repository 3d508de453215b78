//! The one error of this crate. Commands and reads fail only as the database does, and answer the
//! backbone's error as it is; a projection can also be handed an event that it cannot apply.

use tidings_backbone::projector::ApplyError;

/// What went wrong, with its cause kept as [`std::error::Error::source`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database, or something else of the backbone, failed.
    #[error(transparent)]
    Backbone(#[from] tidings_backbone::Error),
    /// An event's payload cannot be read.
    #[error("an event's payload cannot be applied")]
    Payload(#[from] tidings_event::Error),
    /// An event is of a type its projector does not know.
    #[error("no rule for events of type `{event_type}`")]
    UnknownEvent {
        /// The type of the event.
        event_type: String,
    },
    /// An event's version cannot be one that this crate wrote.
    #[error("version {version} is out of range")]
    Version {
        /// The version of the event.
        version: u64,
    },
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Error> for ApplyError {
    /// The backbone knows which of its own errors are an event's fault; all others here are.
    fn from(error: Error) -> Self {
        match error {
            Error::Backbone(error) => error.into(),
            error => Self::event(error),
        }
    }
}
