//! The compact value: five big-endian 32-bit slots and a checksum over them.

use super::Delta;

/// Bytes of the value without its checksum.
pub const SLOTS_BYTES: usize = 20;

/// The counters of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// How many he follows.
    pub followings: u32,
    /// How many follow him.
    pub followers: u32,
    /// Posts he has published.
    pub posts: u32,
    /// Likes that his posts and comments have.
    pub likes_received: u32,
    /// Favorites that his posts and comments have.
    pub favorites_received: u32,
}

impl Counters {
    /// The value and its checksum, CRC-32 as in zip and PNG.
    pub fn encode(&self) -> ([u8; SLOTS_BYTES], u32) {
        let mut bytes = [0; SLOTS_BYTES];
        for (slot, number) in bytes.chunks_exact_mut(4).zip(self.slots()) {
            slot.copy_from_slice(&number.to_be_bytes());
        }
        (bytes, crc32fast::hash(&bytes))
    }

    /// Reads a value back; `None` when it is truncated, too long, or not what was written.
    pub fn decode(bytes: &[u8], checksum: i64) -> Option<Self> {
        let bytes: &[u8; SLOTS_BYTES] = bytes.try_into().ok()?;
        if i64::from(crc32fast::hash(bytes)) != checksum {
            return None;
        }
        let slot = |index: usize| {
            let at = 4 * index;
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self::from([slot(0), slot(1), slot(2), slot(3), slot(4)]))
    }

    /// The numbers in the order of their slots.
    pub fn slots(&self) -> [u32; 5] {
        [self.followings, self.followers, self.posts, self.likes_received, self.favorites_received]
    }

    /// With `delta` added, unless a number would leave its range.
    pub(super) fn plus(self, delta: Delta) -> Option<Self> {
        let add = |number: u32, by: i64| u32::try_from(i64::from(number).checked_add(by)?).ok();
        Some(Self {
            followings: add(self.followings, delta.followings)?,
            followers: add(self.followers, delta.followers)?,
            ..self
        })
    }
}

impl From<[u32; 5]> for Counters {
    /// From numbers in the order of their slots.
    fn from([followings, followers, posts, likes_received, favorites_received]: [u32; 5]) -> Self {
        Self { followings, followers, posts, likes_received, favorites_received }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_are_big_endian_and_in_their_order() {
        let counters =
            Counters { followings: 1, followers: 0x0203_0405, posts: 6, likes_received: 7, favorites_received: 8 };
        let (bytes, _) = counters.encode();
        assert_eq!(bytes, [0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8]);
    }

    #[test]
    fn a_sum_that_leaves_its_range_is_no_sum() {
        let zero = Counters::default();
        assert_eq!(zero.plus(Delta { followers: -1, ..Delta::default() }), None);
        let full = Counters { followings: u32::MAX, ..zero };
        assert_eq!(full.plus(Delta { followings: 1, ..Delta::default() }), None);
        assert_eq!(full.plus(Delta { followings: -1, ..Delta::default() }).unwrap().followings, u32::MAX - 1);
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(slots: [u32; 5]) {
            let [followings, followers, posts, likes_received, favorites_received] = slots;
            let counters = Counters { followings, followers, posts, likes_received, favorites_received };
            let (bytes, checksum) = counters.encode();
            prop_assert_eq!(Counters::decode(&bytes, i64::from(checksum)), Some(counters));
        }

        #[test]
        fn a_flipped_bit_is_noticed(slots: [u32; 5], bit in 0_usize..8 * SLOTS_BYTES) {
            let [followings, followers, posts, likes_received, favorites_received] = slots;
            let counters = Counters { followings, followers, posts, likes_received, favorites_received };
            let (mut bytes, checksum) = counters.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Counters::decode(&bytes, i64::from(checksum)), None);
        }

        #[test]
        fn bytes_of_any_other_length_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assume!(bytes.len() != SLOTS_BYTES);
            let checksum = i64::from(crc32fast::hash(&bytes));
            prop_assert_eq!(Counters::decode(&bytes, checksum), None);
        }
    }
}
