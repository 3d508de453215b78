//! Counters as they are read: repaired when lost, damaged or found to differ.

use std::num::NonZeroU32;

use tidings_backbone::db::Value;
use tidings_community::relation::counters::{CounterReader, Counters};

use crate::world::{World, follow, unfollow, user};

const EXPECTED: Counters = Counters { followings: 1, followers: 2, posts: 0, likes_received: 0, favorites_received: 0 };

/// User 1 follows one and is followed by two.
async fn world() -> World {
    let world = World::new(5).await;
    world.decide(&[follow(1, 2), follow(2, 1), follow(3, 1), follow(4, 1), unfollow(4, 1)]).await;
    world.drain().await;
    world
}

fn every(world: &World, reads: u32) -> CounterReader {
    CounterReader::checking_every(world.db.clone(), NonZeroU32::new(reads).unwrap())
}

async fn read(world: &World, id: i64) -> Option<Counters> {
    CounterReader::new(world.db.clone()).read(user(id)).await.unwrap()
}

async fn set(world: &World, slots: Vec<u8>, checksum: i64) {
    let args: Vec<Value> = vec![slots.into(), checksum.into()];
    let changed = world.tamper("UPDATE user_counter SET slots = ?, checksum = ? WHERE user_id = 1", args).await;
    assert_eq!(changed, 1);
}

#[tokio::test]
async fn counters_follow_the_events() {
    assert_eq!(read(&world().await, 1).await, Some(EXPECTED));
}

#[tokio::test]
async fn a_lost_value_is_rebuilt_and_stored_by_the_next_read() {
    let world = world().await;
    world.tamper("DELETE FROM user_counter WHERE user_id = 1", vec![]).await;
    assert_eq!(world.verify().await.total(), 1);
    assert_eq!(read(&world, 1).await, Some(EXPECTED));
    assert!(world.verify().await.is_clean());
}

#[tokio::test]
async fn a_damaged_value_is_rebuilt_and_stored_by_the_next_read() {
    let world = world().await;
    let (good, checksum) = EXPECTED.encode();
    let checksum = i64::from(checksum);
    let truncated = good[..13].to_vec();
    let too_long = [&good[..], &[0]].concat();
    let mut flipped = good.to_vec();
    flipped[7] ^= 0x40;
    for (slots, checksum) in [
        (truncated, checksum),
        (too_long, checksum),
        (flipped, checksum),
        (good.to_vec(), checksum ^ 1),
        (good.to_vec(), -1),
        (Vec::new(), 0),
        (b"garbage".to_vec(), 12_345),
        (vec![0xff; 20], checksum),
    ] {
        set(&world, slots.clone(), checksum).await;
        assert_eq!(world.verify().await.total(), 1, "{slots:?}");
        assert_eq!(read(&world, 1).await, Some(EXPECTED), "{slots:?}");
        assert!(world.verify().await.is_clean(), "{slots:?}");
    }
}

#[tokio::test]
async fn a_value_of_another_type_is_rebuilt_as_well() {
    let world = world().await;
    for damage in ["slots = 'text'", "slots = 17", "slots = ''"] {
        world.tamper(&format!("UPDATE user_counter SET {damage} WHERE user_id = 1"), vec![]).await;
        assert_eq!(read(&world, 1).await, Some(EXPECTED), "{damage}");
    }
}

#[tokio::test]
async fn one_read_in_so_many_notices_drift_and_repairs_it() {
    let world = world().await;
    let wrong = Counters { followers: 9, ..EXPECTED };
    let (slots, checksum) = wrong.encode();
    set(&world, slots.to_vec(), i64::from(checksum)).await;
    let reader = every(&world, 3);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(reader.read(user(1)).await.unwrap().unwrap().followers);
    }
    assert_eq!(seen, [9, 9, 2, 2]);
    assert!(world.verify().await.is_clean());
}

#[tokio::test]
async fn events_on_their_way_are_not_drift() {
    let world = world().await;
    world.decide(&[follow(1, 3), follow(5, 1), unfollow(2, 1)]).await;
    assert_eq!(every(&world, 1).read(user(1)).await.unwrap(), Some(EXPECTED));
    world.drain().await;
    let after = Counters { followings: 2, ..EXPECTED };
    assert_eq!(every(&world, 1).read(user(1)).await.unwrap(), Some(after));
}

#[tokio::test]
async fn a_user_without_relations_counts_zero_and_an_unknown_one_nothing_and_neither_gets_a_row() {
    let world = world().await;
    let rows = |world: &World| {
        let db = world.db.clone();
        async move {
            let mut tx = db.read().await.unwrap();
            let row = tx.conn().fetch_optional("testing", "SELECT COUNT(*) FROM user_counter", vec![]).await.unwrap();
            row.unwrap().int(0).unwrap()
        }
    };
    let before = rows(&world).await;
    assert_eq!(read(&world, 5).await, Some(Counters::default()));
    assert_eq!(read(&world, 77).await, None);
    assert_eq!(rows(&world).await, before);
}

#[tokio::test]
async fn a_damaged_column_of_any_type_stops_neither_reads_nor_the_projector() {
    for damage in
        ["checksum = X'00ff'", "checksum = 9e999", "checksum = 'x'", "followers_offset = X'ff'", "slots = 1.5"]
    {
        let world = world().await;
        world.tamper(&format!("UPDATE user_counter SET {damage} WHERE user_id = 1"), vec![]).await;
        world.decide(&[follow(4, 1), follow(4, 5)]).await;
        world.drain().await;
        assert_eq!(read(&world, 1).await.unwrap().followers, 3, "{damage}");
        assert_eq!(read(&world, 5).await.unwrap().followers, 1, "{damage}");
        assert!(world.verify().await.is_clean(), "{damage}");
    }
}
