//! How one user stands to others, in both directions.
//!
//! Both directions are answered from facts: `following` is unique by (from, to), and a writer
//! sees his own write at once.

use std::collections::HashMap;

use tidings_backbone::{Conn, Error, Result, db::Value};

use crate::{UserId, limits::STATUS_TARGETS_MAX};

/// How `me` and another user stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The other user.
    pub user_id: UserId,
    /// Whether `me` follows him.
    pub following: bool,
    /// Whether he follows `me`.
    pub followed_by: bool,
}

impl Status {
    /// Whether each follows the other.
    pub fn mutual(&self) -> bool {
        self.following && self.followed_by
    }
}

/// The status of `me` to each of `targets`, in their order. Nobody follows an unknown user.
///
/// # Errors
/// When there are more targets than [`STATUS_TARGETS_MAX`], or the database fails.
pub async fn status(conn: &mut Conn<'_>, me: UserId, targets: &[UserId]) -> Result<Vec<Status>> {
    if targets.len() > STATUS_TARGETS_MAX {
        return Err(Error::LimitExceeded { what: "targets of a status", limit: STATUS_TARGETS_MAX });
    }
    let rows: Vec<[Value; 2]> = targets.iter().map(|target| [me.into(), (*target).into()]).collect();
    let mut found = HashMap::with_capacity(targets.len());
    for row in conn.fetch_rows("reading relations", select, rows).await? {
        let status = (row.int(1)? != 0, row.int(2)? != 0);
        found.insert(UserId::read(&row, 0, "following")?, status);
    }
    let status = |user_id: &UserId| {
        let (following, followed_by) = found.get(user_id).copied().unwrap_or_default();
        Status { user_id: *user_id, following, followed_by }
    };
    Ok(targets.iter().map(status).collect())
}

fn select(values: &str) -> String {
    format!(
        "WITH pair (me, other) AS ({values}) \
         SELECT pair.other, COALESCE(mine.rel_status, 0), COALESCE(theirs.rel_status, 0) \
         FROM pair \
         LEFT JOIN following mine ON mine.from_user_id = pair.me AND mine.to_user_id = pair.other \
         LEFT JOIN following theirs ON theirs.from_user_id = pair.other AND theirs.to_user_id = pair.me"
    )
}
