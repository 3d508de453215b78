//! Counters as they are read: repaired when lost, damaged or found to differ.

use std::num::NonZeroU32;

use tidings_backbone::db::Value;
use tidings_community::relation::counters::{CounterReader, Counters};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::{World, follow, unfollow, user};

on_every_engine!(
    one_read_in_so_many_notices_drift_and_repairs_it,
    counters_follow_the_events,
    a_lost_value_is_rebuilt_and_stored_by_the_next_read,
    events_on_their_way_are_not_drift,
    a_user_without_relations_counts_zero_and_an_unknown_one_nothing_and_neither_gets_a_row,
);

const EXPECTED: Counters = Counters { followings: 1, followers: 2, posts: 0, likes_received: 0, favorites_received: 0 };

/// User 1 follows one and is followed by two.
async fn world(engine: Engine) -> World {
    let world = World::on(engine, 5).await;
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

/// Sets what is stored to other counters, as a fault of the program would.
pub(crate) async fn store(world: &World, id: i64, counters: Counters) {
    let changed = match world.engine {
        Engine::Sqlite => {
            let (slots, checksum) = counters.encode();
            let args: Vec<Value> = vec![slots.to_vec().into(), i64::from(checksum).into(), id.into()];
            world.tamper("UPDATE user_counter SET slots = ?, checksum = ? WHERE user_id = ?", args).await
        }
        Engine::Mariadb | Engine::Mysql => {
            let [followings, followers, ..] = counters.slots();
            let args: Vec<Value> = vec![i64::from(followings).into(), i64::from(followers).into(), id.into()];
            world.tamper("UPDATE user_counter SET followings = ?, followers = ? WHERE user_id = ?", args).await
        }
    };
    assert_eq!(changed, 1);
}

async fn set(world: &World, slots: Vec<u8>, checksum: i64) {
    let args: Vec<Value> = vec![slots.into(), checksum.into()];
    let changed = world.tamper("UPDATE user_counter SET slots = ?, checksum = ? WHERE user_id = 1", args).await;
    assert_eq!(changed, 1);
}

async fn counters_follow_the_events(engine: Engine) {
    assert_eq!(read(&world(engine).await, 1).await, Some(EXPECTED));
}

async fn a_lost_value_is_rebuilt_and_stored_by_the_next_read(engine: Engine) {
    let world = world(engine).await;
    world.tamper("DELETE FROM user_counter WHERE user_id = 1", vec![]).await;
    assert_eq!(world.verify().await.total(), 1);
    assert_eq!(read(&world, 1).await, Some(EXPECTED));
    assert!(world.verify().await.is_clean());
    // Without a number no list of his would be kept.
    let numbered = "SELECT COUNT(*) FROM user_counter WHERE user_id = 1 AND changes > 1700000000000";
    assert_eq!(world.query(numbered, vec![]).await, [[1]]);
}

#[tokio::test]
async fn a_damaged_value_is_rebuilt_and_stored_by_the_next_read() {
    let world = world(Engine::Sqlite).await;
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
    let world = world(Engine::Sqlite).await;
    for damage in ["slots = 'text'", "slots = 17", "slots = ''"] {
        world.tamper(&format!("UPDATE user_counter SET {damage} WHERE user_id = 1"), vec![]).await;
        assert_eq!(read(&world, 1).await, Some(EXPECTED), "{damage}");
    }
}

async fn one_read_in_so_many_notices_drift_and_repairs_it(engine: Engine) {
    let world = world(engine).await;
    store(&world, 1, Counters { followers: 9, ..EXPECTED }).await;
    let reader = every(&world, 3);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(reader.read(user(1)).await.unwrap().unwrap().followers);
    }
    assert_eq!(seen, [9, 9, 2, 2]);
    assert!(world.verify().await.is_clean());
}

async fn events_on_their_way_are_not_drift(engine: Engine) {
    let world = world(engine).await;
    world.decide(&[follow(1, 3), follow(5, 1), unfollow(2, 1)]).await;
    assert_eq!(every(&world, 1).read(user(1)).await.unwrap(), Some(EXPECTED));
    world.drain().await;
    let after = Counters { followings: 2, ..EXPECTED };
    assert_eq!(every(&world, 1).read(user(1)).await.unwrap(), Some(after));
}

async fn a_user_without_relations_counts_zero_and_an_unknown_one_nothing_and_neither_gets_a_row(engine: Engine) {
    let world = world(engine).await;
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
    for damage in ["checksum = X'00ff'", "checksum = 9e999", "checksum = 'x'", "changes = X'ff'", "slots = 1.5"] {
        let world = world(Engine::Sqlite).await;
        world.tamper(&format!("UPDATE user_counter SET {damage} WHERE user_id = 1"), vec![]).await;
        world.decide(&[follow(4, 1), follow(4, 5)]).await;
        world.drain().await;
        assert_eq!(read(&world, 1).await.unwrap().followers, 3, "{damage}");
        assert_eq!(read(&world, 5).await.unwrap().followers, 1, "{damage}");
        assert!(world.verify().await.is_clean(), "{damage}");
    }
}

mod server {
    //! Where each counter has a column of its own, and partitions of the log are applied at once.

    use tidings_testkit::on_every_server;

    use super::*;

    on_every_server!(
        an_event_that_comes_before_its_commit_is_seen_is_counted,
        a_number_out_of_range_is_rebuilt_by_the_next_read_and_by_the_next_event,
        partitions_applied_at_once_lose_no_count,
        a_batch_applied_by_two_owners_at_once_counts_once,
    );

    async fn a_number_out_of_range_is_rebuilt_by_the_next_read_and_by_the_next_event(engine: Engine) {
        let world = world(engine).await;
        for damage in ["followers = -1", "followings = 4294967296", "followers = -9223372036854775808"] {
            world.tamper(&format!("UPDATE user_counter SET {damage} WHERE user_id = 1"), vec![]).await;
            assert_eq!(world.verify().await.total(), 1, "{damage}");
            assert_eq!(read(&world, 1).await, Some(EXPECTED), "{damage}");
            assert!(world.verify().await.is_clean(), "{damage}");
        }
        world.tamper("UPDATE user_counter SET followers = -7 WHERE user_id = 1", vec![]).await;
        world.decide(&[follow(4, 1), unfollow(3, 1)]).await;
        world.drain().await;
        assert!(world.verify().await.is_clean());
    }

    /// Eight partitions, by the follower, whose events all concern the same few users.
    async fn partitions_applied_at_once_lose_no_count(engine: Engine) {
        let world = World::on(engine, 44).await;
        for round in 0..6 {
            world.tick(1);
            let commands: Vec<_> = (5..=44)
                .flat_map(|from| (1..=4).map(move |to| (from, to)))
                .map(|(from, to)| if (from + to + round) % 3 == 0 { unfollow(from, to) } else { follow(from, to) })
                .collect();
            world.decide(&commands).await;
        }
        let events = world.relation_events().await;
        let partition = |number: i64| {
            let mine = events.iter().filter(move |recorded| recorded.event.key.parse::<i64>().unwrap() % 8 == number);
            mine.cloned().collect::<Vec<_>>()
        };
        let applied = futures::future::join_all((0..8).map(|number| {
            let (events, world) = (partition(number), &world);
            async move {
                for batch in events.chunks(13) {
                    world.apply(batch).await.unwrap();
                    if number == 3 {
                        // A row that is lost meanwhile is counted by whoever needs it next.
                        world.tamper("DELETE FROM user_counter WHERE user_id = 2", vec![]).await;
                    }
                }
            }
        }));
        applied.await;
        let last = events.last().unwrap().offset;
        world.move_to(last).await;
        assert_eq!(world.mirror().await, world.facts().await);
        read(&world, 2).await;
        let report = world.verify().await;
        assert!(report.is_clean(), "{report:#?}");
    }

    /// A server shows a transaction in its binlog a moment before others see what it changed.
    async fn an_event_that_comes_before_its_commit_is_seen_is_counted(engine: Engine) {
        let world = World::on(engine, 3).await;
        world.decide(&[follow(1, 2), follow(1, 3)]).await;
        let events = world.relation_events().await;
        world.tamper("DELETE FROM following WHERE to_user_id = 3", vec![]).await;
        let mut committing = world.db.write(tidings_backbone::Durability::Full).await.unwrap();
        let fact = "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at) \
                    VALUES (1, 3, 1, 1, 0, 0)";
        committing.conn().execute("following", fact, vec![]).await.unwrap();
        let applied = std::cell::Cell::new(false);
        let applying = async {
            world.apply(&events).await.unwrap();
            applied.set(true);
        };
        let commits_once_it_is_waited_for = async {
            let waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx t \
                           JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id \
                           WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()";
            let one_waits = async || {
                let mut tx = world.db.read().await.unwrap();
                // MySQL tells nothing while some statement that is under way has bytes that are no text.
                let told = tx.conn().fetch("looking who waits", waiting, vec![]).await;
                told.is_ok_and(|rows| rows[0].int(0).unwrap() > 0)
            };
            while !applied.get() && !one_waits().await {
                // The table is made anew only when nobody has looked at it for a tenth of a second.
                tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            }
            committing.commit().await.unwrap();
        };
        futures::future::join(applying, commits_once_it_is_waited_for).await;
        assert_eq!(read(&world, 1).await.map(|counters| counters.followings), Some(2));
    }

    async fn a_batch_applied_by_two_owners_at_once_counts_once(engine: Engine) {
        let world = World::on(engine, 60).await;
        for round in 0..8 {
            let commands: Vec<_> = (2..=60).map(|from| follow(from, 1 + (round % 2) * 59)).collect();
            world.decide(&commands).await;
            let after = world.decide(&(2..=60).map(|from| unfollow(from, 1)).collect::<Vec<_>>()).await;
            assert_eq!(after.len(), 59);
            let events = world.relation_events().await;
            // Nothing is said of the position here, which would refuse one of them.
            let both = futures::future::join(world.apply(&events), world.apply(&events)).await;
            assert!(both.0.is_ok() || both.1.is_ok(), "{both:?}");
            world.move_to(events.last().unwrap().offset).await;
            let report = world.verify().await;
            assert!(report.is_clean(), "{report:#?}");
        }
    }
}
