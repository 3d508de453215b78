//! The connection to Redis: scripts by their digest, and a Redis that is away costs nobody his time.

use std::{sync::Arc, time::Duration};

use tidings_backbone::{
    Error, EventIds, Redis,
    clock::{Clock, Stopwatch},
    redis::{Options, Script},
};
use tokio::net::TcpListener;

/// A call may take this long here, and a refusal a small part of it.
const CALL_TIME: Duration = Duration::from_millis(500);

fn server() -> Option<Options> {
    let without = std::env::var("TIDINGS_TEST_WITHOUT").unwrap_or_default();
    if without.split(',').any(|name| name.trim() == "redis") {
        return None;
    }
    let url = std::env::var("TIDINGS_TEST_REDIS").unwrap_or_else(|_| {
        panic!("TIDINGS_TEST_REDIS is not set: run `scripts/services up redis` and `eval \"$(scripts/services env)\"`")
    });
    let nonce = EventIds::from_os().next(Clock::system().now());
    Some(Options { call_time_max: Duration::from_secs(10), ..Options::new(url, format!("test-{nonce}:")) })
}

async fn echo(redis: &Redis, text: &str) -> Result<String, Error> {
    let script = Script::new("return ARGV[1]");
    redis.call("testing", &script.call().arg(text)).await
}

#[tokio::test]
async fn a_script_that_redis_has_forgotten_is_sent_again() {
    let Some(options) = server() else { return };
    let redis = Redis::open(&options).unwrap();
    let script = Script::new(&format!("return '{}' .. ARGV[1]", options.key_prefix));
    for round in ["1", "2"] {
        let answer: String = redis.call("testing", &script.call().arg(round)).await.unwrap();
        assert_eq!(answer, format!("{}{round}", options.key_prefix));
        // Another test's scripts are forgotten as well, and sent again as well.
        let mut other =
            ::redis::Client::open(options.url.as_str()).unwrap().get_multiplexed_async_connection().await.unwrap();
        let _: () = ::redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut other).await.unwrap();
    }
}

#[tokio::test]
async fn keys_have_their_prefix_and_clones_share_a_server() {
    let Some(options) = server() else { return };
    let redis = Redis::open(&options).unwrap();
    assert_eq!(redis.key(format_args!("thing:{}", 5)), format!("{}thing:5", options.key_prefix));
    let (one, two) = (redis.server().await.unwrap(), redis.clone().server().await.unwrap());
    assert_eq!(one.run_id().len(), 40);
    assert_eq!(one.run_id(), two.run_id());
}

#[tokio::test]
async fn a_script_that_fails_takes_nothing_else_with_it() {
    let Some(options) = server() else { return };
    let redis = Redis::open(&options).unwrap();
    let script = Script::new("return redis.call('HGET', KEYS[1])");
    let failed: Result<String, Error> = redis.call("testing", &script.call().key(redis.key("thing"))).await;
    assert!(matches!(failed, Err(Error::Redis { doing: "testing", .. })), "{failed:?}");
    assert_eq!(echo(&redis, "still there").await.unwrap(), "still there");
}

#[tokio::test]
async fn where_nobody_listens_it_is_down_and_says_so_at_once() {
    let options = Options { call_time_max: CALL_TIME, ..Options::new("redis://127.0.0.1:1", "") };
    let redis = Redis::open(&options).unwrap();
    assert!(matches!(echo(&redis, "first").await, Err(Error::RedisDown)));
    let stopwatch = Stopwatch::start();
    for _ in 0..1_000 {
        assert!(matches!(echo(&redis, "later").await, Err(Error::RedisDown)));
    }
    assert!(stopwatch.seconds() < CALL_TIME.as_secs_f64(), "a thousand refusals took {} s", stopwatch.seconds());
}

#[tokio::test]
async fn a_server_that_takes_connections_and_says_nothing_costs_one_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let redis = Redis::open(&Options { call_time_max: CALL_TIME, ..Options::new(url, "") }).unwrap();
    let waiting = (0..100).map(|_| echo(&redis, "first"));
    let stopwatch = Stopwatch::start();
    let answers = futures::future::join_all(waiting).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(Error::RedisDown))));
    assert!(stopwatch.seconds() < 10.0 * CALL_TIME.as_secs_f64(), "{} s", stopwatch.seconds());
    let stopwatch = Stopwatch::start();
    assert!(matches!(echo(&redis, "later").await, Err(Error::RedisDown)));
    assert!(stopwatch.seconds() < CALL_TIME.as_secs_f64());
}

#[tokio::test]
async fn it_is_found_again_when_it_comes_back() {
    let Some(options) = server() else { return };
    let target = options.url.trim_start_matches("redis://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let redis = Redis::open(&Options { url: format!("redis://{address}"), ..options }).unwrap();
    let proxy = tokio::spawn(pass_on(listener, target.clone()));
    assert_eq!(echo(&redis, "there").await.unwrap(), "there");
    // The proxy ends with its connections; whoever asks now learns it, and nobody waits.
    proxy.abort();
    while echo(&redis, "going").await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(echo(&redis, "gone").await, Err(Error::RedisDown)));
    tokio::spawn(pass_on(TcpListener::bind(address).await.unwrap(), target));
    while echo(&redis, "coming").await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Passes connections on until it is aborted.
async fn pass_on(listener: TcpListener, target: String) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (mut from, _) = listener.accept().await.unwrap();
        let mut to = tokio::net::TcpStream::connect(&target).await.unwrap();
        connections.spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
    }
}

#[tokio::test]
async fn one_call_too_many_is_refused_and_not_queued() {
    let Some(options) = server() else { return };
    let redis = Redis::open(&Options { calls_max: 3, ..options }).unwrap();
    echo(&redis, "connected").await.unwrap();
    let answers = futures::future::join_all((0..10).map(|_| echo(&redis, "at once"))).await;
    let refused = answers.iter().filter(|answer| matches!(answer, Err(Error::LimitExceeded { limit: 3, .. }))).count();
    assert_eq!((refused, answers.iter().filter(|answer| answer.is_ok()).count()), (7, 3));
    assert!(echo(&redis, "after").await.is_ok());
}

#[test]
fn an_address_is_checked_at_once_and_never_shown() {
    assert!(Redis::open(&Options::new("mysql://a", "")).is_err());
    let options = Options::new("redis://:hunter2@a:1/0", "p:");
    let redis = Arc::new(Redis::open(&options).unwrap());
    assert!(!format!("{options:?}").contains("hunter2"));
    assert!(!format!("{redis:?}").contains("hunter2"), "{redis:?}");
}
