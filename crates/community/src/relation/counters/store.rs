//! Rows of `user_counter`.

use std::{borrow::Cow, collections::HashMap};

use serde::Deserialize;
use tidings_backbone::{
    Conn, Error, Result,
    db::{Engine, Row, Value},
    limits::STATEMENT_ROWS_MAX,
    projector::{Generation, generation::keep_live},
};

use super::Counters;
use crate::{
    UserId,
    relation::{generation::Of, projection},
};

/// A row as it was found.
#[derive(Clone, Copy, Debug)]
pub(in crate::relation) struct Stored {
    /// `None` when the value is not one that was written here.
    pub(in crate::relation) counters: Option<Counters>,
    /// A number that rises with each change of the user's lists or counters, if known.
    pub(in crate::relation) changes: Option<i64>,
}

/// The columns that [`read_row`] expects, where each counter has its own.
const COLUMNS: &str = "user_id, followings, followers, posts, likes_received, favorites_received, changes";

/// Reads the rows of those of `users` that have one.
pub(in crate::relation) async fn read_stored(
    conn: &mut Conn<'_>,
    of: Of,
    users: &[UserId],
) -> Result<HashMap<UserId, Stored>> {
    let rows: Vec<[Value; 1]> = users.iter().map(|user| [(*user).into()]).collect();
    match conn.engine() {
        Engine::Sqlite => read_packed(conn, of, rows).await,
        Engine::Mysql | Engine::Mariadb => {
            let sql = |input: &str| {
                let live = of.sql();
                format!("SELECT {COLUMNS} FROM user_counter WHERE user_id IN ({input}) AND generation = {live}")
            };
            conn.fetch_rows_and("reading counters", sql, rows, &of.args()).await?.iter().map(read_row).collect()
        }
    }
}

async fn read_packed(conn: &mut Conn<'_>, of: Of, users: Vec<[Value; 1]>) -> Result<HashMap<UserId, Stored>> {
    let engine = conn.engine();
    let [user, checksum, changes] = ["user_id", "checksum", "changes"].map(|column| engine.as_int(column));
    let packed = engine.json_rows(&format!("{user}, HEX(slots), {checksum}, {changes}"));
    let sql = |values: &str| {
        let live = of.sql();
        format!("SELECT {packed} FROM user_counter WHERE user_id IN ({values}) AND generation = {live}")
    };
    let mut found = HashMap::with_capacity(users.len());
    for row in conn.fetch_rows_and("reading counters", sql, users, &of.args()).await? {
        let json = row.text(0)?;
        let packed: Vec<Packed<'_>> =
            serde_json::from_str(&json).map_err(|source| Error::Json { doing: "reading counters", source })?;
        for Packed(user, slots, checksum, changes) in packed {
            let counters = decode_hex(&slots).and_then(|slots| Counters::decode(&slots, checksum?));
            let user = UserId::try_from(user)
                .map_err(|error| Error::MalformedRow { table: "user_counter", reason: error.to_string() })?;
            found.insert(user, Stored { counters, changes });
        }
    }
    Ok(found)
}

/// A row as JSON: user, slots in hexadecimal digits, checksum, changes.
#[derive(Deserialize)]
struct Packed<'j>(i64, #[serde(borrow)] Cow<'j, str>, Option<i64>, Option<i64>);

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Reads at most `limit` rows of users past `after`, in their order.
pub(in crate::relation) async fn read_stored_after(
    conn: &mut Conn<'_>,
    generation: Generation,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<(UserId, Stored)>> {
    let engine = conn.engine();
    let args = vec![generation.0.into(), after.map_or(-1, UserId::get).into(), limit.into()];
    let rows = conn.fetch("reading counters", select_stored_after(engine), args).await?;
    rows.iter()
        .map(|row| match engine {
            Engine::Sqlite => {
                let counters = Counters::decode(&row.bytes(1)?, row.int(2)?);
                Ok((UserId::read(row, 0, "user_counter")?, Stored { counters, changes: row.int_or_null(3)? }))
            }
            Engine::Mysql | Engine::Mariadb => read_row(row),
        })
        .collect()
}

pub(in crate::relation) fn select_stored_after(engine: Engine) -> String {
    let columns = match engine {
        Engine::Sqlite => "user_id, slots, checksum, changes",
        Engine::Mysql | Engine::Mariadb => COLUMNS,
    };
    format!("SELECT {columns} FROM user_counter WHERE generation = ? AND user_id > ? ORDER BY user_id LIMIT ?")
}

/// Reads a row whose counters have columns of their own; numbers out of range are malformed.
fn read_row(row: &Row) -> Result<(UserId, Stored)> {
    let mut slots = [0; 5];
    let mut is_whole = true;
    for (column, slot) in (1..).zip(&mut slots) {
        match u32::try_from(row.int(column)?) {
            Ok(number) => *slot = number,
            Err(_) => is_whole = false,
        }
    }
    let counters = is_whole.then(|| Counters::from(slots));
    Ok((UserId::read(row, 0, "user_counter")?, Stored { counters, changes: row.int_or_null(6)? }))
}

/// Writes whole rows of packed values, new or not.
pub(super) async fn write(
    conn: &mut Conn<'_>,
    generation: Generation,
    rows: impl Iterator<Item = (UserId, Counters, Option<i64>)>,
) -> Result<()> {
    let rows: Vec<[Value; 5]> = rows
        .map(|(user, counters, changes)| {
            let (slots, checksum) = counters.encode();
            [generation.0.into(), user.into(), slots.to_vec().into(), i64::from(checksum).into(), changes.into()]
        })
        .collect();
    let engine = conn.engine();
    let assignments =
        ["slots", "checksum", "changes"].map(|column| format!("{column} = {}", engine.inserted(column))).join(", ");
    let head = "INSERT INTO user_counter (generation, user_id, slots, checksum, changes) VALUES";
    let tail = engine.on_conflict("generation, user_id", &assignments);
    conn.execute_rows("storing counters", head, rows, &tail).await.map(drop)
}

/// Raises the numbers of changes of `users`, in their order, where they have one: whatever is kept at
/// the number they had is not served from the commit on. No other generation becomes live before it, or its
/// numbers would have to be raised too.
pub(in crate::relation) async fn raise_changes(conn: &mut Conn<'_>, users: &[UserId]) -> Result<()> {
    if users.is_empty() {
        return Ok(());
    }
    let live = keep_live(conn, projection::NAME).await?;
    for users in users.chunks(STATEMENT_ROWS_MAX) {
        let marks = vec!["?"; users.len()].join(", ");
        let sql =
            format!("UPDATE user_counter SET changes = changes + 1 WHERE generation = ? AND user_id IN ({marks})");
        let args = std::iter::once(live.0.into()).chain(users.iter().map(|user| (*user).into())).collect();
        conn.execute("raising numbers of changes", sql, args).await?;
    }
    Ok(())
}
