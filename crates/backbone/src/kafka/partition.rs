//! Which partition a key is in: murmur2 of its bytes, as Java's clients and the relay's producer have it.

/// The partition of a key among `count`. Keys are never empty.
pub(crate) fn partition_of(key: &[u8], count: i32) -> i32 {
    (murmur2(key) & i32::MAX) % count.max(1)
}

const SEED: u32 = 0x9747_b28c;
const FACTOR: u32 = 0x5bd1_e995;

fn murmur2(data: &[u8]) -> i32 {
    let (words, rest) = data.as_chunks::<4>();
    let mut hash = SEED ^ u32::try_from(data.len()).unwrap_or(u32::MAX);
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ word.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let rest = rest.iter().rev().fold(0, |bits: u32, byte| bits << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(FACTOR);
    (hash ^ hash >> 15).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_kafkas_own_tests() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("abc", 479_470_107),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(key.as_bytes()), hash, "{key}");
        }
        assert_eq!(partition_of(b"21", 12), (-973_932_308 & i32::MAX) % 12);
    }
}
