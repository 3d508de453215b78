//! Guarantee 8: counters equal their facts. Drift is checked, is a metric and is repaired; a counter
//! is never clamped to hide it.

use crate::{database::Hand, embedded};

#[tokio::test]
async fn a_counter_that_is_deleted_truncated_or_garbage_is_right_at_the_next_read() {
    let world = embedded(&[]).await;
    world.register(1..=8).await;
    for from in 2..=6 {
        world.user(from).await.follow(1).await;
    }
    world.user(1).await.follow(8).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    for damage in [
        "DELETE FROM user_counter WHERE user_id = 1",
        "UPDATE user_counter SET slots = x'' WHERE user_id = 1",
        "UPDATE user_counter SET slots = substr(slots, 1, 19) WHERE user_id = 1",
        "UPDATE user_counter SET slots = slots || x'00' WHERE user_id = 1",
        "UPDATE user_counter SET slots = randomblob(20) WHERE user_id = 1",
        "UPDATE user_counter SET slots = x'ffffffffffffffffffffffffffffffffffffffff' WHERE user_id = 1",
        "UPDATE user_counter SET slots = 'not even a blob' WHERE user_id = 1",
        "UPDATE user_counter SET slots = 7 WHERE user_id = 1",
        "UPDATE user_counter SET checksum = checksum + 1 WHERE user_id = 1",
    ] {
        assert_eq!(hand.run(damage).await, 1, "{damage}");
        assert_eq!(world.counters(1).await, (1, 5), "{damage}");
        let stored = "SELECT COUNT(*) FROM user_counter WHERE user_id = 1 AND typeof(slots) = 'blob'";
        assert_eq!(hand.number(stored).await, 1, "the rebuilt value is kept: {damage}");
        world.verify().await;
    }
}

#[tokio::test]
async fn a_damaged_counter_is_right_after_the_next_event_as_well() {
    let world = embedded(&[]).await;
    world.register(1..=8).await;
    let mut hand = Hand::in_database_of(&world).await;
    for (from, damage) in [
        (2, "SELECT 1"),
        (3, "DELETE FROM user_counter"),
        (4, "UPDATE user_counter SET slots = substr(slots, 1, 7)"),
        (5, "UPDATE user_counter SET slots = randomblob(20)"),
    ] {
        hand.run(damage).await;
        world.user(from).await.follow(1).await;
        world.drain().await;
        // Looked at where no read could have repaired it.
        let stored = "SELECT unhex(substr(hex(slots), 9, 8)) = unhex(printf('%08X',
                          (SELECT COUNT(*) FROM following WHERE to_user_id = 1)))
                      FROM user_counter WHERE user_id = 1";
        assert_eq!(hand.number(stored).await, 1, "{damage}");
    }
    assert_eq!(world.counters(1).await, (0, 4));
}

#[tokio::test]
async fn drift_that_looks_right_is_found_by_sampled_reads_counted_and_repaired() {
    let world = embedded(&[("relation.counter_check_every", "3")]).await;
    world.register(1..=6).await;
    for from in 2..=5 {
        world.user(from).await.follow(1).await;
    }
    world.user(6).await.follow(2).await;
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    // Another user's value: well-formed, with the right checksum, and wrong.
    let swap = "UPDATE user_counter SET (slots, checksum) =
                    (SELECT slots, checksum FROM user_counter WHERE user_id = 2) WHERE user_id = 1";
    assert_eq!(hand.run(swap).await, 1);
    let report = world.output(&["verify"]).await;
    assert!(!report.status.success(), "verify tells by its exit status");
    let mut reads = Vec::new();
    for _ in 0..3 {
        reads.push(world.counters(1).await);
    }
    assert!(reads.contains(&(0, 4)), "one read in three is checked: {reads:?}");
    assert_eq!(world.counters(1).await, (0, 4), "and what it found is stored");
    assert_eq!(world.metric("tidings_counter_drift_total").await, 1.0);
    world.verify().await;
}

#[tokio::test]
async fn a_counter_that_would_fall_below_zero_is_recounted_and_counted_as_drift() {
    let world = embedded(&[("relation.counter_check_every", "0")]).await;
    world.register(1..=6).await;
    for from in 2..=5 {
        world.user(from).await.follow(1).await;
    }
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    // The value of a user who has nothing: one unfollow more would be -1.
    world.user(6).await.follow(2).await;
    world.user(6).await.unfollow(2).await;
    world.drain().await;
    let swap = "UPDATE user_counter SET (slots, checksum) =
                    (SELECT slots, checksum FROM user_counter WHERE user_id = 6) WHERE user_id = 1";
    assert_eq!(hand.run(swap).await, 1);
    world.user(2).await.unfollow(1).await;
    world.drain().await;
    assert_eq!(world.counters(1).await, (0, 3), "not 0, which would hide it");
    assert_eq!(world.metric("tidings_counter_drift_total").await, 1.0);
    world.verify().await;
}
