//! Rows of `user_counter`.

use std::{borrow::Cow, collections::HashMap};

use serde::Deserialize;
use tidings_backbone::{
    Conn, Error, Result,
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
    let engine = conn.engine();
    let [user, checksum, offset] = ["user_id", "checksum", "followers_offset"].map(|column| engine.as_int(column));
    let packed = engine.json_rows(&format!("{user}, HEX(slots), {checksum}, {offset}"));
    let sql = |values: &str| format!("SELECT {packed} FROM user_counter WHERE user_id IN ({values})");
    let mut found = HashMap::with_capacity(users.len());
    for row in conn.fetch_rows("reading counters", sql, rows).await? {
        let json = row.text(0)?;
        let packed: Vec<Packed<'_>> =
            serde_json::from_str(&json).map_err(|source| Error::Json { doing: "reading counters", source })?;
        for Packed(user, slots, checksum, offset) in packed {
            let counters = decode_hex(&slots).and_then(|slots| Counters::decode(&slots, checksum?));
            let user = UserId::try_from(user)
                .map_err(|error| Error::MalformedRow { table: "user_counter", reason: error.to_string() })?;
            found.insert(user, Stored { counters, followers_offset: offset.map(Offset) });
        }
    }
    Ok(found)
}

/// A row as JSON: user, slots in hexadecimal digits, checksum, offset.
#[derive(Deserialize)]
struct Packed<'j>(i64, #[serde(borrow)] Cow<'j, str>, Option<i64>, Option<i64>);

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
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
