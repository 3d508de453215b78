//! Which partition a key belongs to: as producers of Java have it, by murmur2.

/// The partition of a key among so many.
pub(crate) fn partition(key: &[u8], partitions: i32) -> i32 {
    (hash(key) & i32::MAX) % partitions.max(1)
}

const MIX: u32 = 0x5bd1_e995;
const SEED: u32 = 0x9747_b28c;

fn hash(key: &[u8]) -> i32 {
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
    let (words, rest) = key.as_chunks::<4>();
    let mut hash = SEED ^ length;
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(MIX);
        hash = hash.wrapping_mul(MIX) ^ (word ^ (word >> 24)).wrapping_mul(MIX);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        hash = (hash ^ word).wrapping_mul(MIX);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MIX);
    (hash ^ (hash >> 15)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_hashes_of_kafkas_own_tests() {
        for (key, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(hash(key.as_bytes()), expected, "{key}");
        }
    }
}
