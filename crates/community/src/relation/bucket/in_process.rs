//! Buckets in the memory of this process.
//!
//! A bucket that is dropped from memory is a full one, so housekeeping never refills early.

use std::{
    num::NonZeroU32,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use governor::{
    Quota, RateLimiter, clock::Clock as GovernorClock, middleware::StateInformationMiddleware,
    state::keyed::DashMapStateStore,
};
use tidings_backbone::Clock;
use tidings_event::Timestamp;

use super::{Limited, Options, Taken};
use crate::{UserId, limits};

type Limiter = RateLimiter<UserId, DashMapStateStore<UserId>, BucketClock, StateInformationMiddleware>;

/// Buckets of this process alone.
#[derive(Debug)]
pub struct InProcess {
    limiter: Limiter,
    options: Options,
    /// Number of buckets in memory at which the full ones are dropped.
    tidy_at: AtomicUsize,
}

impl InProcess {
    /// Full buckets for everybody.
    pub fn new(options: Options, clock: Clock) -> Self {
        let refill = options.refill.max(Duration::from_nanos(1));
        let quota = Quota::with_period(refill).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        let quota = quota.allow_burst(options.capacity);
        let limiter = RateLimiter::new(quota, DashMapStateStore::default(), BucketClock::new(clock));
        Self { limiter, options, tidy_at: AtomicUsize::new(limits::FOLLOW_BUCKETS_KEPT_MIN) }
    }

    /// How large the buckets are and how fast they fill.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Takes a token of `user`'s, or says when there will be one.
    pub fn take(&self, user: UserId) -> Result<Taken, Limited> {
        let taken = self.limiter.check_key(&user);
        self.tidy_if_large();
        match taken {
            Ok(state) => Ok(self.options.taken(state.remaining_burst_capacity())),
            Err(not_until) => Err(Limited { retry_after: not_until.wait_time_from(self.limiter.clock().now()) }),
        }
    }

    /// Buckets in memory: those that are not known to be full.
    pub fn len(&self) -> usize {
        self.limiter.len()
    }

    /// Whether no bucket is in memory.
    pub fn is_empty(&self) -> bool {
        self.limiter.is_empty()
    }

    /// Drops the full buckets once their number has doubled since the last time, so that memory
    /// is bounded by who was active within one refill and the cost is spread over the calls.
    fn tidy_if_large(&self) {
        if self.limiter.len() < self.tidy_at.load(Ordering::Relaxed) {
            return;
        }
        self.limiter.retain_recent();
        let kept = self.limiter.len().saturating_mul(2);
        self.tidy_at.store(kept.max(limits::FOLLOW_BUCKETS_KEPT_MIN), Ordering::Relaxed);
    }
}

/// The longest step of the clock that counts: a year.
const STEP_MAX: Duration = Duration::from_secs(31_536_000);

/// Elapsed time as the limiter wants it: it never goes back. A clock that is set back costs the
/// buckets that one step, and they go on filling from there.
#[derive(Debug)]
struct BucketClock {
    clock: Clock,
    elapsed: Mutex<Elapsed>,
}

#[derive(Debug)]
struct Elapsed {
    seen: Timestamp,
    total: Duration,
}

impl BucketClock {
    fn new(clock: Clock) -> Self {
        let elapsed = Mutex::new(Elapsed { seen: clock.now(), total: Duration::ZERO });
        Self { clock, elapsed }
    }
}

impl GovernorClock for BucketClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        let now = self.clock.now();
        let mut elapsed = self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        let step = u64::try_from(now.0.saturating_sub(elapsed.seen.0)).unwrap_or(0);
        // A bucket is full long before, and the limiter counts no further than 584 years.
        elapsed.total += Duration::from_millis(step).min(STEP_MAX);
        elapsed.seen = now;
        elapsed.total
    }
}
