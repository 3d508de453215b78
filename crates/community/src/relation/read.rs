//! Lists: newest first, by offset or by a mark that is stable while people follow and unfollow.
//!
//! A list is ordered by (followed_at, user) descending. A row's place changes only when its own
//! pair changes, so paging on from a mark neither skips nor repeats a follow that stays.

mod page;

use tidings_backbone::{
    Conn, Result,
    db::{Row, Value},
};
use tidings_event::Timestamp;

pub use page::{InvalidPage, Mark, Page, Start};

use super::generation::of_live;
use crate::{
    UserId,
    user::{
        Handle,
        read::{exists, read_handle},
    },
};

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who is in the list.
    pub user_id: UserId,
    /// His name.
    pub handle: Handle,
    /// Since when the follow holds.
    pub followed_at: Timestamp,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<M = Mark> {
    /// The lines, in order.
    pub entries: Vec<Entry>,
    /// Where the next part begins; `None` at the end of the list.
    pub next: Option<M>,
}

/// Whom `user` follows, from facts: his own last write is in it. `None` for an unknown user.
pub async fn followings(conn: &mut Conn<'_>, user: UserId, page: &Page) -> Result<Option<List>> {
    list(conn, "following", "from_user_id", "to_user_id", user, page).await
}

/// Who follows `user`, from the mirror. `None` for an unknown user.
pub async fn followers(conn: &mut Conn<'_>, user: UserId, page: &Page) -> Result<Option<List>> {
    list(conn, "follower", "to_user_id", "from_user_id", user, page).await
}

/// Whom both `user` and `other` follow, ordered by user; `followed_at` is since when `user` does.
/// `after` is the last user of the part before, `limit` is cut to a page's. `None` when either is
/// unknown.
pub async fn common(
    conn: &mut Conn<'_>,
    user: UserId,
    other: UserId,
    limit: u32,
    after: Option<UserId>,
) -> Result<Option<List<UserId>>> {
    if !(exists(conn, user).await? && exists(conn, other).await?) {
        return Ok(None);
    }
    let limit = Page::first(limit).limit();
    let sql = "SELECT r.to_user_id, a.handle, r.updated_at FROM following r \
               JOIN following s ON s.from_user_id = ? AND s.to_user_id = r.to_user_id AND s.rel_status = 1 \
               JOIN account a ON a.id = r.to_user_id \
               WHERE r.from_user_id = ? AND r.rel_status = 1 AND r.to_user_id > ? \
               ORDER BY r.to_user_id LIMIT ?";
    let after = after.map_or(-1, UserId::get);
    let args = vec![other.into(), user.into(), after.into(), one_more(limit)];
    let rows = conn.fetch("reading common follows", sql, args).await?;
    part(&rows, limit, |entry| entry.user_id).map(Some)
}

/// Reads a part of the list that `owner` has in `table`, sorted by its list index.
async fn list(
    conn: &mut Conn<'_>,
    table: &'static str,
    owner_column: &'static str,
    other_column: &'static str,
    owner: UserId,
    page: &Page,
) -> Result<Option<List>> {
    let mut args: Vec<Value> = vec![owner.into()];
    let (beyond, skipped) = match page.start() {
        Start::Offset(offset) => (String::new(), offset),
        Start::After(mark) => {
            args.extend([mark.at.0.into(), mark.at.0.into(), mark.user.into()]);
            // The first comparison bounds the index scan, the second settles moments that are equal.
            (format!("AND r.updated_at <= ? AND (r.updated_at < ? OR r.{other_column} < ?)"), 0)
        }
    };
    args.extend([one_more(page.limit()), i64::from(skipped).into()]);
    let of_live = of_live(table);
    let sql = format!(
        "SELECT r.{other_column}, a.handle, r.updated_at FROM {table} r JOIN account a ON a.id = r.{other_column} \
         WHERE {of_live} r.{owner_column} = ? AND r.rel_status = 1 {beyond} \
         ORDER BY r.updated_at DESC, r.{other_column} DESC LIMIT ? OFFSET ?"
    );
    let rows = conn.fetch("reading a list", sql, args).await?;
    // Whoever is in the table is registered, so only an empty answer leaves the question open.
    if rows.is_empty() && !exists(conn, owner).await? {
        return Ok(None);
    }
    part(&rows, page.limit(), Entry::mark).map(Some)
}

/// A row past the page tells whether there is a next one.
fn one_more(limit: u32) -> Value {
    (i64::from(limit) + 1).into()
}

fn part<M>(rows: &[Row], limit: u32, mark: impl Fn(&Entry) -> M) -> Result<List<M>> {
    let limit = limit as usize;
    let entries = rows.iter().take(limit).map(entry).collect::<Result<Vec<_>>>()?;
    let next = entries.last().filter(|_| rows.len() > limit).map(mark);
    Ok(List { entries, next })
}

fn entry(row: &Row) -> Result<Entry> {
    Ok(Entry {
        user_id: UserId::read(row, 0, "following")?,
        handle: read_handle(row, 1)?,
        followed_at: Timestamp(row.int(2)?),
    })
}

impl Entry {
    /// Where a list goes on after this line.
    pub fn mark(&self) -> Mark {
        Mark { at: self.followed_at, user: self.user_id }
    }
}
