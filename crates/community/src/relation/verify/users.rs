//! Counters and list lengths against facts, for every user of the graph.

use std::collections::BTreeMap;

use tidings_backbone::{
    Conn, Result,
    db::{Row, Value},
    projector::Generation,
};

use super::{Kind, Report, pending::Pending};
use crate::{
    UserId,
    limits::VERIFY_STEP_ROWS,
    relation::counters::{Stored, read_stored_after},
};

/// What is counted for one user.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Facts, with pending events taken back.
    followings: i64,
    followers: i64,
    /// Lines of the follower list.
    follower_list: i64,
}

type Tallies = BTreeMap<UserId, Tally>;

/// Compares the counters and the lists of every user with the facts.
pub(super) async fn compare(
    conn: &mut Conn<'_>,
    generation: Generation,
    pending: &Pending,
    report: &mut Report,
) -> Result<()> {
    let mut tallies = Tallies::new();
    let add_following = |tally: &mut Tally, number| tally.followings += number;
    tally_lists(conn, ("following", "from_user_id"), None, add_following, &mut tallies).await?;
    let add_line = |tally: &mut Tally, number| tally.follower_list += number;
    tally_lists(conn, ("follower", "to_user_id"), Some(generation), add_line, &mut tallies).await?;
    tally_followers(conn, &mut tallies).await?;
    take_back(pending, &mut tallies);
    compare_lists(&tallies, pending, report);
    compare_counters(conn, generation, tallies, pending, report).await
}

/// Compares the counters of every user with the mirror: both are changed by one transaction, so they agree
/// in any snapshot, whatever is on its way. How long a list is follows from its rows, pair by pair.
pub(in crate::relation) async fn compare_with_mirror(
    conn: &mut Conn<'_>,
    generation: Generation,
    pending: &Pending,
    report: &mut Report,
) -> Result<()> {
    let of: Value = generation.0.into();
    let mut tallies = Tallies::new();
    let doing = "counting lists of the mirror";
    let owners = "SELECT to_user_id, COUNT(*) FROM follower WHERE generation = ? AND rel_status = 1 AND to_user_id > ? \
                  GROUP BY to_user_id ORDER BY to_user_id LIMIT ?";
    // The mirror is sorted by who is followed, so who follows is counted among the same rows.
    let followed = "SELECT from_user_id, COUNT(*) FROM follower \
                    WHERE generation = ? AND to_user_id > ? AND to_user_id <= ? AND rel_status = 1 \
                    GROUP BY from_user_id";
    let mut after = -1;
    loop {
        let rows = conn.fetch(doing, owners, vec![of.clone(), after.into(), VERIFY_STEP_ROWS.into()]).await?;
        let Some(last) = rows.last() else { break };
        let last = last.int(0)?;
        add_rows(&rows, &|tally, number| tally.followers += number, &mut tallies)?;
        let rows = conn.fetch(doing, followed, vec![of.clone(), after.into(), last.into()]).await?;
        add_rows(&rows, &|tally, number| tally.followings += number, &mut tallies)?;
        after = last;
    }
    compare_counters(conn, generation, tallies, pending, report).await
}

/// Counts the active rows of each owner in the order of the table's list index, a step of owners
/// at a time.
async fn tally_lists(
    conn: &mut Conn<'_>,
    (table, owner): (&'static str, &'static str),
    generation: Option<Generation>,
    add: impl Fn(&mut Tally, i64),
    tallies: &mut Tallies,
) -> Result<()> {
    let of = if generation.is_some() { "generation = ? AND" } else { "" };
    let sql = format!(
        "SELECT {owner}, COUNT(*) FROM {table} WHERE {of} rel_status = 1 AND {owner} > ? \
         GROUP BY {owner} ORDER BY {owner} LIMIT ?"
    );
    let mut after = -1;
    loop {
        let of = generation.map(|generation| generation.0.into());
        let args = of.into_iter().chain([after.into(), VERIFY_STEP_ROWS.into()]).collect();
        let rows = conn.fetch("counting lists", sql.clone(), args).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.int(0)?;
        add_rows(&rows, &add, tallies)?;
    }
}

/// Counts followers from facts, which have no index by who is followed: a step of rows at a time.
async fn tally_followers(conn: &mut Conn<'_>, tallies: &mut Tallies) -> Result<()> {
    let doing = "counting followers from facts";
    let sql = "SELECT COALESCE(MAX(id), 0) FROM following";
    let last = conn.fetch_optional(doing, sql, Vec::new()).await?.map_or(Ok(0), |row| row.int(0))?;
    let sql = "SELECT to_user_id, COUNT(*) FROM following WHERE id > ? AND id <= ? AND rel_status = 1 \
               GROUP BY to_user_id";
    for start in (0..last).step_by(VERIFY_STEP_ROWS as usize) {
        let rows = conn.fetch(doing, sql, vec![start.into(), (start + VERIFY_STEP_ROWS).into()]).await?;
        add_rows(&rows, &|tally, number| tally.followers += number, tallies)?;
    }
    Ok(())
}

fn add_rows(rows: &[Row], add: &impl Fn(&mut Tally, i64), tallies: &mut Tallies) -> Result<()> {
    for row in rows {
        add(tallies.entry(UserId::read(row, 0, "following")?).or_default(), row.int(1)?);
    }
    Ok(())
}

/// Undoes what pending events changed, so that facts stand where the projection does.
fn take_back(pending: &Pending, tallies: &mut Tallies) {
    for (pair, pending) in pending.iter() {
        let by = i64::from(pending.held_before) - i64::from(pending.holds_after);
        if by != 0 {
            tallies.entry(pair.from).or_default().followings += by;
            tallies.entry(pair.to).or_default().followers += by;
        }
    }
}

fn compare_lists(tallies: &Tallies, pending: &Pending, report: &mut Report) {
    for (user, tally) in tallies {
        if tally.follower_list != tally.followers && !pending.will_recount(*user) {
            report.add(Kind::FollowerListLength, *user, tally.followers, tally.follower_list);
        }
    }
}

async fn compare_counters(
    conn: &mut Conn<'_>,
    generation: Generation,
    mut tallies: Tallies,
    pending: &Pending,
    report: &mut Report,
) -> Result<()> {
    let mut after = None;
    loop {
        let step = read_stored_after(conn, generation, after, VERIFY_STEP_ROWS).await?;
        let Some((last, _)) = step.last() else { break };
        after = Some(*last);
        for (user, stored) in step {
            report.users += 1;
            let tally = tallies.remove(&user).unwrap_or_default();
            if !pending.will_recount(user) {
                compare_counter(user, stored, tally, report);
            }
        }
    }
    tallies.retain(|user, _| !pending.will_recount(*user));
    report_without_row(tallies, report);
    Ok(())
}

fn report_without_row(tallies: Tallies, report: &mut Report) {
    for (user, tally) in tallies {
        report.users += 1;
        // A user whom no applied event concerns has no row yet.
        if tally.slots() != [0; 5] {
            report.add(Kind::CounterMissing, user, describe(tally.slots()), "no row");
        }
    }
}

fn compare_counter(user: UserId, stored: Stored, tally: Tally, report: &mut Report) {
    let expected = tally.slots();
    match stored.counters.map(|counters| counters.slots().map(i64::from)) {
        None => report.add(Kind::CounterMalformed, user, describe(expected), "another value"),
        Some(found) if found != expected => {
            report.add(Kind::CounterValue, user, describe(expected), describe(found));
        }
        Some(_) => {}
    }
}

impl Tally {
    /// What the slots of the counters must be. Posts, likes and favorites have no facts yet.
    fn slots(&self) -> [i64; 5] {
        [self.followings, self.followers, 0, 0, 0]
    }
}

pub(in crate::relation) fn describe(slots: [i64; 5]) -> String {
    let [followings, followers, posts, likes, favorites] = slots;
    format!("followings {followings}, followers {followers}, posts {posts}, likes {likes}, favorites {favorites}")
}
