//! The follow graph.
//!
//! Facts are rows of `following`, changed only by [`facts`]. Everything else follows from their
//! events: the mirror `follower` and the counters, kept by [`projection`]. Whether they are what they must be,
//! [`verify`] tells, and [`reconcile`] repairs what is not, by events again.
//!
//! | a reader wants | it is answered from |
//! |---|---|
//! | whom somebody follows, status, common follows | facts, so that a writer sees his own write at once |
//! | who follows somebody, counters | the mirror, which trails the facts by the projector's lag |

pub mod bucket;
pub mod counters;
pub mod facts;
mod generation;
pub mod hot;
pub mod lists;
mod mirror;
pub mod projection;
pub mod read;
mod rebuild;
pub mod reconcile;
pub mod status;
pub mod top_page;
pub mod verify;

use std::{fmt, str::FromStr};

use tidings_event::payload::InvalidId;

use crate::UserId;

/// The event types of the follow graph: all of family `relation`.
pub const EVENT_TYPES: &[&str] =
    &["relation.followed", "relation.unfollowed", "relation.restated", "relation.recount_requested"];

/// A follower and the one who is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The follower.
    pub from: UserId,
    /// The one who is followed.
    pub to: UserId,
}

impl fmt::Display for Pair {
    /// `17:42`, the aggregate id of the pair's events.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.from, self.to)
    }
}

impl FromStr for Pair {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (from, to) = text.split_once(':').ok_or(InvalidId)?;
        Ok(Self { from: from.parse()?, to: to.parse()? })
    }
}
