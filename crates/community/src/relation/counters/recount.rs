//! Counters from their facts.

use std::collections::HashMap;

use tidings_backbone::{
    Conn, Error, Result,
    db::{Engine, Row, Value},
};

use super::Counters;
use crate::{UserId, relation::generation::Of};

/// Counts for each of `users`, as of the snapshot or transaction of `conn`. Posts, likes and
/// favorites have no facts yet; their features will count them here. Damage to the mirror that is no user's (a
/// negative id) counts for nobody: it stays until a rebuild, and counters are right meanwhile.
pub(in crate::relation) async fn recount(
    conn: &mut Conn<'_>,
    of: Of,
    users: &[UserId],
) -> Result<HashMap<UserId, Counters>> {
    let mut counted: HashMap<UserId, Counters> = users.iter().map(|user| (*user, Counters::default())).collect();
    let (select_followers, select_followings): (Select, Select) = match conn.engine() {
        Engine::Sqlite => (select_followers, select_followings),
        Engine::Mysql | Engine::Mariadb => (select_followers_from_users, select_followings_from_users),
    };
    for row in
        conn.fetch_rows_and("counting followers", |input| select_followers(input, of), keys(users), &of.args()).await?
    {
        let (user, number) = read(&row)?;
        counted.entry(user).or_default().followers = number;
    }
    for row in conn
        .fetch_rows_and("counting followings", |input| select_followings(input, of), keys(users), &of.args())
        .await?
    {
        let (user, number) = read(&row)?;
        counted.entry(user).or_default().followings = number;
    }
    Ok(counted)
}

type Select = fn(&str, Of) -> String;

fn select_followers(values: &str, of: Of) -> String {
    format!(
        "SELECT to_user_id, COUNT(*) FROM follower WHERE to_user_id IN ({values}) AND rel_status = 1 \
         AND generation = {} AND from_user_id >= 0 GROUP BY to_user_id",
        of.sql()
    )
}

/// The mirror is sorted by who is followed; the facts know whom somebody ever followed, so they
/// lead to his rows in it. Whether a follow counts is still the mirror's word. By itself, SQLite begins with all of a
/// generation.
fn select_followings(values: &str, of: Of) -> String {
    format!(
        "SELECT r.from_user_id, COUNT(*) FROM following r \
         {} follower m ON m.to_user_id = r.to_user_id AND m.from_user_id = r.from_user_id \
         WHERE r.from_user_id IN ({values}) AND m.rel_status = 1 AND m.generation = {} \
         GROUP BY r.from_user_id",
        Engine::Sqlite.join_in_order(),
        of.sql()
    )
}

/// The same, from the users to their rows and never the other way: a server that knows little of the tables, and
/// nothing of the input, reads all of the mirror for a few users, and others wait meanwhile for their counters.
fn select_followers_from_users(input: &str, of: Of) -> String {
    format!(
        "WITH wanted (id) AS (SELECT DISTINCT input.* FROM ({input}) AS input) \
         SELECT STRAIGHT_JOIN m.to_user_id, COUNT(*) FROM wanted \
         JOIN follower m FORCE INDEX (follower_list) ON m.to_user_id = wanted.id AND m.rel_status = 1 \
         AND m.generation = {} AND m.from_user_id >= 0 GROUP BY m.to_user_id",
        of.sql()
    )
}

fn select_followings_from_users(input: &str, of: Of) -> String {
    format!(
        "WITH wanted (id) AS (SELECT DISTINCT input.* FROM ({input}) AS input) \
         SELECT STRAIGHT_JOIN r.from_user_id, COUNT(*) FROM wanted \
         JOIN following r FORCE INDEX (following_pair) ON r.from_user_id = wanted.id \
         JOIN follower m FORCE INDEX (PRIMARY) ON m.to_user_id = r.to_user_id AND m.from_user_id = r.from_user_id \
         AND m.generation = {} WHERE m.rel_status = 1 \
         GROUP BY r.from_user_id",
        of.sql()
    )
}

fn keys(users: &[UserId]) -> Vec<[Value; 1]> {
    users.iter().map(|user| [(*user).into()]).collect()
}

fn read(row: &Row) -> Result<(UserId, u32)> {
    let number = u32::try_from(row.int(1)?)
        .map_err(|_| Error::LimitExceeded { what: "relations of one user", limit: u32::MAX as usize })?;
    Ok((UserId::read(row, 0, "follower")?, number))
}
