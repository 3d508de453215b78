//! Counters against the mirror: both are changed by one transaction, so they agree in any snapshot, whatever is on
//! its way. How long a list is follows from its rows, pair by pair.
//!
//! Sums of shards come first, and take no memory; users of the shards that differ are then compared one by one, so
//! many at a time as can be kept.

use std::collections::BTreeSet;

use tidings_backbone::{Conn, Result, projector::Generation};

use super::{
    Report,
    active::{Side, count_active},
    pending::Pending,
    stretches::Table,
    users::{Tallies, compare_counters, report_nobodies},
};
use crate::{
    UserId,
    limits::{VERIFY_STEP_ROWS, VERIFY_USERS_MAX},
    relation::counters::read_stored_after,
};

const SHARDS: usize = 1_024;

/// Of the users of a shard: what the mirror counts less what is stored, each by a number of the user's own, so that
/// what one has too much and another too little does not cancel out.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    followings: u64,
    followers: u64,
    /// Whether a row cannot be read, or says what nothing counts.
    is_strange: bool,
}

/// Compares the counters of every user with the mirror.
pub(in crate::relation) async fn compare_with_mirror(
    conn: &mut Conn<'_>,
    generation: Generation,
    pending: &Pending,
    report: &mut Report,
) -> Result<()> {
    let (sums, rows) = sum(conn, generation).await?;
    report.users += rows;
    for group in groups(&sums, accounts(conn).await? / SHARDS as u64) {
        let is_wanted = |user: UserId| group.contains(&shard(user));
        let mut tallies = Tallies::new();
        count_active(conn, Table::Mirror(generation), &Side::BOTH, |side, user, number| {
            if is_wanted(user) {
                tallies.entry(user).or_default().add(side, number);
            }
        })
        .await?;
        let (_, without_row) = compare_counters(conn, generation, is_wanted, tallies, pending, report).await?;
        report.users += without_row;
    }
    report_nobodies(conn, generation, report).await
}

/// The sums of all shards, and how many rows of counters there are.
async fn sum(conn: &mut Conn<'_>, generation: Generation) -> Result<(Vec<Sum>, u64)> {
    let mut sums = vec![Sum::default(); SHARDS];
    count_active(conn, Table::Mirror(generation), &Side::BOTH, |side, user, number| {
        let sum = &mut sums[shard(user)];
        let sum = match side {
            Side::Follower => &mut sum.followings,
            Side::Followed => &mut sum.followers,
        };
        *sum = sum.wrapping_add(weighed(user, number));
    })
    .await?;
    let (mut after, mut rows) = (None, 0);
    loop {
        let step = read_stored_after(conn, generation, after, VERIFY_STEP_ROWS).await?;
        let Some((last, _)) = step.last() else { return Ok((sums, rows)) };
        after = Some(*last);
        rows += step.len() as u64;
        for (user, stored) in step {
            let sum = &mut sums[shard(user)];
            match stored.counters.map(|counters| counters.slots().map(i64::from)) {
                Some([followings, followers, 0, 0, 0]) => {
                    sum.followings = sum.followings.wrapping_sub(weighed(user, followings));
                    sum.followers = sum.followers.wrapping_sub(weighed(user, followers));
                }
                _ => sum.is_strange = true,
            }
        }
    }
}

/// About how many users there are: their ordinals are dense.
async fn accounts(conn: &mut Conn<'_>) -> Result<u64> {
    let row = conn.fetch_optional("counting users", "SELECT MAX(ordinal) FROM account", Vec::new()).await?;
    Ok(row.map_or(Ok(None), |row| row.int_or_null(0))?.unwrap_or_default().unsigned_abs())
}

/// The shards that differ, in groups of so many users as can be kept, where each shard has about so many.
fn groups(sums: &[Sum], users: u64) -> Vec<BTreeSet<usize>> {
    let is_wrong = |sum: &Sum| sum.is_strange || sum.followings != 0 || sum.followers != 0;
    let wrong: Vec<usize> = (0..).zip(sums).filter(|(_, sum)| is_wrong(sum)).map(|(shard, _)| shard).collect();
    let at_once = usize::try_from(VERIFY_USERS_MAX / users.max(1)).unwrap_or(SHARDS).max(1);
    wrong.chunks(at_once).map(|shards| shards.iter().copied().collect()).collect()
}

fn shard(user: UserId) -> usize {
    (number_of(user) >> 54) as usize
}

fn weighed(user: UserId, number: i64) -> u64 {
    // An odd number, so that no other one weighs nothing.
    number.cast_unsigned().wrapping_mul(number_of(user) | 1)
}

/// A number of the user's own that looks like any other: the end of splitmix64.
fn number_of(user: UserId) -> u64 {
    let mixed = user.get().cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shards_that_differ_are_looked_at_and_no_more_users_at_once_than_can_be_kept() {
        let mut sums = vec![Sum::default(); SHARDS];
        assert!(groups(&sums, 7).is_empty());
        (sums[3].followings, sums[5].followers, sums[1_000].is_strange) = (1, u64::MAX, true);
        assert_eq!(groups(&sums, VERIFY_USERS_MAX / 2), [BTreeSet::from([3, 5]), BTreeSet::from([1_000])]);
        assert_eq!(groups(&sums, VERIFY_USERS_MAX * 2).len(), 3);
        assert_eq!(groups(&sums, 0).len(), 1);
    }

    #[test]
    fn every_user_has_a_shard_and_weights_do_not_cancel_out() {
        let user = |id: i64| UserId::try_from(id).unwrap();
        assert!((0..10_000).chain([i64::MAX]).all(|id| shard(user(id)) < SHARDS));
        assert_ne!(weighed(user(1), 1).wrapping_add(weighed(user(2), -1)), 0);
        assert_eq!(weighed(user(7), 3).wrapping_sub(weighed(user(7), 3)), 0);
    }
}
