//! The token bucket of follows.

use std::{num::NonZeroU32, time::Duration};

use tidings_backbone::Clock;
use tidings_community::{
    limits::FOLLOW_BUCKETS_KEPT_MIN,
    relation::bucket::{InProcess, Limited, Options, Taken},
};

use crate::world::{START, user};

fn bucket() -> (InProcess, Clock) {
    let clock = Clock::manual(START);
    (InProcess::new(Options::default(), clock.clone()), clock)
}

fn drain(bucket: &InProcess, id: i64) -> usize {
    std::iter::from_fn(|| bucket.take(user(id)).ok()).take(1_000).count()
}

#[test]
fn a_hundred_at_once_then_no_more_and_each_user_has_his_own() {
    let (bucket, _clock) = bucket();
    assert_eq!(bucket.take(user(1)), Ok(Taken { remaining: 99, reset_seconds: 1 }));
    assert_eq!(bucket.take(user(1)), Ok(Taken { remaining: 98, reset_seconds: 2 }));
    assert_eq!(drain(&bucket, 1), 98);
    assert_eq!(bucket.take(user(1)), Err(Limited { retry_after: Duration::from_secs(1) }));
    assert_eq!(drain(&bucket, 2), 100);
}

#[test]
fn tokens_come_back_one_a_second_to_the_millisecond() {
    let (bucket, clock) = bucket();
    drain(&bucket, 1);
    clock.advance(Duration::from_millis(999));
    assert_eq!(bucket.take(user(1)), Err(Limited { retry_after: Duration::from_millis(1) }));
    clock.advance(Duration::from_millis(1));
    assert_eq!(bucket.take(user(1)).unwrap().remaining, 0);
    assert_eq!(bucket.take(user(1)), Err(Limited { retry_after: Duration::from_secs(1) }));
    clock.advance(Duration::from_millis(2_500));
    assert_eq!(drain(&bucket, 1), 2);
    assert_eq!(bucket.take(user(1)), Err(Limited { retry_after: Duration::from_millis(500) }));
}

#[test]
fn a_bucket_is_full_after_its_time_and_never_fuller() {
    let (bucket, clock) = bucket();
    drain(&bucket, 1);
    clock.advance(Duration::from_secs(99));
    assert_eq!(drain(&bucket, 1), 99);
    clock.advance(Duration::from_secs(86_400));
    assert_eq!(drain(&bucket, 1), 100);
}

#[test]
fn capacity_and_refill_are_as_configured() {
    let clock = Clock::manual(START);
    let options = Options { capacity: NonZeroU32::new(3).unwrap(), refill: Duration::from_millis(250) };
    let bucket = InProcess::new(options, clock.clone());
    assert_eq!(drain(&bucket, 1), 3);
    assert_eq!(bucket.take(user(1)), Err(Limited { retry_after: Duration::from_millis(250) }));
    clock.advance(Duration::from_millis(500));
    assert_eq!(drain(&bucket, 1), 2);
    assert_eq!(bucket.options(), options);
}

#[test]
fn tidying_memory_never_refills_a_bucket_early() {
    let (bucket, clock) = bucket();
    drain(&bucket, 0);
    clock.advance(Duration::from_secs(40));
    // Far more users than are kept without tidying, all at the same moment.
    for id in 1..=5 * i64::try_from(FOLLOW_BUCKETS_KEPT_MIN).unwrap() {
        bucket.take(user(id)).unwrap();
    }
    assert_eq!(drain(&bucket, 0), 40);
    assert_eq!(drain(&bucket, 7), 99);
}

#[test]
fn memory_holds_only_buckets_that_are_not_full() {
    let (bucket, clock) = bucket();
    for id in 0..100_000 {
        bucket.take(user(id)).unwrap();
        // A token is back after a second, so at most 1,000 buckets are not full at any time.
        clock.advance(Duration::from_millis(1));
        assert!(bucket.len() <= 4 * FOLLOW_BUCKETS_KEPT_MIN, "{} buckets in memory", bucket.len());
    }
}

#[test]
fn a_clock_set_back_neither_locks_users_out_nor_refills() {
    let (bucket, clock) = bucket();
    drain(&bucket, 1);
    set_back(&clock, 3_600_000);
    assert_eq!(bucket.take(user(1)), Err(Limited { retry_after: Duration::from_secs(1) }));
    clock.advance(Duration::from_secs(5));
    assert_eq!(drain(&bucket, 1), 5);
}

#[test]
fn a_clock_set_to_the_end_of_time_fills_the_buckets() {
    let (bucket, clock) = bucket();
    drain(&bucket, 1);
    clock.advance(Duration::from_millis(u64::try_from(i64::MAX - START.0).unwrap()));
    assert_eq!(drain(&bucket, 1), 100);
}

/// A manual clock only advances, but it wraps: twice around its range, short of `ms`.
fn set_back(clock: &Clock, ms: u64) {
    let range = u64::try_from(i64::MAX).unwrap();
    let before = clock.now();
    clock.advance(Duration::from_millis(range));
    clock.advance(Duration::from_millis(range - ms + 2));
    assert_eq!(clock.now().0, before.0 - i64::try_from(ms).unwrap());
}
