//! The identity of an event.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// A UUID version 7 (RFC 9562), made by the application and never by the database.
///
/// Ids sort by the millisecond they were made in, so an index over them grows at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(Uuid);

impl EventId {
    /// Builds an id from its moment and ten bytes of randomness. The caller owns clock and
    /// randomness, so this room stays free of both.
    pub fn from_parts(at: Timestamp, random: &[u8; 10]) -> Self {
        let millis = u64::try_from(at.0).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid())
    }

    /// Reads an id from its sixteen bytes, as the outbox stores it.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes of the id, most significant first.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Whether a text is the one that [`fmt::Display`] gives: `FromStr` takes others as well.
    pub(crate) fn is_written(&self, text: &str) -> bool {
        let mut buffer = Uuid::encode_buffer();
        self.0.hyphenated().encode_lower(&mut buffer) == text
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for EventId {
    type Err = uuid::Error;

    /// Reads every usual form of a UUID: upper case, without hyphens, in braces, as a URN.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}
