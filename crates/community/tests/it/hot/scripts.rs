//! The scripts of lists, step by step: what lies between the steps of a process cannot be timed from outside.

use tidings_backbone::{Redis, redis::Script};

use crate::redis;

const HOUR_MS: i64 = 3_600_000;

/// The list of whom user 1 follows, as a loader and a writer see it.
struct Followings {
    redis: Redis,
    fence_ms: i64,
}

impl Followings {
    async fn new() -> Option<Self> {
        let list = Self { redis: redis::redis()?, fence_ms: 0 };
        assert_eq!(list.read("first", "run1").await[0], "none", "an epoch begins");
        Some(list)
    }

    fn key(&self, suffix: &str) -> String {
        self.redis.key(format_args!("uf:flws:1{suffix}"))
    }

    async fn read(&self, token: &str, run: &str) -> Vec<String> {
        let script = Script::new(include_str!("../../../src/relation/lua/read_list.lua"));
        let call = script.call().key(self.key("")).key(self.key(":load")).key(self.key(":fence"));
        let call = call.key(self.redis.key("uf:epoch")).arg(token).arg(HOUR_MS).arg(10).arg("offset").arg(0).arg("");
        self.redis.call("testing", &call.arg("").arg(run).arg(self.fence_ms)).await.unwrap()
    }

    async fn store(&self, token: &str, changes: i64, epoch: &str) -> bool {
        let script = Script::new(include_str!("../../../src/relation/lua/store_list.lua"));
        let line = [1_700_000_000_000_i64.to_be_bytes(), (*b"\0\0\0\0\0\0\0A")].concat();
        let call = script.call().key(self.key("")).key(self.key(":load")).arg(token).arg(changes).arg(1).arg(epoch);
        self.redis.call("testing", &call.arg(HOUR_MS).arg(line)).await.unwrap()
    }

    async fn fence(&self, ms: i64) {
        let script = Script::new(include_str!("../../../src/relation/lua/fence_lists.lua"));
        let call = script.call().key(self.key("")).key(self.key(":load")).key(self.key(":fence")).arg(ms);
        self.redis.call::<()>("testing", &call).await.unwrap();
    }
}

#[tokio::test]
async fn a_load_that_began_before_a_fence_is_not_kept() {
    let Some(list) = Followings::new().await else { return };
    let load = list.read("early", "run1").await;
    assert_eq!(load[0], "load");
    list.fence(1).await;
    assert!(!list.store("early", 5, &load[1]).await);
    assert_ne!(list.read("later", "run1").await[0], "rows");
}

#[tokio::test]
async fn one_loads_at_a_time_and_what_he_kept_is_read_until_a_fence_ends_it() {
    let Some(list) = Followings::new().await else { return };
    let load = list.read("one", "run1").await;
    assert_eq!(list.read("two", "run1").await, ["none"]);
    assert!(!list.store("two", 5, &load[1]).await, "it is not his turn");
    assert!(list.store("one", 5, &load[1]).await);
    assert_eq!(list.read("three", "run1").await, ["rows", "5", "1", "\0\0\0\0\0\0\0A", "1700000000000"]);
    list.fence(HOUR_MS).await;
    assert_eq!(list.read("four", "run1").await, ["none"], "fenced");
}

#[tokio::test]
async fn what_another_start_of_redis_kept_is_not_read() {
    let Some(mut list) = Followings::new().await else { return };
    let load = list.read("one", "run1").await;
    assert!(list.store("one", 5, &load[1]).await);
    // The same file, read by a Redis that was started anew: fences may have been lost.
    list.fence_ms = HOUR_MS;
    assert_eq!(list.read("two", "run2").await, ["none"]);
    assert_eq!(list.read("three", "run2").await, ["none"], "it waits as long as a fence may stand");
    list.fence_ms = 0;
    assert_eq!(list.read("four", "run2").await[0], "load");
}

#[tokio::test]
async fn a_set_that_lost_its_head_or_a_line_or_gained_one_is_no_list() {
    let Some(list) = Followings::new().await else { return };
    for (command, args) in [
        ("ZREM", &["\0\0\0\0\0\0\0A"][..]),
        ("ZADD", &["1", "\0\0\0\0\0\0\0B"]),
        ("ZREMRANGEBYSCORE", &["+inf", "+inf"]),
        ("ZADD", &["+inf", "=5 7 1 -"]),
        ("DEL", &[]),
    ] {
        let load = list.read("token", "run1").await;
        assert_eq!(load[0], "load", "{command}");
        assert!(list.store("token", 5, &load[1]).await);
        assert_eq!(list.read("token", "run1").await[0], "rows");
        redis::number(&list.redis, command, "uf:flws:1", args).await;
        if command == "DEL" {
            // A cold list into which somebody puts one line.
            redis::number(&list.redis, "ZADD", "uf:flws:1", &["1", "\0\0\0\0\0\0\0B"]).await;
        }
    }
    assert_eq!(list.read("token", "run1").await[0], "load");
    redis::number(&list.redis, "LPUSH", "uf:flws:1", &["not a set"]).await;
    redis::number(&list.redis, "DEL", "uf:flws:1:load", &[]).await;
    assert_eq!(list.read("token", "run1").await[0], "load");
}
