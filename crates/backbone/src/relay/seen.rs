//! Which rows of an outbox table were published, told by a number that rises with each insert.
//!
//! Transactions do not commit in the order of their numbers: 7 may come after 9. So the largest number
//! alone does not say what is missing; the numbers below it that have not come are remembered, until
//! they are so old that no open transaction can still hold them.
//!
//! How old they are is told by samples: at that time the largest number was this one, so whatever is missing
//! below it is missing since then at least. Gaps are joined where there are too many, but never over a
//! sample. So each of them grows old and is forgotten in the end, however many there are.

mod gap;

use serde::{Deserialize, Serialize};

pub use self::gap::{Gap, Known};
use crate::limits::{RELAY_GAP_AGE_MAX, RELAY_GAP_SAMPLE_GAP, RELAY_GAPS_MAX};

/// A set of numbers: all up to the largest one, but for the gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The largest number; 0 before there was any.
    pub max: u64,
    /// What has not come below it, in rising order and apart from each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Gap>,
    /// What the largest number was at a time, in epoch milliseconds; both rise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    samples: Vec<(i64, u64)>,
}

impl Seen {
    /// Whether the number was published. Within a blur it says no of one that was; of one that was not it
    /// says yes only if its gap was forgotten for its age.
    pub fn contains(&self, number: u64) -> bool {
        number <= self.max && self.gap_of(number).map_or(true, |at| self.gaps[at].has(number))
    }

    /// What has not come, in rising order.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Adds a number that was published.
    pub fn insert(&mut self, number: u64) {
        if number > self.max {
            if number > self.max + 1 {
                self.gaps.push(Gap::hole(self.max + 1, number - 1));
                self.join(self.gaps.len() - 1, 1);
            }
            self.max = number;
            return;
        }
        let Ok(at) = self.gap_of(number) else { return };
        if self.gaps[at].has(number) {
            return;
        }
        let left = self.gaps[at].without(number);
        let count = left.len();
        self.gaps.splice(at..=at, left);
        self.join(at, count);
    }

    /// Notes that the row with a number is gone, so that those left can be counted.
    pub fn remove(&mut self, number: u64) {
        if let Some(at) = self.gap_of(number).ok().filter(|_| number <= self.max) {
            self.gaps[at] = self.gaps[at].less_one();
        }
    }

    /// Takes it that no number of the blurs in a range has come: they are read again, all of them.
    pub(super) fn forget(&mut self, from: u64, to: u64) {
        let is_blur = |gap: &Gap| matches!(gap.known(), Known::Blur { .. });
        for gap in self.gaps.iter_mut().filter(|gap| gap.from <= to && gap.to >= from && is_blur(gap)) {
            *gap = Gap::hole(gap.from, gap.to);
        }
    }

    /// Forgets gaps that are older than any transaction may be: the numbers were rolled back. `now_ms` is how
    /// far the reading has come, in epoch milliseconds.
    pub fn age(&mut self, now_ms: i64) {
        let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let oldest = now_ms.saturating_sub(millis(RELAY_GAP_AGE_MAX));
        // A clock that was ahead and is right again must not keep gaps for as long.
        self.samples.retain(|(at, _)| at.saturating_sub(now_ms) <= millis(RELAY_GAP_AGE_MAX));
        let old = self.samples.iter().take_while(|(at, _)| *at <= oldest).count();
        if let Some((_, max)) = self.samples.drain(..old).next_back() {
            self.gaps = self.gaps.iter().filter_map(|gap| gap.above(max)).collect();
        }
        let is_due =
            |(at, max): &(i64, u64)| *max < self.max && now_ms.saturating_sub(*at) >= millis(RELAY_GAP_SAMPLE_GAP);
        if !self.gaps.is_empty() && self.samples.last().is_none_or(is_due) {
            self.samples.push((now_ms, self.max));
        }
    }

    fn gap_of(&self, number: u64) -> Result<usize, usize> {
        self.gaps.binary_search_by(|gap| match () {
            () if gap.to < number => std::cmp::Ordering::Less,
            () if gap.from > number => std::cmp::Ordering::Greater,
            () => std::cmp::Ordering::Equal,
        })
    }

    /// Makes combs of the gaps at a place and of their neighbours, then blurs of those that are nearest to
    /// each other, as long as there are too many.
    fn join(&mut self, at: usize, count: usize) {
        let (mut left, mut right) = (at.saturating_sub(1), at + count);
        while left < right.min(self.gaps.len().saturating_sub(1)) {
            match self.gaps[left].comb(&self.gaps[left + 1]) {
                Some(comb) => {
                    self.replace_two(left, comb);
                    right -= 1;
                    // It may fit the one before now.
                    left = left.saturating_sub(1);
                }
                None => left += 1,
            }
        }
        while self.gaps.len() > RELAY_GAPS_MAX {
            let distance = |at: &usize| self.gaps[at + 1].from - self.gaps[*at].to;
            let may_join = |at: &usize| !self.is_parted(self.gaps[*at].from, self.gaps[at + 1].to);
            let nearest = (0..self.gaps.len() - 1).filter(may_join).min_by_key(distance);
            // Samples are far fewer than gaps may be, so there are two between the same ones.
            let Some(at) = nearest else { return };
            let blur = self.gaps[at].blur(&self.gaps[at + 1]);
            self.replace_two(at, blur);
        }
    }

    fn replace_two(&mut self, at: usize, one: Gap) {
        self.gaps.remove(at + 1);
        self.gaps[at] = one;
    }

    /// Whether a sample lies between two numbers.
    fn is_parted(&self, from: u64, to: u64) -> bool {
        let first = self.samples.partition_point(|(_, max)| *max < from);
        self.samples.get(first).is_some_and(|(_, max)| *max < to)
    }
}

#[cfg(test)]
mod tests;
