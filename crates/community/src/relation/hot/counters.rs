//! Counters in Redis.

use tidings_backbone::Result;

use super::{Hot, millis};
use crate::{
    UserId,
    relation::counters::{Counters, SLOTS_BYTES},
    telemetry,
};

/// What Redis has of a user's counters.
#[derive(Clone, Copy, Debug)]
pub(in crate::relation) enum KeptCounters {
    /// These, and the database was asked a moment ago. Redis was asked at `at_ms`, by its clock.
    Fresh { counters: Counters, at_ms: i64 },
    /// Nothing, or something older; the answer of the database may be kept as of `at_ms`.
    Ask { at_ms: i64 },
    /// Redis did not answer.
    Unknown,
}

/// Bytes before the moment: slots, number of changes, checksum.
const VALUE_BYTES: usize = SLOTS_BYTES + 8 + 4;

impl KeptCounters {
    /// The moment of Redis's at which it was asked, if it answered.
    pub(in crate::relation) fn asked_at_ms(self) -> Option<i64> {
        match self {
            Self::Fresh { at_ms, .. } | Self::Ask { at_ms } => Some(at_ms),
            Self::Unknown => None,
        }
    }
}

impl Hot {
    pub(in crate::relation) async fn read_counters(&self, user: UserId) -> KeptCounters {
        let kept = self.try_read_counters(user).await.unwrap_or(KeptCounters::Unknown);
        telemetry::hot_counters(match kept {
            KeptCounters::Fresh { .. } => "found",
            KeptCounters::Ask { .. } => "ask",
            KeptCounters::Unknown => "down",
        });
        kept
    }

    async fn try_read_counters(&self, user: UserId) -> Result<KeptCounters> {
        let call = self.0.read_counters.call().key(self.counters_key(user));
        let (value, now_ms): (Vec<u8>, i64) = self.0.redis.call("reading counters", &call).await?;
        let fresh = decode(&value).filter(|(_, asked_ms)| {
            // A moment to come is from a clock that was set back since.
            (0..millis(self.0.options.counters_time)).contains(&(now_ms - asked_ms))
        });
        let at_ms = now_ms;
        Ok(fresh.map_or(KeptCounters::Ask { at_ms }, |(counters, _)| KeptCounters::Fresh { counters, at_ms }))
    }

    /// Keeps what the database said when it was asked, at `at_ms` or later.
    pub(in crate::relation) async fn store_counters(&self, user: UserId, counters: Counters, changes: i64, at_ms: i64) {
        let value = [&encode(counters, changes)[..], &at_ms.to_be_bytes()].concat();
        let call = self.0.store_counters.call().key(self.counters_key(user)).arg(value).arg(changes);
        // Kept or not, the answer is the database's.
        drop(self.0.redis.call::<()>("keeping counters", &call.arg(self.keep_ms())).await);
    }

    pub(super) fn counters_key(&self, user: UserId) -> String {
        self.0.redis.key(format_args!("ucnt:{user}"))
    }
}

/// The value without its moment.
pub(super) fn encode(counters: Counters, changes: i64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[..SLOTS_BYTES].copy_from_slice(&counters.encode().0);
    value[SLOTS_BYTES..SLOTS_BYTES + 8].copy_from_slice(&changes.to_be_bytes());
    let checksum = crc32fast::hash(&value[..SLOTS_BYTES + 8]);
    value[SLOTS_BYTES + 8..].copy_from_slice(&checksum.to_be_bytes());
    value
}

/// Reads a value back, with its moment; `None` when it is truncated, too long, or not what was written.
pub(super) fn decode(value: &[u8]) -> Option<(Counters, i64)> {
    let (value, asked_ms) = value.split_at_checked(VALUE_BYTES)?;
    let (body, checksum) = value.split_at(SLOTS_BYTES + 8);
    if crc32fast::hash(body).to_be_bytes() != checksum {
        return None;
    }
    let slots = &body[..SLOTS_BYTES];
    let counters = Counters::decode(slots, crc32fast::hash(slots).into())?;
    Some((counters, i64::from_be_bytes(asked_ms.try_into().ok()?)))
}

/// The number of changes in a value that can be decoded.
pub(super) fn changes_of(value: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(value.get(SLOTS_BYTES..SLOTS_BYTES + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded_and_any_damage_is_noticed(
            slots: [u32; 5],
            changes in 0..i64::MAX,
            at_ms in 0..i64::MAX,
            bit in 0_usize..8 * VALUE_BYTES,
            end in 0_usize..40,
        ) {
            let counters = Counters::from(slots);
            let mut value = [&encode(counters, changes)[..], &at_ms.to_be_bytes()].concat();
            prop_assert_eq!(decode(&value), Some((counters, at_ms)));
            prop_assert_eq!(decode(&value[..end]), None);
            value[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode(&value), None);
            value.push(0);
            prop_assert_eq!(decode(&value), None);
        }
    }
}
