//! Counters and list lengths against facts, for every user of the graph.

use std::collections::BTreeMap;

use tidings_backbone::{Conn, Result, db::Row, projector::Generation};

use super::{Kind, Report, pending::Pending, stretches::Stretches};
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
    tally_facts(conn, &mut tallies).await?;
    let add_line = |tally: &mut Tally, number| tally.follower_list += number;
    tally_mirror(conn, generation, &[("to_user_id", add_line)], &mut tallies).await?;
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
    let mut tallies = Tallies::new();
    let add_follower = |tally: &mut Tally, number| tally.followers += number;
    let add_following = |tally: &mut Tally, number| tally.followings += number;
    let sides: [(_, Add); 2] = [("to_user_id", add_follower), ("from_user_id", add_following)];
    tally_mirror(conn, generation, &sides, &mut tallies).await?;
    compare_counters(conn, generation, tallies, pending, report).await
}

/// Adds a number to what is counted for a user.
type Add = fn(&mut Tally, i64);

/// Counts active mirror rows by the users in these columns; of owners that can be none, pair by pair is told.
async fn tally_mirror(
    conn: &mut Conn<'_>,
    generation: Generation,
    sides: &[(&'static str, Add)],
    tallies: &mut Tallies,
) -> Result<()> {
    let mut stretches = Stretches::of(generation);
    while let Some(stretch) = stretches.next(conn).await? {
        for (user, add) in sides {
            let sql = format!(
                "SELECT m.{user}, COUNT(*) FROM follower m WHERE {} AND m.rel_status = 1 \
                 AND m.to_user_id >= 0 GROUP BY m.{user}",
                stretch.condition("m")
            );
            add_rows(&conn.fetch("counting lists of the mirror", sql, stretch.args()).await?, *add, tallies)?;
        }
    }
    Ok(())
}

/// Counts followings and followers from facts, which have no index by who is followed.
async fn tally_facts(conn: &mut Conn<'_>, tallies: &mut Tallies) -> Result<()> {
    let doing = "counting lists from facts";
    let sql = "SELECT COALESCE(MAX(id), 0) FROM following";
    let last = conn.fetch_optional(doing, sql, Vec::new()).await?.map_or(Ok(0), |row| row.int(0))?;
    let add_following = |tally: &mut Tally, number| tally.followings += number;
    let add_follower = |tally: &mut Tally, number| tally.followers += number;
    let sides: [(_, Add); 2] = [("from_user_id", add_following), ("to_user_id", add_follower)];
    for start in (0..last).step_by(VERIFY_STEP_ROWS as usize) {
        for (user, add) in sides {
            let sql = format!(
                "SELECT {user}, COUNT(*) FROM following WHERE id > ? AND id <= ? AND rel_status = 1 AND {user} >= 0 \
                 GROUP BY {user}"
            );
            let args = vec![start.into(), (start + VERIFY_STEP_ROWS).into()];
            add_rows(&conn.fetch(doing, sql, args).await?, add, tallies)?;
        }
    }
    Ok(())
}

fn add_rows(rows: &[Row], add: Add, tallies: &mut Tallies) -> Result<()> {
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
