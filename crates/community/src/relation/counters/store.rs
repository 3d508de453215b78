//! Rows of `user_counter`.

use std::collections::HashMap;

use tidings_backbone::{
    Conn, Result,
    db::{Row, Value},
    log::Offset,
};

use super::Counters;
use crate::UserId;

/// A row as it was found.
#[derive(Clone, Copy, Debug)]
pub(in crate::relation) struct Stored {
    /// `None` when the value is not one that was written here.
    pub(in crate::relation) counters: Option<Counters>,
    /// The last event that changed the user's follower list, if known.
    pub(in crate::relation) followers_offset: Option<Offset>,
}

/// Reads the rows of those of `users` that have one.
pub(in crate::relation) async fn read_stored(conn: &mut Conn<'_>, users: &[UserId]) -> Result<HashMap<UserId, Stored>> {
    let rows: Vec<[Value; 1]> = users.iter().map(|user| [(*user).into()]).collect();
    let sql = |values: &str| {
        format!("SELECT user_id, slots, checksum, followers_offset FROM user_counter WHERE user_id IN ({values})")
    };
    let found = conn.fetch_rows("reading counters", sql, rows).await?;
    found.iter().map(|row| Ok((UserId::read(row, 0, "user_counter")?, read_row(row)?))).collect()
}

/// Reads at most `limit` rows of users past `after`, in their order.
pub(in crate::relation) async fn read_stored_after(
    conn: &mut Conn<'_>,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<(UserId, Stored)>> {
    let sql = "SELECT user_id, slots, checksum, followers_offset FROM user_counter WHERE user_id > ? \
               ORDER BY user_id LIMIT ?";
    let args = vec![after.map_or(-1, UserId::get).into(), limit.into()];
    let rows = conn.fetch("reading counters", sql, args).await?;
    rows.iter().map(|row| Ok((UserId::read(row, 0, "user_counter")?, read_row(row)?))).collect()
}

/// Reads columns 1 to 3: slots, checksum, followers_offset.
fn read_row(row: &Row) -> Result<Stored> {
    Ok(Stored {
        counters: Counters::decode(&row.bytes(1)?, row.int(2)?),
        followers_offset: row.int_or_null(3)?.map(Offset),
    })
}

/// Writes whole rows, new or not.
pub(super) async fn write(
    conn: &mut Conn<'_>,
    rows: impl Iterator<Item = (UserId, Counters, Option<Offset>)>,
) -> Result<()> {
    let rows: Vec<[Value; 4]> = rows
        .map(|(user, counters, offset)| {
            let (slots, checksum) = counters.encode();
            [user.into(), slots.to_vec().into(), i64::from(checksum).into(), offset.map(|offset| offset.0).into()]
        })
        .collect();
    let engine = conn.engine();
    let assignments = ["slots", "checksum", "followers_offset"]
        .map(|column| format!("{column} = {}", engine.inserted(column)))
        .join(", ");
    let head = "INSERT INTO user_counter (user_id, slots, checksum, followers_offset) VALUES";
    let tail = engine.on_conflict("user_id", &assignments);
    conn.execute_rows("storing counters", head, rows, &tail).await.map(drop)
}
