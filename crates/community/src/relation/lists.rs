//! Lists of users, from wherever the answer is the one the database would give: the first page of big
//! accounts from memory, other pages from Redis where there is one, everything else from the database.

use std::collections::HashMap;

use tidings_backbone::{
    Conn, Db, Result,
    db::{Row, Value},
};
use tidings_event::Timestamp;

use super::{
    counters,
    generation::{LIVE, Of, of_live},
    hot::{Found, Hot, Line, ListName},
    read::{self, Entry, List, Page},
    top_page::TopPages,
};
use crate::{UserId, telemetry, user::read::read_handle};

/// Reads lists. Cheap to clone; clones share what they keep.
#[derive(Clone, Debug)]
pub struct Lists {
    db: Db,
    top_pages: TopPages,
    hot: Option<Hot>,
}

impl Lists {
    /// Lists of `db`, with first pages kept in `top_pages`.
    pub fn new(db: Db, top_pages: TopPages) -> Self {
        Self { db, top_pages, hot: None }
    }

    /// The same, with lists kept in Redis as well.
    #[must_use]
    pub fn with_cache(self, hot: Hot) -> Self {
        Self { hot: Some(hot), ..self }
    }

    /// Who follows `user`: as [`read::followers`].
    pub async fn followers(&self, user: UserId, page: &Page) -> Result<Option<List>> {
        if self.hot.is_none() && !TopPages::reach(page) {
            return read::followers(&mut self.db.read().await?.conn(), user, page).await;
        }
        let kept = self.top_pages.get(user, page).await;
        // Whoever has a page in memory need not ask Redis. What is there was kept by a process, in a snapshot
        // before the one that is read below; so the number there tells whether it still holds.
        let found = match (&kept, &self.hot) {
            (None, Some(hot)) => hot.read_list(ListName::Followers, user, page, None).await,
            _ => Found::Nothing,
        };
        let is_for_top = |lines: u64| TopPages::reach(page) && self.top_pages.may_keep(lines);
        {
            let mut tx = self.db.read().await?;
            let mut conn = tx.conn();
            match &found {
                Found::Lines { kept, .. } if !is_for_top(*kept) => {
                    if let Some(list) = hit(&mut conn, user, page, &found).await? {
                        return Ok(Some(list));
                    }
                }
                _ => {
                    let stored = counters::read_stored(&mut conn, Of::Live, &[user]).await?.remove(&user);
                    let changes = stored.and_then(|stored| stored.changes);
                    if let Some(kept) = kept.filter(|kept| Some(kept.read_at()) == changes) {
                        return Ok(Some(kept.cut(page)));
                    }
                    if let Some(list) = self.top_pages.read(&mut conn, user, page, stored).await? {
                        return Ok(Some(list));
                    }
                }
            }
            if matches!(found, Found::Nothing) {
                return read::followers(&mut conn, user, page).await;
            }
        }
        self.missed(ListName::Followers, user, page, found).await
    }

    /// Whom `user` follows: as [`read::followings`]. His own last write is in it.
    pub async fn followings(&self, user: UserId, page: &Page) -> Result<Option<List>> {
        let found = match &self.hot {
            Some(hot) => hot.read_list(ListName::Followings, user, page, None).await,
            None => Found::Nothing,
        };
        {
            let mut tx = self.db.read().await?;
            let mut conn = tx.conn();
            if matches!(found, Found::Nothing) {
                return read::followings(&mut conn, user, page).await;
            }
            if let Some(list) = hit(&mut conn, user, page, &found).await? {
                return Ok(Some(list));
            }
        }
        self.missed(ListName::Followings, user, page, found).await
    }

    /// Answers from the database, and loads the list where that is called for.
    async fn missed(&self, name: ListName, user: UserId, page: &Page, found: Found) -> Result<Option<List>> {
        let load = match (found, &self.hot) {
            (Found::Load(load), _) => Some(load),
            // It was of another number than the database's: it goes, and whoever takes it away loads it anew.
            (Found::Lines { changes: old, .. }, Some(hot)) => match hot.read_list(name, user, page, Some(old)).await {
                Found::Load(load) => Some(load),
                _ => None,
            },
            _ => None,
        };
        // A snapshot of its own: what is loaded must have been read after the leave to load it was given.
        let mut tx = self.db.read().await?;
        let mut conn = tx.conn();
        let list = match name {
            ListName::Followers => read::followers(&mut conn, user, page).await?,
            ListName::Followings => read::followings(&mut conn, user, page).await?,
        };
        let (Some(load), Some(hot)) = (load, &self.hot) else { return Ok(list) };
        let changes =
            counters::read_stored(&mut conn, Of::Live, &[user]).await?.remove(&user).and_then(|stored| stored.changes);
        let Some(changes) = changes else { return Ok(list) };
        let lines = lines(&mut conn, name, user, hot.lines_to_load()).await?;
        // The database is not kept waiting for Redis.
        drop(tx);
        hot.store_list(&load, name, user, changes, &lines).await;
        Ok(list)
    }
}

/// The page from Redis, if its number is the database's. One query tells that and the names.
async fn hit(conn: &mut Conn<'_>, owner: UserId, page: &Page, found: &Found) -> Result<Option<List>> {
    let Found::Lines { changes, lines, .. } = found else { return Ok(None) };
    let limit = page.limit() as usize;
    let shown = &lines[..lines.len().min(limit)];
    let mut names = HashMap::with_capacity(shown.len());
    // Where there is nobody to name, the owner's own row tells the number, and that he is known.
    let named = if shown.is_empty() { vec![owner] } else { shown.iter().map(|(user, _)| *user).collect() };
    let mut is_new = true;
    for row in names_and_number(conn, owner, &named).await? {
        is_new &= row.int_or_null(2)? == Some(*changes);
        names.insert(UserId::read(&row, 0, "account")?, read_handle(&row, 1)?);
    }
    let is_whole = names.len() == named.len();
    telemetry::hot_list_checked(is_new && is_whole);
    if !(is_new && is_whole) {
        return Ok(None);
    }
    let entry = |&(user_id, followed_at): &Line| Some(Entry { user_id, handle: names.remove(&user_id)?, followed_at });
    let Some(entries) = shown.iter().map(entry).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let next = entries.last().filter(|_| lines.len() > limit).map(Entry::mark);
    Ok(Some(List { entries, next }))
}

/// Rows of those of `users` that are registered: id, handle, and the number of `owner`'s changes.
async fn names_and_number(conn: &mut Conn<'_>, owner: UserId, users: &[UserId]) -> Result<Vec<Row>> {
    let changes = conn.engine().as_int("changes");
    let marks = vec!["?"; users.len()].join(", ");
    let sql = format!(
        "SELECT id, handle, (SELECT {changes} FROM user_counter WHERE generation = {LIVE} AND user_id = ?) FROM account WHERE id IN ({marks})"
    );
    let args = std::iter::once(owner).chain(users.iter().copied()).map(Value::from).collect();
    conn.fetch("checking a list", sql, args).await
}

/// The first lines of a list, without names.
pub(super) async fn lines(conn: &mut Conn<'_>, name: ListName, owner: UserId, limit: usize) -> Result<Vec<Line>> {
    let (table, owner_column, other_column) = match name {
        ListName::Followers => ("follower", "to_user_id", "from_user_id"),
        ListName::Followings => ("following", "from_user_id", "to_user_id"),
    };
    let of_live = of_live(table);
    // A row that somebody wrote by hand may have an id that nobody can have; it is no reason to have no list.
    let sql = format!(
        "SELECT {other_column}, updated_at FROM {table} r WHERE {of_live} {owner_column} = ? AND rel_status = 1 \
         AND {other_column} >= 0 ORDER BY updated_at DESC, {other_column} DESC LIMIT ?"
    );
    let args: Vec<Value> = vec![owner.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
    let rows = conn.fetch("reading a whole list", sql, args).await?;
    rows.iter().map(|row| Ok((UserId::read(row, 0, table)?, Timestamp(row.int(1)?)))).collect()
}
