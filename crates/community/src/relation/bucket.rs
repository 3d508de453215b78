//! The rate limit of follows: a token bucket for each user.
//!
//! In process where one process takes all requests; in Redis where several do, so that they share the
//! buckets. While Redis is down each process goes on with buckets of its own, which know what it has
//! let through before: nobody is refused because of Redis, and a user may get at most one bucket more
//! for each further process.

mod in_process;
mod shared;

use std::{num::NonZeroU32, time::Duration};

use tidings_backbone::{Clock, Redis};

pub use in_process::InProcess;
pub use shared::Shared;

use crate::{UserId, limits};

/// How large a bucket is and how fast it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tokens a full bucket holds.
    pub capacity: NonZeroU32,
    /// Time in which one token is given back; not zero.
    pub refill: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let capacity = NonZeroU32::new(limits::FOLLOW_BUCKET_CAPACITY).unwrap_or(NonZeroU32::MIN);
        Self { capacity, refill: limits::FOLLOW_BUCKET_REFILL }
    }
}

/// A token was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Tokens left now.
    pub remaining: u32,
    /// Whole seconds, rounded up, until the bucket is full again if nothing more is taken.
    pub reset_seconds: u64,
}

/// The bucket is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Time until the next token; a `Retry-After` in seconds rounds it up.
    pub retry_after: Duration,
}

/// The buckets of all users.
#[derive(Debug)]
pub enum FollowBucket {
    /// Of this process alone.
    InProcess(InProcess),
    /// Of all processes on one Redis.
    Shared(Shared),
}

impl FollowBucket {
    /// Full buckets for everybody, in this process.
    pub fn in_process(options: Options, clock: Clock) -> Self {
        Self::InProcess(InProcess::new(options, clock))
    }

    /// Buckets that all processes on `redis` share. `clock` is for the time without Redis.
    pub fn shared(options: Options, clock: Clock, redis: Redis) -> Self {
        Self::Shared(Shared::new(options, clock, redis))
    }

    /// How large the buckets are and how fast they fill.
    pub fn options(&self) -> Options {
        match self {
            Self::InProcess(buckets) => buckets.options(),
            Self::Shared(buckets) => buckets.options(),
        }
    }

    /// Takes a token of `user`'s, or says when there will be one.
    pub async fn take(&self, user: UserId) -> Result<Taken, Limited> {
        match self {
            Self::InProcess(buckets) => buckets.take(user),
            Self::Shared(buckets) => buckets.take(user).await,
        }
    }
}

impl Options {
    /// What is told when a token was taken and so many are left.
    fn taken(&self, remaining: u32) -> Taken {
        let missing = self.capacity.get().saturating_sub(remaining);
        Taken { remaining, reset_seconds: seconds_up(self.refill.saturating_mul(missing)) }
    }
}

fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
