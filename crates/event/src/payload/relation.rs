//! Payloads of the follow graph: topic family `relation`, keyed by the follower.

use serde::{Deserialize, Serialize};

use super::{Id, Payload, Rest};
use crate::Timestamp;

/// `relation.followed`: `from` now follows `to`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// The follower.
    pub from: Id,
    /// The user who is followed.
    pub to: Id,
    /// When the follow became active, in milliseconds since the Unix epoch.
    pub followed_at: Timestamp,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub rest: Rest,
}

/// `relation.unfollowed`: `from` no longer follows `to`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unfollowed {
    /// The former follower.
    pub from: Id,
    /// The user who was followed.
    pub to: Id,
    /// Before-image: since when the follow had been active.
    pub followed_at: Timestamp,
    /// When the follow ended, in milliseconds since the Unix epoch.
    pub unfollowed_at: Timestamp,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub rest: Rest,
}

impl Payload for Followed {
    const EVENT_TYPE: &'static str = "relation.followed";
    const SCHEMA_VERSION: u32 = 1;
}

impl Payload for Unfollowed {
    const EVENT_TYPE: &'static str = "relation.unfollowed";
    const SCHEMA_VERSION: u32 = 1;
}
