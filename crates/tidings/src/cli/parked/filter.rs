//! Choosing parked keys on the command line.

use clap::Args;
use tidings_backbone::parking::{Filter, State};
use tidings_event::Timestamp;

/// Which keys are meant: those that meet all that is given.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Of this projector
    #[arg(long, value_name = "NAME")]
    projector: Option<String>,
    /// This key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The event at its head is of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Its last error contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// In this state: retrying, dead or redriving
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    /// Parked at this time or later, such as 2026-11-29T15:26:17Z
    #[arg(long, value_name = "TIME")]
    parked_from: Option<Timestamp>,
    /// Parked before this time
    #[arg(long, value_name = "TIME")]
    parked_before: Option<Timestamp>,
}

impl FilterArgs {
    pub(super) fn filter(self) -> Filter {
        let Self { projector, key, event_type, error, state, parked_from, parked_before } = self;
        Filter { projector, key, event_type, error, state, parked_from, parked_before }
    }
}
