//! Parts that end and begin again.

use futures::future::join;

use crate::World;

/// Room for more than a hundred follows.
pub const SETTINGS: &[(&str, &str)] = super::NO_RATE_LIMIT;

/// Facts, events, lists and counters are not the process's.
pub async fn everything_acknowledged_is_there_after_an_orderly_restart(world: &World) {
    world.register(1..=20).await;
    let ada = world.user(1).await;
    for to in 2..=20 {
        ada.follow(to).await;
    }
    let events = world.events(0).await;
    world.restart().await;
    assert_eq!(world.events(0).await, events);
    assert_eq!(world.followings(1).await.len(), 19);
    world.drain().await;
    assert_eq!((world.counters(1).await, world.counters(20).await), ((19, 0), (0, 1)));
    world.verify().await;
}

/// A request that meets a frozen part waits, and is served once.
pub async fn a_frozen_part_goes_on_where_it_was(world: &World) {
    world.register(1..=3).await;
    let ada = world.user(1).await;
    ada.follow(2).await;
    for part in world.capabilities().parts {
        world.pause_part(*part);
        // The first is on its way when the part goes on; nothing tells the second from it.
        let (followed, ()) = join(ada.follow(3), async { world.resume_part(*part) }).await;
        assert!(followed.changed);
        ada.unfollow(3).await;
    }
    world.drain().await;
    assert_eq!(world.counters(1).await, (1, 0));
    world.verify().await;
}
