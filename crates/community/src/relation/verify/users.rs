//! Counters and list lengths against facts, for every user of the graph: some 50 bytes of memory for each.

use std::collections::BTreeMap;

use tidings_backbone::{Conn, Result, db::Row, projector::Generation};

use super::{Kind, Report, pending::Pending};
use crate::{
    UserId,
    limits::{VERIFY_STEP_ROWS, VERIFY_SUSPECTS_MAX},
    relation::counters::{Stored, read_stored_after},
};

/// What is counted for one user.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Facts, with pending events taken back.
    pub(super) followings: i64,
    pub(super) followers: i64,
    /// Lines of the follower list.
    follower_list: i64,
}

pub(super) type Tallies = BTreeMap<UserId, Tally>;

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
    let (stored, without_row) = compare_counters(conn, generation, |_| true, tallies, pending, report).await?;
    report.users += stored + without_row;
    report_nobodies(conn, generation, report).await
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

/// Compares the counters of those users who are wanted, all of whom the tallies have; answers how many have a row, and
/// how many should have one.
pub(super) async fn compare_counters(
    conn: &mut Conn<'_>,
    generation: Generation,
    is_wanted: impl Fn(UserId) -> bool,
    mut tallies: Tallies,
    pending: &Pending,
    report: &mut Report,
) -> Result<(u64, u64)> {
    let (mut after, mut rows) = (None, 0);
    loop {
        let step = read_stored_after(conn, generation, after, VERIFY_STEP_ROWS).await?;
        let Some((last, _)) = step.last() else { break };
        after = Some(*last);
        for (user, stored) in step.into_iter().filter(|(user, _)| is_wanted(*user)) {
            rows += 1;
            let tally = tallies.remove(&user).unwrap_or_default();
            if !pending.will_recount(user) {
                compare_counter(user, Some(stored), tally, report);
            }
        }
    }
    tallies.retain(|user, _| !pending.will_recount(*user));
    let without_row = tallies.len() as u64;
    tallies.into_iter().for_each(|(user, tally)| compare_counter(user, None, tally, report));
    Ok((rows, without_row))
}

fn compare_counter(user: UserId, stored: Option<Stored>, tally: Tally, report: &mut Report) {
    let expected = tally.slots();
    if let Some(off) = Off::of(expected, stored) {
        report.add(off.kind(), user, describe(expected), off.found(expected));
    }
}

/// Rows of negative ids, which nobody counts.
pub(super) async fn report_nobodies(conn: &mut Conn<'_>, generation: Generation, report: &mut Report) -> Result<()> {
    let sql = "SELECT user_id FROM user_counter WHERE generation = ? AND user_id < 0 ORDER BY user_id LIMIT ?";
    let limit = i64::try_from(VERIFY_SUSPECTS_MAX).unwrap_or(i64::MAX);
    for row in conn.fetch("looking for counters of nobody", sql, vec![generation.0.into(), limit.into()]).await? {
        report.add(Kind::CounterOfNobody, row.int(0)?, "no row", "a row");
    }
    Ok(())
}

/// How stored counters differ from what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) enum Off {
    /// There is no row, and should be.
    Missing,
    /// The row cannot be read.
    Malformed,
    /// By so much, which stays the same while both change.
    By([i64; 5]),
}

impl Off {
    pub(in crate::relation) fn of(expected: [i64; 5], stored: Option<Stored>) -> Option<Self> {
        match stored.map(|stored| stored.counters.map(|counters| counters.slots().map(i64::from))) {
            // A user whom no applied event concerns has no row yet.
            None => (expected != [0; 5]).then_some(Self::Missing),
            Some(None) => Some(Self::Malformed),
            Some(Some(found)) if found == expected => None,
            Some(Some(found)) => Some(Self::By(std::array::from_fn(|slot| found[slot] - expected[slot]))),
        }
    }

    pub(in crate::relation) fn kind(self) -> Kind {
        match self {
            Self::Missing => Kind::CounterMissing,
            Self::Malformed => Kind::CounterMalformed,
            Self::By(_) => Kind::CounterValue,
        }
    }

    /// What is there, in some words.
    pub(in crate::relation) fn found(self, expected: [i64; 5]) -> String {
        match self {
            Self::Missing => "no row".to_owned(),
            Self::Malformed => "another value".to_owned(),
            Self::By(by) => describe(std::array::from_fn(|slot| expected[slot] + by[slot])),
        }
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
