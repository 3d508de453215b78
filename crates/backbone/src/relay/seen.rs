//! Which rows of an outbox table were published, told by a number that rises with each insert.
//!
//! Transactions do not commit in the order of their numbers: 7 may come after 9. So the largest number
//! alone does not say what is missing; the numbers below it that have not come are remembered, until
//! they are so old that no open transaction can still hold them.

use serde::{Deserialize, Serialize};

use crate::limits::{RELAY_GAP_AGE_MAX, RELAY_GAPS_MAX};

/// A set of numbers: all up to the largest one, but for the gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The largest number; 0 before there was any.
    pub max: u64,
    /// Ranges below it that have not come, in rising order and apart from each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Gap>,
}

/// Numbers that have not come: `from` and `to` are among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first one.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// When it was noticed, by the server's clock, in epoch milliseconds.
    since_ms: i64,
}

impl Seen {
    /// Whether the number was published. Where gaps had to be joined it may say no of one that was;
    /// of one that was not it says yes only if its gap was forgotten for its age.
    pub fn contains(&self, number: u64) -> bool {
        number <= self.max && self.gap_of(number).is_err()
    }

    /// What has not come, in rising order.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Adds a number that was published at `now_ms`.
    pub fn insert(&mut self, number: u64, now_ms: i64) {
        if number > self.max {
            if number > self.max + 1 {
                self.gaps.push(Gap { from: self.max + 1, to: number - 1, since_ms: now_ms });
                self.bound();
            }
            self.max = number;
            return;
        }
        let Ok(at) = self.gap_of(number) else { return };
        let gap = self.gaps[at];
        let low = (gap.from < number).then(|| Gap { to: number - 1, ..gap });
        let high = (number < gap.to).then(|| Gap { from: number + 1, ..gap });
        self.gaps.splice(at..=at, low.into_iter().chain(high));
        self.bound();
    }

    /// Forgets gaps that are older than any transaction may be: the numbers were rolled back.
    pub fn age(&mut self, now_ms: i64) {
        let oldest = now_ms - i64::try_from(RELAY_GAP_AGE_MAX.as_millis()).unwrap_or(i64::MAX);
        self.gaps.retain(|gap| gap.since_ms >= oldest);
    }

    fn gap_of(&self, number: u64) -> Result<usize, usize> {
        self.gaps.binary_search_by(|gap| match () {
            () if gap.to < number => std::cmp::Ordering::Less,
            () if gap.from > number => std::cmp::Ordering::Greater,
            () => std::cmp::Ordering::Equal,
        })
    }

    /// Joins the two gaps that are nearest to each other if there are too many. What lies between them
    /// counts as not published: to publish it again does no harm, to leave it out would.
    fn bound(&mut self) {
        while self.gaps.len() > RELAY_GAPS_MAX {
            let distance = |at: &usize| self.gaps[at + 1].from - self.gaps[*at].to;
            let Some(at) = (0..self.gaps.len() - 1).min_by_key(distance) else { return };
            let next = self.gaps.remove(at + 1);
            self.gaps[at].to = next.to;
            self.gaps[at].since_ms = self.gaps[at].since_ms.max(next.since_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_late_lower_number_is_not_taken_for_one_that_was_published() {
        let mut seen = Seen::default();
        for number in [1, 2, 9, 10, 7] {
            seen.insert(number, 0);
        }
        let ranges: Vec<_> = seen.gaps().iter().map(|gap| (gap.from, gap.to)).collect();
        assert_eq!((seen.max, ranges), (10, vec![(3, 6), (8, 8)]));
        assert!(seen.contains(7) && !seen.contains(8) && !seen.contains(11));
    }

    #[test]
    fn numbers_that_were_rolled_back_are_forgotten_in_the_end() {
        let mut seen = Seen::default();
        seen.insert(5, 0);
        seen.age(RELAY_GAP_AGE_MAX.as_millis() as i64);
        assert_eq!(seen.gaps().len(), 1);
        seen.age(RELAY_GAP_AGE_MAX.as_millis() as i64 + 1);
        assert!(seen.gaps().is_empty());
    }

    proptest! {
        #[test]
        fn nothing_that_was_not_published_counts_as_published(
            numbers in proptest::collection::hash_set(1_u64..5_000, 0..2_000)
        ) {
            let mut seen = Seen::default();
            for number in &numbers {
                seen.insert(*number, 0);
            }
            prop_assert!(seen.gaps().len() <= RELAY_GAPS_MAX);
            prop_assert!(seen.gaps().windows(2).all(|pair| pair[0].to + 1 < pair[1].from));
            for number in 1..=5_001 {
                prop_assert!(!seen.contains(number) || numbers.contains(&number));
            }
        }

        #[test]
        fn what_was_published_counts_so_while_the_gaps_are_few(
            numbers in proptest::collection::vec(1_u64..200, 0..300)
        ) {
            let mut seen = Seen::default();
            for number in &numbers {
                seen.insert(*number, 0);
            }
            for number in 1..=201 {
                prop_assert_eq!(seen.contains(number), numbers.contains(&number));
            }
        }
    }
}
