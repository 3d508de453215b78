//! The straight path.

use tidings_backbone::relay::FirstStart;

use super::world::{Collector, World, insert, on_both};

on_both!(
    committed_events_come_once_in_order_and_rolled_back_ones_do_not,
    events_before_the_first_start_come_too,
    a_first_start_with_the_latest_leaves_out_what_was_there_and_nothing_else,
    a_restart_goes_on_behind_the_checkpoint,
    a_transaction_larger_than_a_batch_comes_in_pieces_and_goes_on_after_a_crash_in_its_middle;
    mariadb: a_transaction_of_two_hundred_thousand_events_comes_in_batches_of_bounded_size,
);

async fn committed_events_come_once_in_order_and_rolled_back_ones_do_not(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    world.emit(0..10).await;
    world.sql("BEGIN").await;
    world.emit(100..200).await;
    world.sql("ROLLBACK").await;
    world.emit([10]).await;
    relay.until(11).await;
    assert_eq!(relay.numbers(), (0..11).collect::<Vec<_>>());
}

async fn events_before_the_first_start_come_too(mut world: World) {
    world.emit(0..2_500).await;
    let mut relay = world.collect(None);
    relay.until(1).await;
    world.emit(2_500..2_510).await;
    relay.until(2_510).await;
    assert_eq!(relay.numbers(), (0..2_510).collect::<Vec<_>>());
    world.emit([2_510]).await;
    relay.until_checkpoint(|checkpoint| checkpoint.recovery.is_none()).await;
    relay.until(2_511).await;
    assert_eq!(relay.numbers(), (0..2_511).collect::<Vec<_>>());
}

async fn a_restart_goes_on_behind_the_checkpoint(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    let (mut next, mut seen) = (0, Vec::new());
    for round in 0..10 {
        for _ in 0..round {
            world.emit(next..next + 3).await;
            next += 3;
        }
        // Some rounds end in the middle of what there is.
        if round % 2 == 0 {
            relay.until(if round > 0 { 1 } else { 0 }).await;
        }
        seen.extend(relay.numbers());
        relay = relay.restarted();
    }
    relay.until(next as usize - seen.len()).await;
    seen.extend(relay.numbers());
    assert_eq!(seen, (0..next).collect::<Vec<_>>());
}

async fn a_transaction_larger_than_a_batch_comes_in_pieces_and_goes_on_after_a_crash_in_its_middle(mut world: World) {
    let mut options = world.options();
    options.batch_records_max = 100;
    let mut relay = Collector::start(options.clone(), None);
    relay.started().await;
    world.emit([0]).await;
    world.sql("BEGIN").await;
    for start in (1..1_001).step_by(50) {
        world.sql(insert(start..start + 50)).await;
    }
    world.sql("COMMIT").await;
    world.sql("BEGIN").await;
    world.emit(5_000..6_000).await;
    world.sql("ROLLBACK").await;
    world.emit(1_001..1_011).await;
    let mut seen = Vec::new();
    loop {
        // Each batch is followed by a crash.
        relay.step().await;
        assert!(relay.largest_batch <= 700, "{}", relay.largest_batch);
        seen.extend(relay.numbers());
        if seen.len() >= 1_011 {
            break;
        }
        relay = relay.restarted();
    }
    assert_eq!(seen, (0..1_011).collect::<Vec<_>>());
}

async fn a_transaction_of_two_hundred_thousand_events_comes_in_batches_of_bounded_size(mut world: World) {
    let mut relay = world.collect(None);
    relay.started().await;
    world.sql("BEGIN").await;
    for start in (0..200_000).step_by(2_000) {
        world.emit(start..start + 2_000).await;
    }
    world.sql("COMMIT").await;
    world.emit([200_000]).await;
    let mut next = 0;
    while next <= 200_000 {
        relay.step().await;
        let numbers = relay.numbers();
        assert!(numbers.len() < 10_000, "{}", numbers.len());
        assert!(numbers.iter().copied().eq(next..next + numbers.len() as u64));
        next += numbers.len() as u64;
        relay.records.clear();
    }
}

async fn a_first_start_with_the_latest_leaves_out_what_was_there_and_nothing_else(mut world: World) {
    world.emit(0..10).await;
    let mut options = world.options();
    options.first_start = FirstStart::Latest;
    let mut relay = Collector::start(options, None);
    relay.started().await;
    world.emit(10..15).await;
    relay.until(5).await;
    let mut relay = relay.restarted();
    world.emit([15]).await;
    relay.until(1).await;
    assert_eq!(relay.numbers(), [15]);
}
