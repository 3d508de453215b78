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
    counters,
    read::{self, Entry, List, Page, Start},
};
use crate::{
    UserId,
    limits::{PAGE_ENTRIES_MAX, TOP_PAGE_ACCOUNTS_MAX, TOP_PAGE_FOLLOWERS_MIN},
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
struct TopPage {
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

    /// Who follows `user`: as [`read::followers`], from memory where that is the same. All is read
    /// through `conn`, which must be one snapshot.
    pub async fn followers(&self, conn: &mut Conn<'_>, user: UserId, page: &Page) -> Result<Option<List>> {
        let Some(wanted) = within_top(page) else {
            return read::followers(conn, user, page).await;
        };
        let Some(now) = self.changed_at(conn, user).await? else {
            return read::followers(conn, user, page).await;
        };
        let kept = self.pages.get(&user).await.filter(|kept| kept.read_at == now);
        telemetry::top_page(kept.is_some());
        if let Some(kept) = kept {
            return Ok(Some(kept.cut(wanted)));
        }
        let Some(list) = read::followers(conn, user, &Page::first(PAGE_ENTRIES_MAX)).await? else {
            return Ok(None);
        };
        let fresh = Arc::new(TopPage { read_at: now, list });
        self.pages.insert(user, Arc::clone(&fresh)).await;
        Ok(Some(fresh.cut(wanted)))
    }

    /// The number of changes so far; `None` for an account whose page is not kept.
    async fn changed_at(&self, conn: &mut Conn<'_>, user: UserId) -> Result<Option<i64>> {
        let stored = counters::read_stored(conn, &[user]).await?.remove(&user);
        Ok(stored.and_then(|stored| {
            let followers = stored.counters?.followers;
            stored.changes.filter(|_| followers >= self.followers_min)
        }))
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
    fn cut(&self, wanted: std::ops::Range<usize>) -> List {
        let all = &self.list.entries;
        let end = wanted.end.min(all.len());
        let entries = all[wanted.start.min(end)..end].to_vec();
        let next = if end < all.len() { entries.last().map(Entry::mark) } else { self.list.next };
        List { entries, next }
    }
}
