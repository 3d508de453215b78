//! Counts and checksums of shards.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// Buckets of ids in each part of the log: so many that one of them alone is small, whatever the window holds.
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

    /// The shards that differ, by part and bucket, with the rows of both sides; and how many have any.
    pub(super) fn differing(&self, other: &Self) -> (BTreeMap<(u16, u16), u64>, u64) {
        let (mut differing, mut shards) = (BTreeMap::new(), 0);
        for ((at, one), other) in (0_u32..).zip(&self.0).zip(&other.0) {
            shards += u64::from(one.count + other.count > 0);
            if one != other {
                let part = u16::try_from(at / u32::from(BUCKETS)).unwrap_or(u16::MAX);
                let bucket = u16::try_from(at % u32::from(BUCKETS)).unwrap_or(u16::MAX);
                differing.insert((part, bucket), one.count + other.count);
            }
        }
        (differing, shards)
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
        assert_eq!(one.differing(&filled(&[(3, 1), (17, 2), (1, 1)])), (BTreeMap::new(), 2));
        let (differing, _) = one.differing(&filled(&[(1, 1), (17, 3), (3, 1)]));
        assert_eq!(differing, BTreeMap::from([((1, 0x101), 4)]));
    }
}
