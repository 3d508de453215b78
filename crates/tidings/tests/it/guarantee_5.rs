//! Guarantee 5: events of one key are applied in commit order, also after retry. A stale version
//! never overwrites a newer one.

use serde_json::json;

use crate::{database::Hand, embedded};

#[tokio::test]
async fn an_old_event_that_comes_late_never_brings_a_follow_back() {
    let world = embedded(&[]).await;
    world.register(1..=3).await;
    let ada = world.user(1).await;
    ada.follow(2).await;
    ada.unfollow(2).await;
    world.drain().await;
    let late = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key,
                                    version, occurred_at, payload, metadata)
                SELECT randomblob(16), event_type, schema_version, aggregate_type, aggregate_id, event_key,
                       version, occurred_at, payload, metadata
                FROM outbox WHERE event_type = 'relation.followed'";
    assert_eq!(Hand::in_database_of(&world).await.run(late).await, 1);
    world.drain().await;
    assert_eq!(world.followers(2).await, [] as [u64; 0]);
    assert_eq!((world.counters(1).await, world.counters(2).await), ((0, 0), (0, 0)));
    world.verify().await;
    assert_eq!(ada.follow(2).await.version, 3, "and the next change takes the next version");
    world.drain().await;
    assert_eq!(world.followers(2).await, [1]);
}

#[tokio::test]
async fn what_waits_behind_a_failed_event_is_applied_in_order_once_it_works_also_after_a_crash() {
    let world = embedded(&[
        ("projector.retry_attempts", "100000"),
        ("projector.retry_gap_ms", "10"),
        ("projector.retry_gap_max_ms", "20"),
    ])
    .await;
    world.register(1..=9).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id = 7 AND NEW.to_user_id = 1").await;
    let seventh = world.user(7).await;
    // The first fails by itself; the others could be applied, but not before it.
    seventh.follow(1).await;
    world.passed().await;
    seventh.follow(2).await;
    seventh.unfollow(1).await;
    seventh.follow(3).await;
    seventh.follow(1).await;
    seventh.unfollow(2).await;
    for user in 4..=6 {
        world.user(user).await.follow(1).await;
        world.user(user).await.follow(7).await;
    }
    world.passed().await;
    let parked = world.parked().await;
    let [key] = &parked[..] else { panic!("one key is parked: {parked:?}") };
    assert_eq!((&key["key"], &key["state"], &key["waiting"]), (&json!("7"), &json!("retrying"), &json!(6)), "{key}");
    assert!(key["error"].as_str().unwrap().contains("out of order"), "{key}");
    assert_eq!(world.followers(1).await.len(), 3, "other keys went on, also to the same user");
    assert_eq!(world.followers(7).await.len(), 3);
    assert_eq!(world.followers(3).await, [] as [u64; 0]);
    assert_eq!(world.followings(7).await, [1, 3], "his own list is his facts");
    world.verify().await;

    world.kill().await;
    world.start().await;
    assert_eq!(world.parked().await[0]["waiting"], 6);
    hand.admit().await;
    world.drain().await;
    assert_eq!(world.parked().await.len(), 0);
    assert!(world.followers(1).await.contains(&7));
    assert_eq!((world.followers(2).await, world.followers(3).await), (vec![], vec![7]));
    assert_eq!(world.counters(7).await, (2, 3));
    assert_eq!(world.metric("tidings_relation_version_gaps_total").await, 0.0, "none was left out on the way");
    assert_eq!(world.metric("tidings_relation_stale_events_total").await, 0.0, "and none came after a later one");
    world.verify().await;
}
