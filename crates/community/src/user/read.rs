//! Queries on the registry.

use std::collections::HashMap;

use tidings_backbone::{
    Conn, Error, Result,
    db::{Engine, Row, Value},
};
use tidings_event::Timestamp;

use super::{Handle, User, UserId};

const COLUMNS: &str = "id, handle, ordinal, created_at";

/// The user with this id.
pub async fn get(conn: &mut Conn<'_>, user: UserId) -> Result<Option<User>> {
    one(conn, format!("SELECT {COLUMNS} FROM account WHERE id = ?"), user.into()).await
}

/// The user with this handle.
pub async fn by_handle(conn: &mut Conn<'_>, handle: &Handle) -> Result<Option<User>> {
    one(conn, format!("SELECT {COLUMNS} FROM account WHERE handle = ?"), handle.as_str().into()).await
}

/// The handles of those of `users` that are registered.
pub async fn handles(conn: &mut Conn<'_>, users: &[UserId]) -> Result<HashMap<UserId, Handle>> {
    let rows: Vec<[Value; 1]> = users.iter().map(|user| [(*user).into()]).collect();
    let sql = |values: &str| format!("SELECT id, handle FROM account WHERE id IN ({values})");
    let found = conn.fetch_rows("reading handles", sql, rows).await?;
    found.iter().map(|row| Ok((UserId::read(row, 0, "account")?, read_handle(row, 1)?))).collect()
}

/// Whether the user is registered.
pub async fn exists(conn: &mut Conn<'_>, user: UserId) -> Result<bool> {
    let sql = "SELECT id FROM account WHERE id = ?";
    Ok(conn.fetch_optional("looking for a user", sql, vec![user.into()]).await?.is_some())
}

/// The users that have one of these ids or one of these handles; each once.
pub(super) async fn named(conn: &mut Conn<'_>, ids: &[UserId], handles: &[&Handle]) -> Result<Vec<User>> {
    let rows: Vec<[Value; 1]> = ids.iter().map(|id| [(*id).into()]).collect();
    let sql = |values: &str| format!("SELECT {COLUMNS} FROM account WHERE id IN ({values})");
    let mut found = conn.fetch_rows("looking for ids", sql, rows).await?;
    let rows: Vec<[Value; 1]> = handles.iter().map(|handle| [handle.as_str().into()]).collect();
    let sql = |values: &str| format!("SELECT {COLUMNS} FROM account WHERE handle IN ({values})");
    found.append(&mut conn.fetch_rows("looking for handles", sql, rows).await?);
    let users = found.iter().map(|row| read_user(row).map(|user| (user.user_id, user)));
    Ok(users.collect::<Result<HashMap<_, _>>>()?.into_values().collect())
}

/// Waits until nobody else registers users, and keeps the turn until the end of the transaction.
pub(super) async fn keep_turn(conn: &mut Conn<'_>) -> Result<()> {
    let for_update = match conn.engine() {
        // One writer at a time works.
        Engine::Sqlite => return Ok(()),
        engine @ (Engine::Mysql | Engine::Mariadb) => engine.for_update(),
    };
    let sql = format!("SELECT id FROM account_turn WHERE id = 0 {for_update}");
    conn.fetch("waiting for the turn to register", sql, Vec::new()).await.map(drop)
}

/// The highest id and the highest ordinal in use, if there are users.
pub(super) async fn highest(conn: &mut Conn<'_>) -> Result<(Option<UserId>, Option<i64>)> {
    let sql = "SELECT (SELECT MAX(id) FROM account), (SELECT MAX(ordinal) FROM account)";
    let Some(row) = conn.fetch_optional("reading the highest id", sql, Vec::new()).await? else {
        return Ok((None, None));
    };
    let id = row.int_or_null(0)?.map(|_| UserId::read(&row, 0, "account")).transpose()?;
    Ok((id, row.int_or_null(1)?))
}

/// Reads a handle from a column of `account`.
pub(crate) fn read_handle(row: &Row, column: usize) -> Result<Handle> {
    row.text(column)?.parse().map_err(|error| malformed(format!("handle: {error}")))
}

async fn one(conn: &mut Conn<'_>, sql: String, key: Value) -> Result<Option<User>> {
    let row = conn.fetch_optional("reading a user", sql, vec![key]).await?;
    row.map(|row| read_user(&row)).transpose()
}

fn read_user(row: &Row) -> Result<User> {
    let ordinal = row.int(2)?;
    Ok(User {
        user_id: UserId::read(row, 0, "account")?,
        handle: read_handle(row, 1)?,
        ordinal: u32::try_from(ordinal).map_err(|_| malformed(format!("{ordinal} is no ordinal")))?,
        created_at: Timestamp(row.int(3)?),
    })
}

fn malformed(reason: String) -> Error {
    Error::MalformedRow { table: "account", reason }
}
