//! The one clock and the one generator of event ids. Both are passed in; a lint bans the ambient ones.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tidings_event::{EventId, Timestamp};

/// Tells the time. Cheap to clone; clones share their source.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The clock of the machine.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still until [`Clock::advance`] moves it; for tests.
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(start.0))))
    }

    /// The present moment. A machine whose clock stands before 1970 counts as 1970.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
            Source::System => {
                let since_epoch =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Manual(millis) => Timestamp(millis.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock on. A system clock moves by itself; the call changes nothing there.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(millis) = &self.0 {
            millis.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

/// The present moment by the machine's clock, in full resolution: for spans, which a manual [`Clock`] would make
/// as long as nothing.
#[expect(clippy::disallowed_methods, reason = "this is where spans read the machine's clock")]
pub fn moment() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// A running measurement of elapsed time, for metrics. Monotonic, unlike [`Clock`].
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the monotonic clock")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Makes event ids. Cheap to clone; clones share their randomness.
#[derive(Clone, Debug)]
pub struct EventIds(Arc<Mutex<StdRng>>);

impl EventIds {
    /// A generator seeded by the operating system.
    pub fn from_os() -> Self {
        Self::from_rng(rand::make_rng())
    }

    /// A generator with a given source of randomness; a fixed seed makes ids repeatable in tests.
    pub fn from_seed(seed: u64) -> Self {
        Self::from_rng(StdRng::seed_from_u64(seed))
    }

    fn from_rng(rng: StdRng) -> Self {
        Self(Arc::new(Mutex::new(rng)))
    }

    /// A new id for an event that occurred at `at`.
    pub fn next(&self, at: Timestamp) -> EventId {
        let mut random = [0_u8; 10];
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).fill(&mut random);
        EventId::from_parts(at, &random)
    }
}
