//! Which part of a list is wanted.

use tidings_event::Timestamp;

use crate::{
    UserId,
    limits::{PAGE_ENTRIES_MAX, PAGE_OFFSET_MAX},
};

/// Which part of a list is wanted: from where, and how much. Always within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    limit: u32,
    start: Start,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After this many lines.
    Offset(u32),
    /// After this line, whether or not it is still in the list.
    After(Mark),
}

/// A place in a list: after the follow of `user` that began at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Since when the follow holds.
    pub at: Timestamp,
    /// Who is in the list.
    pub user: UserId,
}

/// A page cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPage {
    /// Too few or too many lines.
    #[error("a page has 1 to {PAGE_ENTRIES_MAX} entries")]
    Limit,
    /// Too far into the list to be counted off.
    #[error("an offset is at most {PAGE_OFFSET_MAX}; use the cursor to go on")]
    Offset,
}

impl Page {
    /// A page of `limit` lines from `start`.
    pub fn new(limit: u32, start: Start) -> Result<Self, InvalidPage> {
        if limit == 0 || limit > PAGE_ENTRIES_MAX {
            return Err(InvalidPage::Limit);
        }
        if matches!(start, Start::Offset(offset) if offset > PAGE_OFFSET_MAX) {
            return Err(InvalidPage::Offset);
        }
        Ok(Self { limit, start })
    }

    /// The first lines of a list; `limit` is cut to what a page may hold.
    pub fn first(limit: u32) -> Self {
        Self { limit: limit.clamp(1, PAGE_ENTRIES_MAX), start: Start::Offset(0) }
    }

    /// How many lines it has at most.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Where it begins.
    pub fn start(&self) -> Start {
        self.start
    }
}
