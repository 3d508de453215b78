//! How fast the tasks of a generation may go: a rebuild leaves room for those whom the live one serves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The pace of each task of a generation. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace(Arc<AtomicU64>);

/// As fast as it can.
const FREE: u64 = 0;
/// Not at all.
const HALTED: u64 = u64::MAX;
/// Batches that a second is cut into, so that a slow pace is an even one.
const BATCHES_PER_SECOND: u64 = 4;

impl Pace {
    pub(super) fn free(&self) {
        self.0.store(FREE, Ordering::SeqCst);
    }

    pub(super) fn halt(&self) {
        self.0.store(HALTED, Ordering::SeqCst);
    }

    /// At most so many events a second, divided among `parts` tasks.
    pub(super) fn limit(&self, events_per_second: u64, parts: usize) {
        self.0.store((events_per_second / parts.max(1) as u64).max(1), Ordering::SeqCst);
    }

    pub(super) fn is_halted(&self) -> bool {
        self.0.load(Ordering::SeqCst) == HALTED
    }

    /// Events of the next batch, of which `most` may be.
    pub(super) fn batch_events_max(&self, most: usize) -> usize {
        match self.0.load(Ordering::SeqCst) {
            FREE | HALTED => most,
            limit => most.min(usize::try_from(limit.div_ceil(BATCHES_PER_SECOND)).unwrap_or(most)),
        }
    }

    /// How long to wait after a batch that took `seconds`; `None` where nothing holds it back.
    pub(super) fn rest(&self, events: usize, seconds: f64) -> Option<Duration> {
        match self.0.load(Ordering::SeqCst) {
            FREE | HALTED => None,
            limit => Duration::try_from_secs_f64(events as f64 / limit as f64 - seconds).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_divides_a_second_and_waits_for_the_rest_of_it() {
        let pace = Pace::default();
        assert_eq!((pace.batch_events_max(1_024), pace.rest(500, 0.1)), (1_024, None));
        pace.limit(400, 2);
        assert_eq!(pace.batch_events_max(1_024), 50);
        assert_eq!(pace.rest(50, 0.05), Some(Duration::from_millis(200)));
        assert_eq!(pace.rest(50, 3.0), None);
        pace.limit(1, 12);
        assert_eq!(pace.batch_events_max(1_024), 1);
        pace.halt();
        assert!(pace.is_halted());
    }
}
