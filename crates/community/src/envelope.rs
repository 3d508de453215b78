//! Events of this crate: a payload, and around it what every event has.

use tidings_backbone::{Error, EventIds, Result};
use tidings_event::{Event, Metadata, Timestamp, payload::Payload};

use crate::{Pair, UserId};

/// What an event is about, and its place in the order of its key.
#[derive(Clone, Debug)]
pub(crate) struct About {
    aggregate_type: &'static str,
    aggregate_id: String,
    key: UserId,
    version: u64,
}

impl About {
    /// A change of whether one user follows another: in the order of the follower's.
    pub(crate) fn relation(pair: Pair, version: u64) -> Self {
        Self { aggregate_type: "relation", aggregate_id: pair.to_string(), key: pair.from, version }
    }

    /// Something of a user.
    pub(crate) fn user(aggregate_type: &'static str, user: UserId, version: u64) -> Self {
        Self { aggregate_type, aggregate_id: user.to_string(), key: user, version }
    }
}

/// An event of the moment `at`.
pub(crate) fn event<P: Payload>(
    payload: &P,
    about: About,
    metadata: Metadata,
    at: Timestamp,
    ids: &EventIds,
) -> Result<Event> {
    Ok(Event {
        id: ids.next(at),
        event_type: P::EVENT_TYPE.to_owned(),
        schema_version: P::SCHEMA_VERSION,
        aggregate_type: about.aggregate_type.to_owned(),
        aggregate_id: about.aggregate_id,
        key: about.key.to_string(),
        version: about.version,
        occurred_at: at,
        payload: payload.write().map_err(|source| Error::Json { doing: "writing a payload", source })?,
        metadata,
    })
}
