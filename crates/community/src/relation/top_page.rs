//! The first page of follower lists of accounts with many followers, kept in this process.
//!
//! A page is kept whole or not at all, and served only while it is what the database would
//! answer: beside an account's counters stands a number that rises with each change of its lists
//! or counters. A page carries the number it was read at, in one snapshot, and counts only while
//! the two are the same, whichever process runs the projector. So nobody has to be told of a
//! change: the next reader sees it, and takes the page anew.

use std::sync::Arc;

use moka::future::Cache;
use tidings_backbone::{Conn, Result};

use super::{
    counters::Stored,
    read::{self, Entry, List, Page, Start},
};
use crate::{
    UserId,
    limits::{HOT_LIST_ENTRIES_MAX, PAGE_ENTRIES_MAX, TOP_PAGE_ACCOUNTS_MAX, TOP_PAGE_FOLLOWERS_MIN},
    telemetry,
};

/// The first pages in memory. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct TopPages {
    pages: Cache<UserId, Arc<TopPage>>,
    followers_min: u32,
}

/// The first [`PAGE_ENTRIES_MAX`] lines of a list, or all of a shorter one.
#[derive(Debug)]
pub(super) struct TopPage {
    /// The number of its changes when it was read.
    read_at: i64,
    list: List,
}

impl Default for TopPages {
    fn default() -> Self {
        Self::new(TOP_PAGE_FOLLOWERS_MIN)
    }
}

impl TopPages {
    /// Keeps pages of accounts with `followers_min` followers or more.
    pub fn new(followers_min: u32) -> Self {
        Self { pages: Cache::new(TOP_PAGE_ACCOUNTS_MAX), followers_min }
    }

    /// Whether `page` lies on a first page.
    pub(super) fn reach(page: &Page) -> bool {
        within_top(page).is_some()
    }

    /// Whether the first page of a list with so many lines, or more, is kept here.
    pub(super) fn may_keep(&self, lines: u64) -> bool {
        // A list that Redis does not hold whole may be of any length.
        lines >= u64::from(self.followers_min) || lines >= HOT_LIST_ENTRIES_MAX as u64
    }

    /// What is kept of `user`'s list, if `page` lies on it. It holds only if the database names the
    /// same number of changes.
    pub(super) async fn get(&self, user: UserId, page: &Page) -> Option<Arc<TopPage>> {
        within_top(page)?;
        self.pages.get(&user).await
    }

    /// The page, read and kept; `None` where no page is kept. `stored` are the user's counters. All is
    /// read through `conn`, which must be one snapshot, the one of `stored`.
    pub(super) async fn read(
        &self,
        conn: &mut Conn<'_>,
        user: UserId,
        page: &Page,
        stored: Option<Stored>,
    ) -> Result<Option<List>> {
        let (Some(Stored { counters: Some(counters), changes: Some(read_at) }), Some(_)) = (stored, within_top(page))
        else {
            return Ok(None);
        };
        if counters.followers < self.followers_min {
            return Ok(None);
        }
        telemetry::top_page(false);
        let Some(list) = read::followers(conn, user, &Page::first(PAGE_ENTRIES_MAX)).await? else { return Ok(None) };
        let fresh = Arc::new(TopPage { read_at, list });
        self.pages.insert(user, Arc::clone(&fresh)).await;
        Ok(Some(fresh.lines(page)))
    }
}

/// The lines of the first page that `page` asks for, if they are all on it.
fn within_top(page: &Page) -> Option<std::ops::Range<usize>> {
    match page.start() {
        Start::Offset(offset) if offset + page.limit() <= PAGE_ENTRIES_MAX => {
            Some(offset as usize..(offset + page.limit()) as usize)
        }
        _ => None,
    }
}

impl TopPage {
    /// The number of changes at which it holds.
    pub(super) fn read_at(&self) -> i64 {
        self.read_at
    }

    /// The lines that `page` asks for, from memory.
    pub(super) fn cut(&self, page: &Page) -> List {
        telemetry::top_page(true);
        self.lines(page)
    }

    fn lines(&self, page: &Page) -> List {
        let all = &self.list.entries;
        let wanted = within_top(page).unwrap_or_default();
        let end = wanted.end.min(all.len());
        let entries = all[wanted.start.min(end)..end].to_vec();
        let next = if end < all.len() { entries.last().map(Entry::mark) } else { self.list.next };
        List { entries, next }
    }
}
