//! The token bucket that all processes share in Redis.

use std::{num::NonZeroU32, time::Duration};

use proptest::{prelude::*, test_runner::TestRunner};
use tidings_backbone::{
    Clock, Redis,
    redis::{Options as RedisOptions, Script},
};
use tidings_community::relation::bucket::{FollowBucket, Limited, Options};

use crate::{
    redis::{self, number},
    world::{START, block_on, user},
};

const SCRIPT: &str = include_str!("../../src/relation/lua/take_token.lua");
/// Refilling must not show while a test runs.
const SLOW: Options = Options { capacity: NonZeroU32::new(5).unwrap(), refill: Duration::from_secs(1_000) };

fn bucket(redis: &Redis, options: Options) -> FollowBucket {
    FollowBucket::shared(options, Clock::manual(START), redis.clone())
}

#[tokio::test]
async fn two_processes_share_a_bucket_and_each_user_has_his_own() {
    let Some(options) = redis::options() else { return };
    let buckets = [(); 2].map(|()| bucket(&Redis::open(&options).unwrap(), SLOW));
    for taken in 0..5 {
        assert_eq!(buckets[taken % 2].take(user(1)).await.unwrap().remaining, 4 - taken as u32);
    }
    for bucket in &buckets {
        let Limited { retry_after } = bucket.take(user(1)).await.unwrap_err();
        assert!(retry_after <= SLOW.refill && retry_after > SLOW.refill / 2, "{retry_after:?}");
        assert!(bucket.take(user(2)).await.is_ok());
    }
}

#[tokio::test]
async fn many_at_once_get_no_more_than_the_bucket_holds() {
    let Some(options) = redis::options() else { return };
    let buckets = [(); 4].map(|()| bucket(&Redis::open(&options).unwrap(), SLOW));
    let takes = (0..100).map(|index| buckets[index % 4].take(user(1)));
    let taken = futures::future::join_all(takes).await;
    assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 5);
}

#[tokio::test]
async fn it_answers_what_the_bucket_in_process_answers() {
    let Some(redis) = redis::redis() else { return };
    let both = [bucket(&redis, SLOW), FollowBucket::in_process(SLOW, Clock::manual(START))];
    for _ in 0..5 {
        assert_eq!(both[0].take(user(1)).await, both[1].take(user(1)).await);
    }
}

#[tokio::test]
async fn tokens_come_back_on_the_clock_of_redis_in_parts_of_a_second() {
    let Some(redis) = redis::redis() else { return };
    let options = Options { capacity: NonZeroU32::new(2).unwrap(), refill: Duration::from_millis(200) };
    let bucket = bucket(&redis, options);
    while bucket.take(user(1)).await.is_ok() {}
    // The manual clock stands still, so whatever comes back comes by Redis's.
    let Limited { retry_after } = bucket.take(user(1)).await.unwrap_err();
    assert!(retry_after <= Duration::from_millis(200), "{retry_after:?}");
    tokio::time::sleep(retry_after).await;
    assert!(bucket.take(user(1)).await.is_ok());
}

#[tokio::test]
async fn without_redis_a_process_goes_on_with_what_it_let_through_itself() {
    let nowhere = RedisOptions::new("redis://127.0.0.1:1", "");
    let alone = bucket(&Redis::open(&nowhere).unwrap(), SLOW);
    for remaining in (0..5).rev() {
        assert_eq!(alone.take(user(1)).await.unwrap().remaining, remaining);
    }
    assert_eq!(alone.take(user(1)).await, Err(Limited { retry_after: SLOW.refill }));
}

#[tokio::test]
async fn garbage_in_the_place_of_a_bucket_is_a_full_one_and_no_failure() {
    let Some(redis) = redis::redis() else { return };
    let bucket = bucket(&redis, SLOW);
    for (command, value) in [("SETEX", ["1000", "garbage"]), ("HSET", ["a", "b"])] {
        number_or_ok(&redis, command, "bucket:follow:1", &value).await;
        assert!(bucket.take(user(1)).await.is_ok(), "{command}");
    }
}

async fn number_or_ok(redis: &Redis, command: &str, key: &str, args: &[&str]) {
    number(redis, "DEL", key, &[]).await;
    let script = Script::new(&format!("redis.call('{command}', KEYS[1], unpack(ARGV))"));
    let call = args.iter().fold(script.call().key(redis.key(key)), |call, arg| call.arg(*arg));
    redis.call::<()>("testing", &call).await.unwrap();
}

/// A step of the model: time that passes, then a take.
fn steps() -> impl Strategy<Value = Vec<u64>> {
    let pause = prop_oneof![3 => Just(0), 3 => 0..2_000_000_u64, 1 => 0..20_000_000_u64];
    proptest::collection::vec(pause, 1..60)
}

/// A bucket as one would draw it: tokens and parts of tokens, each part a microsecond of refill.
struct Model {
    level_us: u64,
    whole_us: u64,
    refill_us: u64,
}

impl Model {
    fn step(&mut self, pause_us: u64) -> (i64, i64) {
        self.level_us = (self.level_us + pause_us).min(self.whole_us);
        match self.level_us.checked_sub(self.refill_us) {
            Some(left) => {
                self.level_us = left;
                (1, (left / self.refill_us) as i64)
            }
            None => (0, (self.refill_us - self.level_us) as i64),
        }
    }
}

/// The script under a clock that the test moves. Its moments lie in the future, so that no key of the
/// model expires by Redis's own clock.
fn script_with_clock() -> Script {
    let clock = "local real = redis\n\
                 local redis = {call = function(command, ...)\n\
                     if command == 'TIME' then return {ARGV[3], ARGV[4]} end\n\
                     return real.call(command, ...)\n\
                 end}\n";
    Script::new(&format!("{clock}{SCRIPT}"))
}

#[test]
fn any_sequence_of_takes_is_the_models_and_no_bucket_expires_before_it_is_full() {
    let Some(redis) = redis::redis() else { return };
    let script = script_with_clock();
    let take = async |key: &str, options: (u64, u64), now_us: u64| -> (i64, i64) {
        let call = script.call().key(redis.key(key)).arg(options.0).arg(options.1);
        let call = call.arg(now_us / 1_000_000).arg(now_us % 1_000_000);
        redis.call("testing", &call).await.unwrap()
    };
    // One runtime for all cases: the connection lives on it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let strategy = (steps(), 1..8_u64, 1..3_000_000_u64);
    TestRunner::new(ProptestConfig::with_cases(64))
        .run(&strategy, |(steps, capacity, refill_us)| {
            runtime.block_on(async {
                let (whole_us, key) = (capacity * refill_us, redis::uuid());
                let mut model = Model { level_us: whole_us, whole_us, refill_us };
                let mut now_us = 4_000_000_000_000_000;
                for pause in steps {
                    now_us += pause;
                    prop_assert_eq!(take(&key, (refill_us, whole_us), now_us).await, model.step(pause));
                    let full_us = now_us + whole_us - model.level_us;
                    let expires_ms = number(&redis, "PEXPIRETIME", &key, &[]).await as u64;
                    prop_assert_eq!(expires_ms, full_us.div_ceil(1_000));
                }
                Ok(())
            })
        })
        .unwrap();
}

#[test]
fn a_clock_set_back_neither_locks_users_out_nor_refills() {
    let Some(redis) = redis::redis() else { return };
    let script = script_with_clock();
    block_on(async {
        let take = async |second: u64| -> (i64, i64) {
            let call = script.call().key(redis.key("back")).arg(1_000_000).arg(3_000_000).arg(second).arg(0);
            redis.call("testing", &call).await.unwrap()
        };
        for left in [2, 1, 0] {
            assert_eq!(take(4_000_003_600).await, (1, left));
        }
        assert_eq!(take(4_000_000_000).await, (0, 1_000_000));
        assert_eq!(take(4_000_000_001).await, (1, 0));
        assert_eq!(take(4_000_000_001).await, (0, 1_000_000));
    });
}
