//! Payloads of the follow graph: topic family `relation`, keyed by the follower, or by the user whom it concerns.

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

/// `relation.restated`: where the pair stands, said once more, because a projection was found to differ from it. The
/// pair did not change; its version rose above every one that was found, so that whoever goes by versions takes
/// this for the newest state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restated {
    /// The follower, or who once was or was taken for one.
    pub from: Id,
    /// The user who is, or is not, followed.
    pub to: Id,
    /// Whether `from` follows `to`.
    pub following: bool,
    /// When the pair first became active, in milliseconds since the Unix epoch.
    pub created_at: Timestamp,
    /// When it last changed: since when it has been so.
    pub updated_at: Timestamp,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub rest: Rest,
}

/// `relation.recount_requested`: the counters of `user` were found to differ from the relations they count, and are
/// to be counted anew. It is no state but a request: whoever applies it twice counts twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecountRequested {
    /// Whose counters.
    pub user: Id,
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

impl Payload for Restated {
    const EVENT_TYPE: &'static str = "relation.restated";
    const SCHEMA_VERSION: u32 = 1;
}

impl Payload for RecountRequested {
    const EVENT_TYPE: &'static str = "relation.recount_requested";
    const SCHEMA_VERSION: u32 = 1;
}
