//! Buckets in Redis: taking a token is one script, on one clock.

use std::time::Duration;

use tidings_backbone::{
    Clock, Redis, Result,
    redis::{Call, Script},
};

use super::{InProcess, Limited, Options, Taken};
use crate::{UserId, telemetry};

/// Buckets that all processes on one Redis share.
#[derive(Debug)]
pub struct Shared {
    redis: Redis,
    take: Script,
    options: Options,
    refill_us: i64,
    whole_us: i64,
    /// For the time without Redis. Tokens are taken here as well, so that nobody finds a full bucket
    /// when Redis goes down.
    alone: InProcess,
}

/// Microseconds that Lua's numbers can count from: some 35 years.
const WHOLE_US_MAX: i64 = 1 << 50;

impl Shared {
    pub(super) fn new(options: Options, clock: Clock, redis: Redis) -> Self {
        let refill_us = micros(options.refill).clamp(1, WHOLE_US_MAX);
        let whole_us = refill_us.saturating_mul(options.capacity.get().into()).min(WHOLE_US_MAX);
        let take = Script::new(include_str!("../lua/take_token.lua"));
        Self { redis, take, options, refill_us, whole_us, alone: InProcess::new(options, clock) }
    }

    pub(super) fn options(&self) -> Options {
        self.options
    }

    pub(super) async fn take(&self, user: UserId) -> Result<Taken, Limited> {
        let alone = self.alone.take(user);
        match self.redis.call::<(i64, i64)>("taking a token", &self.call(user)).await {
            Ok((1, remaining)) => {
                telemetry::bucket("redis");
                Ok(self.options.taken(u32::try_from(remaining).unwrap_or(0)))
            }
            Ok((_, missing_us)) => {
                telemetry::bucket("redis");
                Err(Limited { retry_after: Duration::from_micros(u64::try_from(missing_us).unwrap_or(0)) })
            }
            // Why was said by the connection; here it only costs the other processes' share of the truth.
            Err(_) => {
                telemetry::bucket("alone");
                alone
            }
        }
    }

    fn call(&self, user: UserId) -> Call<'_> {
        self.take
            .call()
            .key(self.redis.key(format_args!("bucket:follow:{user}")))
            .arg(self.refill_us)
            .arg(self.whole_us)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
