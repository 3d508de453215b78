//! The token bucket.

use std::time::Duration;

use tokio::time::Instant;

use crate::{World, model::Change};

/// The default: 100 at once, one a second.
pub const SETTINGS: &[(&str, &str)] = &[];

/// A hundred at once, then 429 with the time to wait, which is the truth. Nothing is dropped in silence.
pub async fn the_bucket_holds_its_capacity_and_says_when_to_retry(world: &World) {
    world.register(1..=2).await;
    let ada = world.user(1).await;
    let begun = Instant::now();
    let mut taken = 0;
    let limited = loop {
        let change = if taken % 2 == 0 { Change::Follow } else { Change::Unfollow };
        let answer = ada.change(change, 2).await;
        assert_eq!(answer.header("ratelimit-policy"), "\"follow\";q=100;w=100");
        if answer.status == 429 {
            break answer;
        }
        assert!(answer.outcome().changed);
        assert!(answer.header("ratelimit").starts_with("\"follow\";r="), "{}", answer.header("ratelimit"));
        taken += 1;
    };
    let refilled = begun.elapsed().as_secs() + 1;
    assert!((100..=100 + refilled).contains(&taken), "{taken} of 100 and {refilled}");
    limited.is_problem(429, "rate-limited");
    assert!(limited.header("ratelimit").starts_with("\"follow\";r=0;t="), "{}", limited.header("ratelimit"));
    let retry_after: u64 = limited.header("retry-after").parse().unwrap();
    assert_eq!(retry_after, 1, "tokens come back one a second");
    let events = world.events(0).await.split_off(2);
    assert_eq!(events.len() as u64, taken, "what was refused left no event");

    tokio::time::sleep(Duration::from_secs(retry_after)).await;
    let change = if taken % 2 == 0 { Change::Follow } else { Change::Unfollow };
    assert!(ada.change(change, 2).await.outcome().changed, "it was worth waiting");
}

/// Who has spent his own leaves those of others alone; reading costs nothing.
pub async fn each_user_has_a_bucket_of_his_own(world: &World) {
    world.register(1..=3).await;
    let (ada, bob) = (world.user(1).await, world.user(2).await);
    // What is refused for another reason took a token as well.
    while ada.change(Change::Follow, 1).await.status != 429 {}
    let first = bob.change(Change::Follow, 3).await;
    assert_eq!((first.status, first.header("ratelimit")), (200, "\"follow\";r=99;t=1"));
    assert_eq!(ada.get("/v1/me/relations?ids=2").await.status, 200);
}
