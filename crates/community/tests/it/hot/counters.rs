//! Counters: believed for a moment, rebuilt from the database.

use std::time::Duration;

use tidings_backbone::redis::Script;
use tidings_community::relation::{counters::Counters, hot::Options};

use super::{HotWorld, QUICK};
use crate::{
    redis,
    world::{follow, user},
};

const BELIEVING: Options = Options { counters_time: Duration::from_secs(600), ..QUICK };

/// User 1 has the followers 2 to 6.
async fn world(options: Options) -> Option<HotWorld> {
    let hot = HotWorld::new(20, options).await?;
    hot.decide(&(2..=6).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
    hot.drain().await;
    Some(hot)
}

async fn followers(hot: &HotWorld) -> u32 {
    hot.counters.read(user(1)).await.unwrap().unwrap().followers
}

/// Changes the database's number behind everybody's back, so that an answer from Redis can be told.
async fn falsify(hot: &HotWorld) {
    let (slots, checksum) = Counters { followers: 77, ..Counters::default() }.encode();
    let args = vec![slots.to_vec().into(), i64::from(checksum).into()];
    hot.world.tamper("UPDATE user_counter SET slots = ?, checksum = ? WHERE user_id = 1", args).await;
}

#[tokio::test]
async fn a_counter_is_believed_for_its_time_and_then_asked_for() {
    let Some(hot) = world(BELIEVING).await else { return };
    assert_eq!(followers(&hot).await, 5);
    assert_eq!(hot.number("STRLEN", "ucnt:1").await, 40);
    falsify(&hot).await;
    assert_eq!(followers(&hot).await, 5, "from Redis");
    let later = HotWorld::at(hot.world, hot.at, Options { counters_time: Duration::ZERO, ..QUICK });
    assert_eq!(followers(&later).await, 77, "from the database");
}

#[tokio::test]
async fn a_commit_of_the_projector_moves_counters_on_and_does_not_prolong_their_time() {
    let Some(hot) = world(BELIEVING).await else { return };
    followers(&hot).await;
    let asked_at = asked_at(&hot).await;
    hot.decide(&[follow(7, 1), follow(1, 7)]).await;
    hot.drain().await;
    assert_eq!(self::asked_at(&hot).await, asked_at);
    falsify(&hot).await;
    let counters = hot.counters.read(user(1)).await.unwrap().unwrap();
    assert_eq!((counters.followers, counters.followings), (6, 1), "from Redis");
    assert_eq!(hot.number("EXISTS", "ucnt:7").await, 0, "nobody asked for him");
}

async fn asked_at(hot: &HotWorld) -> Vec<u8> {
    let script = Script::new("return redis.call('GETRANGE', KEYS[1], 32, 39)");
    hot.redis.call("testing", &script.call().key(hot.redis.key("ucnt:1"))).await.unwrap()
}

#[tokio::test]
async fn a_value_that_is_deleted_truncated_or_garbage_is_rebuilt_at_the_next_read() {
    let Some(hot) = world(BELIEVING).await else { return };
    for damage in [
        "redis.call('DEL', KEYS[1])",
        "redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], 0, 20))",
        "redis.call('SET', KEYS[1], 'garbage')",
        "redis.call('SETRANGE', KEYS[1], 4, 'garb')",
        "redis.call('SETRANGE', KEYS[1], 32, '\\127garbage')",
        "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'a', 'b')",
    ] {
        assert_eq!(followers(&hot).await, 5);
        let script = Script::new(damage);
        hot.redis.call::<()>("testing", &script.call().key(hot.redis.key("ucnt:1"))).await.unwrap();
        assert_eq!(followers(&hot).await, 5, "{damage}");
        assert_eq!(hot.number("STRLEN", "ucnt:1").await, 40, "{damage}");
    }
}

#[tokio::test]
async fn an_older_value_never_takes_the_place_of_a_newer_one() {
    let Some(redis) = redis::redis() else { return };
    let store = Script::new(include_str!("../../../src/relation/lua/store_counters.lua"));
    let value = |changes: u64, number: u8| [&[number; 20][..], &changes.to_be_bytes(), &[0; 12]].concat();
    let put = async |changes: u64, number: u8| {
        let call = store.call().key(redis.key("ucnt:1")).arg(value(changes, number)).arg(changes).arg(10_000);
        redis.call::<()>("testing", &call).await.unwrap();
        redis::number(&redis, "GETRANGE", "ucnt:1", &["0", "0"]).await
    };
    assert_eq!(put(1_700_000_000_005, b'5').await, 5);
    assert_eq!(put(1_700_000_000_004, b'4').await, 5);
    assert_eq!(put(1_700_000_000_005, b'6').await, 6, "repaired: other counters at the same number");
    assert_eq!(put(1_700_000_000_006, b'7').await, 7);
}

#[tokio::test]
async fn a_read_that_checks_goes_past_redis_and_repairs_both() {
    let Some(hot) = world(BELIEVING).await else { return };
    falsify(&hot).await;
    assert_eq!(followers(&hot).await, 77, "drift is kept like anything else");
    let every = std::num::NonZeroU32::MIN;
    let cache = tidings_community::relation::hot::Hot::with_options(
        hot.redis.clone(),
        tidings_backbone::EventIds::from_os(),
        BELIEVING,
    );
    let checking = tidings_community::relation::counters::CounterReader::checking_every(hot.world.db.clone(), every);
    assert_eq!(checking.with_cache(cache).read(user(1)).await.unwrap().unwrap().followers, 5);
    assert_eq!(followers(&hot).await, 5, "from Redis");
}
