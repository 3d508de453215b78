//! Counts and checksums of shards.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// Buckets of ids in each part of the log: so many that one of them alone, of all parts, is small: some 50,000 rows of
/// both sides where the window holds 100 million events.
const BUCKETS: u16 = 4_096;

/// How many there are, and the sum of their checksums: the same in whatever order they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    count: u64,
    sum: u64,
}

/// The sums of all shards.
#[derive(Debug)]
pub(super) struct Sums(Vec<Sum>);

impl Sum {
    /// The bucket of an event: by the random end of its id.
    pub(super) fn bucket(id: &[u8; 16]) -> u16 {
        u16::from_be_bytes([id[14], id[15]]) % BUCKETS
    }

    /// What is summed of an event.
    pub(super) fn of(id: &[u8; 16], event_type: &str, key: &str, version: i64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (id, event_type, key, version).hash(&mut hasher);
        hasher.finish()
    }
}

impl Sums {
    pub(super) fn new(parts: usize) -> Self {
        Self(vec![Sum::default(); parts * usize::from(BUCKETS)])
    }

    pub(super) fn add(&mut self, part: u16, id: &[u8; 16], sum: u64) {
        let at = usize::from(part) * usize::from(BUCKETS) + usize::from(Sum::bucket(id));
        let shard = &mut self.0[at];
        shard.count += 1;
        shard.sum = shard.sum.wrapping_add(sum);
    }

    /// The shards that differ from those of the other side, and how many have any row.
    pub(super) fn differing(&self, other: &Self) -> (Differing, u64) {
        let (mut differing, mut number) = (Differing::default(), 0);
        let mut weights = vec![0; usize::from(BUCKETS)];
        for ((at, one), other) in (0_u32..).zip(&self.0).zip(&other.0) {
            number += u64::from(one.count + other.count > 0);
            let part = u16::try_from(at / u32::from(BUCKETS)).unwrap_or(u16::MAX);
            let bucket = u16::try_from(at % u32::from(BUCKETS)).unwrap_or(u16::MAX);
            weights[usize::from(bucket)] += one.count + other.count;
            if one != other {
                differing.shards.insert((part, bucket));
            }
        }
        let buckets = differing.shards.iter().map(|(_, bucket)| (*bucket, weights[usize::from(*bucket)]));
        differing.buckets = buckets.collect();
        (differing, number)
    }
}

/// Shards that differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differing {
    /// By part and bucket.
    pub(super) shards: BTreeSet<(u16, u16)>,
    /// Their buckets, with the rows of these in all parts, on both sides.
    buckets: BTreeMap<u16, u64>,
}

impl Differing {
    /// Buckets that are compared at once, in groups of at most so many rows: all shards of a bucket, since an event
    /// that is in the wrong part has the same. A bucket that has more by itself is in none.
    pub(super) fn groups(&self, rows_max: u64) -> Vec<BTreeSet<u16>> {
        let mut groups: Vec<(BTreeSet<u16>, u64)> = Vec::new();
        for (bucket, rows) in self.buckets.iter().filter(|(_, rows)| **rows <= rows_max) {
            match groups.last_mut() {
                Some((group, sum)) if *sum + rows <= rows_max => {
                    group.insert(*bucket);
                    *sum += rows;
                }
                _ => groups.push((BTreeSet::from([*bucket]), *rows)),
            }
        }
        groups.into_iter().map(|(group, _)| group).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_the_same_in_any_order_and_another_version_differs() {
        let id = |number: u8| {
            let mut id = [number % 16; 16];
            id[0] = number;
            id
        };
        let filled = |events: &[(u8, i64)]| {
            let mut sums = Sums::new(2);
            events.iter().for_each(|(id_of, version)| {
                sums.add(1, &id(*id_of), Sum::of(&id(*id_of), "a.b", "k", *version));
            });
            sums
        };
        // The ids of 1 and 17 end alike.
        let one = filled(&[(1, 1), (17, 2), (3, 1)]);
        assert_eq!(one.differing(&filled(&[(3, 1), (17, 2), (1, 1)])), (Differing::default(), 2));
        let (differing, _) = one.differing(&filled(&[(1, 1), (17, 3), (3, 1)]));
        assert_eq!(differing.shards, BTreeSet::from([(1, 0x101)]));
        assert_eq!(differing.buckets, BTreeMap::from([(0x101, 4)]));
    }

    #[test]
    fn a_bucket_weighs_what_all_its_parts_hold_and_no_group_holds_more_than_there_is_room_for() {
        let id = |bucket: u8| {
            let mut id = [0; 16];
            id[15] = bucket;
            id
        };
        let (mut outbox, mut log) = (Sums::new(50), Sums::new(50));
        for bucket in 0..40 {
            for part in 0..50 {
                for version in 0..=i64::from(bucket / 20) {
                    let sum = Sum::of(&id(bucket), "a.b", "k", version);
                    outbox.add(part, &id(bucket), sum);
                    // One part lost its records of all buckets but two.
                    if part != 7 || bucket < 2 {
                        log.add(part, &id(bucket), sum);
                    }
                }
            }
        }
        let (differing, _) = outbox.differing(&log);
        assert_eq!(differing.shards, (2..40).map(|bucket| (7, bucket)).collect());
        // Buckets of 99 and of 198 rows, though but one or two rows of each differ.
        let sizes = |rows_max: u64| differing.groups(rows_max).iter().map(BTreeSet::len).collect::<Vec<_>>();
        assert_eq!(sizes(400), [[4; 4].as_slice(), &[3], &[2; 9], &[1]].concat());
        assert_eq!(sizes(198), [[2; 9].as_slice(), &[1; 20]].concat());
        assert_eq!(sizes(197), [1; 18], "what has more by itself is not compared");
        assert_eq!(sizes(98), [0; 0]);
    }
}
