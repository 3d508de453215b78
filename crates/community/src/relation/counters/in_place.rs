//! Counters where several partitions of the log are applied at once, each in a transaction of its own.
//!
//! Two of them may concern the same user, so nobody writes what he has read: the database adds to
//! its own number. The rows are locked last in a transaction, in the order of their users, so that
//! transactions wait for each other in a row and never in a circle.
//!
//! A counter that is to be counted anew (its row is new, or was lost, or would leave its range) is
//! counted while its row is locked. Whoever else has changed the mirror for this user has either
//! committed, and is counted, or will add his part to this row after it.
//!
//! Counting is led by the facts, and these may come late: an event can be read from the binlog, published and
//! applied before the commit that it is of has become visible in its own database. So the facts that are being
//! committed are waited for, and then counted.

use std::collections::{BTreeMap, BTreeSet};

use tidings_backbone::{
    Conn, Result,
    db::Value,
    projector::{Generation, generation::keep_live},
};

use super::{Counters, Delta, first_changes_now, recount};
use crate::{
    UserId,
    relation::{generation::Of, projection},
    telemetry,
};

const INSERT: &str = "INSERT INTO user_counter \
     (generation, user_id, followings, followers, posts, likes_received, favorites_received, changes) VALUES";

/// Adds `deltas` to the counters of their users, and counts those of `recounts` anew: their rows are locked by then.
pub(super) async fn add(
    conn: &mut Conn<'_>,
    generation: Generation,
    deltas: &BTreeMap<UserId, Delta>,
    recounts: &BTreeSet<UserId>,
) -> Result<()> {
    let row = |(user, delta): (&UserId, &Delta)| {
        // Whether the row is new shows in `changes`: it stays NULL until the row is counted.
        let (followings, followers) = (delta.followings.into(), delta.followers.into());
        [generation.0.into(), (*user).into(), followings, followers, 0.into(), 0.into(), 0.into(), Value::Null]
    };
    let rows: Vec<[Value; 8]> = deltas.iter().map(row).collect();
    let add = ["followings", "followers"].map(|column| format!("{column} = {column} + VALUES({column})")).join(", ");
    let tail = conn.engine().on_conflict("generation, user_id", &format!("{add}, changes = changes + 1"));
    let written = conn.execute_numbers("adding to counters", INSERT, rows, &tail).await?;
    // A row counts twice when it was there.
    let any_new = written < 2 * deltas.len() as u64;
    let any_fell = deltas.values().any(|delta| delta.followings < 0 || delta.followers < 0);
    let mut wrong = recounts.clone();
    if any_new || any_fell {
        wrong.extend(find_wrong(conn, generation, deltas).await?);
    }
    if !wrong.is_empty() {
        let wrong: Vec<UserId> = wrong.into_iter().collect();
        count(conn, generation, &wrong, |user| deltas.get(&user).map(|delta| delta.first_changes(generation))).await?;
    }
    Ok(())
}

/// The users whose rows are not counted yet or have left their range.
async fn find_wrong(
    conn: &mut Conn<'_>,
    generation: Generation,
    deltas: &BTreeMap<UserId, Delta>,
) -> Result<Vec<UserId>> {
    let sql = |input: &str| {
        format!(
            "SELECT user_id, changes IS NULL FROM user_counter WHERE user_id IN ({input}) AND (changes IS NULL \
             OR followings NOT BETWEEN 0 AND {max} OR followers NOT BETWEEN 0 AND {max}) AND generation = ?",
            max = u32::MAX
        )
    };
    let keys: Vec<[Value; 1]> = deltas.keys().map(|user| [(*user).into()]).collect();
    let mut wrong = Vec::new();
    for row in conn.fetch_rows_and("looking for counters to count", sql, keys, &[generation.0.into()]).await? {
        let user = UserId::read(&row, 0, "user_counter")?;
        if row.int(1)? == 0 {
            telemetry::counter_drift(1);
            tracing::error!(%user, "a counter would leave its range; recounting");
        }
        wrong.push(user);
    }
    Ok(wrong)
}

/// Counts anew for one user and stores it, in a transaction that has changed nothing for him.
pub(super) async fn repair(conn: &mut Conn<'_>, user: UserId) -> Result<Counters> {
    let live = keep_live(conn, projection::NAME).await?;
    let row = [live.0.into(), user.into(), 0.into(), 0.into(), 0.into(), 0.into(), 0.into(), Value::Null];
    let tail = conn.engine().on_conflict("generation, user_id", "changes = changes");
    conn.execute_rows("locking a counter", INSERT, vec![row], &tail).await?;
    let first_changes = first_changes_now(conn, live).await?;
    let counted = count(conn, live, &[user], |_| Some(first_changes)).await?;
    Ok(counted.first().map(|(_, counters)| *counters).unwrap_or_default())
}

/// Writes whole rows that nobody else has written.
pub(super) async fn write(
    conn: &mut Conn<'_>,
    generation: Generation,
    counted: &[(UserId, Counters)],
    changes: i64,
) -> Result<()> {
    let row = |(user, counters): &(UserId, Counters)| {
        let [followings, followers, posts, likes, favorites] = counters.slots().map(|slot| i64::from(slot).into());
        [generation.0.into(), (*user).into(), followings, followers, posts, likes, favorites, changes.into()]
    };
    conn.execute_numbers("storing counters", INSERT, counted.iter().map(row).collect(), "").await.map(drop)
}

/// Waits until no fact of these users is written and not yet committed: a row that is locked for its writer is read
/// only after him.
async fn wait_for_facts(conn: &mut Conn<'_>, users: &[UserId]) -> Result<()> {
    let sql = |input: &str| {
        format!(
            "WITH wanted (id) AS (SELECT DISTINCT input.* FROM ({input}) AS input) \
             SELECT STRAIGHT_JOIN COUNT(*) FROM wanted \
             JOIN following r FORCE INDEX (following_pair) ON r.from_user_id = wanted.id LOCK IN SHARE MODE"
        )
    };
    let keys: Vec<[Value; 1]> = users.iter().map(|user| [(*user).into()]).collect();
    conn.fetch_rows("waiting for facts", sql, keys).await.map(drop)
}

/// Counts for users whose rows are locked, and stores it.
async fn count(
    conn: &mut Conn<'_>,
    generation: Generation,
    users: &[UserId],
    first_changes: impl Fn(UserId) -> Option<i64>,
) -> Result<Vec<(UserId, Counters)>> {
    wait_for_facts(conn, users).await?;
    let mut counted: Vec<(UserId, Counters)> = recount(conn, Of::One(generation), users).await?.into_iter().collect();
    counted.sort_unstable_by_key(|(user, _)| *user);
    let row = |(user, counters): &(UserId, Counters)| {
        let [followings, followers, posts, likes, favorites] = counters.slots().map(|slot| i64::from(slot).into());
        let changes = first_changes(*user).into();
        [generation.0.into(), (*user).into(), followings, followers, posts, likes, favorites, changes]
    };
    let columns = ["followings", "followers", "posts", "likes_received", "favorites_received"];
    let set = columns.map(|column| format!("{column} = VALUES({column})")).join(", ");
    let tail = conn
        .engine()
        .on_conflict("generation, user_id", &format!("{set}, changes = COALESCE(changes, VALUES(changes))"));
    conn.execute_numbers("storing counters", INSERT, counted.iter().map(row).collect(), &tail).await?;
    Ok(counted)
}
