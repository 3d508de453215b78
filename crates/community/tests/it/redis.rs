//! A part of the Redis that `TIDINGS_TEST_REDIS` names, for one test.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tidings_backbone::{
    Redis,
    redis::{Options, Script},
};

/// Long enough that a busy machine does not look like a Redis that is down.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether tests with Redis were called off. Without that, one that finds no Redis fails.
fn is_left_out() -> bool {
    let without = std::env::var("TIDINGS_TEST_WITHOUT").unwrap_or_default();
    without.split(',').any(|name| name.trim() == "redis")
}

/// Where keys of one test are, and of no other.
pub(crate) fn options() -> Option<Options> {
    static TESTS: AtomicU64 = AtomicU64::new(0);
    if is_left_out() {
        return None;
    }
    let url = std::env::var("TIDINGS_TEST_REDIS").unwrap_or_else(|_| {
        panic!("TIDINGS_TEST_REDIS is not set: run `scripts/services up redis` and `eval \"$(scripts/services env)\"`")
    });
    let (process, test) = (std::process::id(), TESTS.fetch_add(1, Ordering::SeqCst));
    // A process id comes again; what an earlier one left must not.
    let nonce = uuid();
    Some(Options { call_time_max: PATIENCE, ..Options::new(url, format!("test-{process}-{test}-{nonce}:")) })
}

/// Digits that no other call has.
pub(crate) fn uuid() -> String {
    tidings_backbone::EventIds::from_os().next(tidings_backbone::Clock::system().now()).to_string()
}

pub(crate) fn redis() -> Option<Redis> {
    options().map(|options| Redis::open(&options).unwrap())
}

/// Runs one command behind everybody's back; the first argument is the name of a key.
pub(crate) async fn number(redis: &Redis, command: &str, key: &str, args: &[&str]) -> i64 {
    let script = Script::new(&format!("return redis.call('{command}', KEYS[1], unpack(ARGV))"));
    let call = args.iter().fold(script.call().key(redis.key(key)), |call, arg| call.arg(*arg));
    redis.call("testing", &call).await.unwrap()
}
