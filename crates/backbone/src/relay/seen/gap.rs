//! One entry of what has not come.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Numbers that have not come, between `from` and `to`, which are among them.
///
/// Alone it is one hole. Holes of one length at one distance from each other are one comb, so that a
/// server that gives only every seventh number needs one entry and not one for each row. Where there is no such rule
/// and too many holes, several are joined into a blur: it is known how many numbers in it have come, and not
/// which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first number that has not come.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// Of a comb: how many numbers each hole has. Otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    hole: u64,
    /// Of a comb: from the start of one hole to that of the next. Otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    period: u64,
    /// Of a blur: how many of its numbers have come, and have rows still. Otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    come: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is known of the numbers of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// None has come.
    Hole,
    /// In each period, counted from `from`, the first `hole` numbers have not come, and the others have.
    Comb {
        /// How many numbers a hole has.
        hole: u64,
        /// From the start of one hole to that of the next.
        period: u64,
    },
    /// So many have come, and have rows still.
    Blur {
        /// How many.
        come: u64,
    },
}

impl Gap {
    /// None of these numbers has come; there is one at least.
    pub(super) fn hole(from: u64, to: u64) -> Self {
        Self { from, to, hole: 0, period: 0, come: 0 }
    }

    /// What is known of its numbers.
    pub fn known(&self) -> Known {
        match self {
            Self { come, .. } if *come > 0 => Known::Blur { come: *come },
            Self { hole, period, .. } if *hole > 0 && hole < period => Known::Comb { hole: *hole, period: *period },
            _ => Known::Hole,
        }
    }

    /// Whether it is known that this number of the gap has come.
    pub(super) fn has(&self, number: u64) -> bool {
        match self.known() {
            Known::Comb { hole, period } => (number - self.from) % period >= hole,
            Known::Hole | Known::Blur { .. } => false,
        }
    }

    /// How many numbers in it have come.
    fn come(&self) -> u64 {
        match self.known() {
            Known::Hole => 0,
            Known::Blur { come } => come,
            // It ends with a hole, so there are as many teeth as whole periods.
            Known::Comb { hole, period } => (self.to - self.from) / period * (period - hole),
        }
    }

    /// The hole of a comb, or of a hole alone, in which the number stands.
    fn around(&self, number: u64) -> RangeInclusive<u64> {
        match self.known() {
            Known::Comb { hole, period } => {
                let start = number - (number - self.from) % period;
                start..=start + (hole - 1)
            }
            Known::Hole | Known::Blur { .. } => self.from..=self.to,
        }
    }

    /// The same without what lies outside of the range, whose ends are those of holes; nothing if it is empty.
    fn between(&self, from: u64, to: u64) -> Option<Self> {
        if from > to {
            return None;
        }
        let cut = Self { from, to, ..*self };
        match cut.known() {
            // One hole of a comb is none any more.
            Known::Comb { hole, .. } if to - from < hole => Some(Self::hole(from, to)),
            _ => Some(cut),
        }
    }

    /// What is left when a number of it has come.
    pub(super) fn without(&self, number: u64) -> Vec<Self> {
        if let Known::Blur { come } = self.known() {
            return vec![Self { come: come + 1, ..*self }];
        }
        let hole = self.around(number);
        let (start, end) = (*hole.start(), *hole.end());
        let spacing = self.spacing();
        let low = start.checked_sub(spacing + 1).filter(|_| start > self.from);
        let parts = [
            low.and_then(|to| self.between(self.from, to)),
            (start < number).then(|| Self::hole(start, number - 1)),
            (number < end).then(|| Self::hole(number + 1, end)),
            (end < self.to).then(|| self.between(end + spacing + 1, self.to)).flatten(),
        ];
        parts.into_iter().flatten().collect()
    }

    /// A blur when a row of it is gone; others as they are.
    pub(super) fn less_one(self) -> Self {
        Self { come: self.come.saturating_sub(1), ..self }
    }

    /// How many numbers lie between two holes.
    fn spacing(&self) -> u64 {
        match self.known() {
            Known::Comb { hole, period } => period - hole,
            Known::Hole | Known::Blur { .. } => 0,
        }
    }

    /// What is left of it above a number: all of a blur, of which it is not known what lies below.
    pub(super) fn above(&self, number: u64) -> Option<Self> {
        if number < self.from {
            return Some(*self);
        }
        if number >= self.to {
            return None;
        }
        match self.known() {
            Known::Blur { .. } => Some(*self),
            Known::Hole => Some(Self::hole(number + 1, self.to)),
            Known::Comb { period, .. } => {
                let hole = self.around(number);
                let from = if *hole.end() > number { *hole.start() } else { *hole.start() + period };
                self.between(from, self.to)
            }
        }
    }

    /// This and the next one as one comb, if that says as much as both.
    pub(super) fn comb(&self, next: &Self) -> Option<Self> {
        let of = |gap: &Self| match gap.known() {
            Known::Hole => Some((gap.to - gap.from + 1, None)),
            Known::Comb { hole, period } => Some((hole, Some(period))),
            Known::Blur { .. } => None,
        };
        let ((hole, mine), (its, other)) = (of(self)?, of(next)?);
        let period = hole + (next.from - self.to - 1);
        let fits = |known: Option<u64>| known.is_none_or(|known| known == period);
        (hole == its && fits(mine) && fits(other)).then_some(Self { to: next.to, hole, period, ..*self })
    }

    /// This and the next one as one blur.
    pub(super) fn blur(&self, next: &Self) -> Self {
        let come = self.come() + (next.from - self.to - 1) + next.come();
        Self { come, ..Self::hole(self.from, next.to) }
    }
}
