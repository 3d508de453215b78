//! Payloads of the user registry: topic family `account`, keyed by the user.

use serde::{Deserialize, Serialize};

use super::{Id, Payload, Rest};

/// `account.registered`: the user exists from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// The new user.
    pub user: Id,
    /// The unique name the user is addressed by.
    pub handle: String,
    /// Position in the dense numbering of users, from 0, without gaps.
    pub ordinal: u32,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub rest: Rest,
}

impl Payload for Registered {
    const EVENT_TYPE: &'static str = "account.registered";
    const SCHEMA_VERSION: u32 = 1;
}
