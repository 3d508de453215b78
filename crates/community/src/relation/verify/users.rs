//! Counters and list lengths against facts, for every user of the graph: some 50 bytes of memory for each.

use std::collections::BTreeMap;

use tidings_backbone::{Conn, Result, projector::Generation};

use super::{
    Kind, Report,
    active::{Side, count_active},
    pending::Pending,
    stretches::Table,
};
use crate::{
    UserId,
    limits::{VERIFY_STEP_ROWS, VERIFY_SUSPECTS_MAX},
    relation::counters::{Stored, read_stored_after},
};

/// What is counted for one user.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Facts, with pending events taken back.
    followings: i64,
    followers: i64,
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
    count_active(conn, Table::Facts, &Side::BOTH, |side, user, number| {
        tallies.entry(user).or_default().add(side, number)
    })
    .await?;
    let add_line = |_, user, number| tallies.entry(user).or_default().follower_list += number;
    count_active(conn, Table::Mirror(generation), &[Side::Followed], add_line).await?;
    take_back(pending, &mut tallies);
    compare_lists(&tallies, pending, report);
    let (stored, without_row) = compare_counters(conn, generation, |_| true, tallies, pending, report).await?;
    report.users += stored + without_row;
    report_nobodies(conn, generation, report).await
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

pub(super) const SELECT_NOBODIES: &str =
    "SELECT user_id FROM user_counter WHERE generation = ? AND user_id < 0 ORDER BY user_id LIMIT ?";

/// Rows of negative ids, which nobody counts.
pub(super) async fn report_nobodies(conn: &mut Conn<'_>, generation: Generation, report: &mut Report) -> Result<()> {
    let limit = i64::try_from(VERIFY_SUSPECTS_MAX).unwrap_or(i64::MAX);
    for row in
        conn.fetch("looking for counters of nobody", SELECT_NOBODIES, vec![generation.0.into(), limit.into()]).await?
    {
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
    pub(super) fn add(&mut self, side: Side, number: i64) {
        match side {
            Side::Follower => self.followings += number,
            Side::Followed => self.followers += number,
        }
    }

    /// What the slots of the counters must be. Posts, likes and favorites have no facts yet.
    fn slots(&self) -> [i64; 5] {
        [self.followings, self.followers, 0, 0, 0]
    }
}

pub(in crate::relation) fn describe(slots: [i64; 5]) -> String {
    let [followings, followers, posts, likes, favorites] = slots;
    format!("followings {followings}, followers {followers}, posts {posts}, likes {likes}, favorites {favorites}")
}
