//! A server that is frozen for a while.

use std::time::Duration;

use tidings_testkit::random;

use super::{Togglers, nothing_is_lost_or_doubled, progress};
use crate::world;

#[tokio::test]
async fn a_server_frozen_for_two_seconds_under_load_goes_on_and_nothing_is_lost_or_doubled() {
    let world = world(&[("rate.follow_capacity", "1000000")]).await;
    let mut togglers = Togglers::new(&world, 1..=30, &[], &mut random::generator("freeze")).await;
    let freezes = async |acknowledged: &_| {
        progress(acknowledged, 200).await;
        world.pause();
        // The freeze is what is tested, so it takes its time.
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.resume();
        progress(acknowledged, 200).await;
    };
    togglers.toggle_during(freezes).await;
    togglers.everything_acknowledged_holds().await;
    let users: Vec<u64> = (1..=30).collect();
    nothing_is_lost_or_doubled(&world, &togglers.versions(), &users).await;
}
