//! The verification: finds exactly what is wrong, and nothing while events are on their way.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidings_backbone::log::Recorded;
use tidings_community::relation::{
    counters::Counters,
    verify::{Kind, Report},
};
use tidings_event::cloudevents;

use crate::{
    model::{USERS, batches},
    world::{World, block_on, follow, unfollow},
};

/// A small graph, applied to the end: 1 ⇄ 2, 3 → 1, 3 ⇢ 2 ended, 4 → 1.
async fn world() -> World {
    let world = World::new(6).await;
    world.decide(&[follow(1, 2), follow(2, 1), follow(3, 1), follow(3, 2), follow(4, 1)]).await;
    world.tick(9);
    world.decide(&[unfollow(3, 2)]).await;
    world.drain().await;
    world
}

fn only(kind: Kind, number: u64) -> BTreeMap<Kind, u64> {
    BTreeMap::from([(kind, number)])
}

#[tokio::test]
async fn a_projection_that_is_right_has_no_differences_and_all_of_it_was_looked_at() {
    let report = world().await.verify().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.facts, report.mirror_rows, report.users, report.pending_events), (5, 5, 4, 0));
}

#[tokio::test]
async fn an_empty_database_is_right() {
    assert!(World::new(0).await.verify().await.is_clean());
}

#[tokio::test]
async fn each_damage_is_found_as_what_it_is() {
    let (slots, checksum) = Counters { followings: 1, followers: 3, posts: 1, ..Counters::default() }.encode();
    let value = format!("slots = x'{}', checksum = {checksum}", hex(&slots));
    let damages = [
        ("UPDATE follower SET version = 7 WHERE from_user_id = 4".to_owned(), vec![(Kind::MirrorVersion, 1)]),
        ("UPDATE follower SET updated_at = 7 WHERE from_user_id = 4".to_owned(), vec![(Kind::MirrorTime, 1)]),
        ("UPDATE follower SET created_at = 7 WHERE from_user_id = 4".to_owned(), vec![(Kind::MirrorTime, 1)]),
        (
            "UPDATE follower SET rel_status = 0 WHERE from_user_id = 4".to_owned(),
            vec![(Kind::MirrorStatus, 1), (Kind::FollowerListLength, 1)],
        ),
        (
            "DELETE FROM follower WHERE from_user_id = 4".to_owned(),
            vec![(Kind::MirrorMissing, 1), (Kind::FollowerListLength, 1)],
        ),
        ("DELETE FROM follower WHERE rel_status = 0".to_owned(), vec![(Kind::MirrorMissing, 1)]),
        (
            "INSERT INTO follower VALUES (1, 5, 6, 1, 1, 1, 1), (1, 6, 5, 0, 2, 1, 1)".to_owned(),
            vec![(Kind::MirrorExtra, 2), (Kind::FollowerListLength, 1)],
        ),
        ("DELETE FROM user_counter WHERE user_id = 4".to_owned(), vec![(Kind::CounterMissing, 1)]),
        ("UPDATE user_counter SET checksum = 1 WHERE user_id < 3".to_owned(), vec![(Kind::CounterMalformed, 2)]),
        (format!("UPDATE user_counter SET {value} WHERE user_id = 1"), vec![(Kind::CounterValue, 1)]),
        (
            format!("INSERT INTO user_counter VALUES (1, 5, x'{}', {checksum}, 1)", hex(&slots)),
            vec![(Kind::CounterValue, 1)],
        ),
    ];
    for (damage, expected) in damages {
        let world = world().await;
        assert!(world.tamper(&damage, vec![]).await > 0);
        let report = world.verify().await;
        assert_eq!(report.differences, expected.into_iter().collect(), "{damage}: {report:#?}");
        assert_eq!(report.examples.len() as u64, report.total());
    }
}

#[tokio::test]
async fn a_fact_changed_without_an_event_is_found() {
    let world = world().await;
    world.tamper("UPDATE following SET rel_status = 0, version = 2 WHERE from_user_id = 4", vec![]).await;
    let report = world.verify().await;
    assert_eq!(report.differences[&Kind::MirrorVersion], 1);
    assert_eq!(report.differences[&Kind::MirrorStatus], 1);
    assert_eq!(report.differences[&Kind::FollowerListLength], 1);
    assert_eq!(report.differences[&Kind::CounterValue], 2);
}

#[tokio::test]
async fn an_event_without_its_fact_is_found() {
    let world = world().await;
    world.done(follow(5, 6)).await;
    world.tamper("DELETE FROM following WHERE from_user_id = 5", vec![]).await;
    let report = world.verify().await;
    assert_eq!(report.differences[&Kind::EventWithoutFact], 1);
}

#[tokio::test]
async fn a_projection_ahead_of_its_position_is_found() {
    let world = world().await;
    world.done(follow(5, 6)).await;
    let event = world.relation_events().await.pop().unwrap();
    world.apply(&[event]).await.unwrap();
    let report = world.verify().await;
    assert_eq!(report.differences[&Kind::MirrorExtra], 1);
}

#[tokio::test]
async fn damage_to_a_row_whose_next_event_is_on_its_way_is_found() {
    let world = world().await;
    world.tick(1);
    world.decide(&[unfollow(4, 1), follow(3, 2)]).await;
    assert!(world.verify().await.is_clean());
    for (damage, kind) in [
        ("UPDATE follower SET updated_at = 7 WHERE from_user_id = 4", Kind::MirrorTime),
        ("UPDATE follower SET created_at = 7 WHERE from_user_id = 3 AND to_user_id = 2", Kind::MirrorTime),
        ("UPDATE follower SET version = 9 WHERE from_user_id = 4", Kind::MirrorVersion),
    ] {
        let before = world.verify().await.differences.get(&kind).copied().unwrap_or_default();
        assert_eq!(world.tamper(damage, vec![]).await, 1);
        assert_eq!(world.verify().await.differences[&kind], before + 1, "{damage}");
    }
}

#[tokio::test]
async fn many_differences_are_all_counted_and_some_shown() {
    let world = World::new(60).await;
    let commands: Vec<_> = (2..=60).map(|from| follow(from, 1)).collect();
    world.decide(&commands).await;
    world.drain().await;
    world.tamper("UPDATE follower SET version = 9", vec![]).await;
    let report = world.verify().await;
    assert_eq!(report.differences, only(Kind::MirrorVersion, 59));
    assert_eq!(report.examples.len(), 20);
    assert_eq!(report.total(), 59);
}

/// Puts an event where the runtime puts the ones of a parked key.
pub(crate) async fn park(world: &World, recorded: &Recorded) {
    let event = cloudevents::json::encode(&recorded.event, "/tests").unwrap();
    let sql = "INSERT INTO parked_event (projector, part, event_key, log_offset, occurred_at, event) \
               VALUES ('relation', 'outbox/0', ?, ?, 0, ?)";
    let args = vec![recorded.event.key.as_str().into(), recorded.offset.0.into(), event.into()];
    world.tamper(sql, args).await;
}

async fn position_at(world: &World, offset: i64) {
    let sql = "INSERT INTO projector_position (projector, part, log_offset, updated_at) \
               VALUES ('relation', 'outbox/0', ?, 0) \
               ON CONFLICT (projector, part) DO UPDATE SET log_offset = excluded.log_offset";
    world.tamper(sql, vec![offset.into()]).await;
}

#[tokio::test]
async fn the_events_of_a_parked_key_are_taken_back_and_those_of_others_are_not() {
    let world = World::new(4).await;
    world.decide(&[follow(1, 2), follow(2, 1)]).await;
    world.drain().await;
    world.tick(5);
    // Key 1 fails at its first event here; key 3 goes on; what key 1 does later waits behind it.
    world.decide(&[unfollow(1, 2), follow(3, 2), follow(1, 3), follow(1, 2)]).await;
    let events = world.relation_events().await;
    for recorded in &events[2..] {
        if recorded.event.key == "1" {
            park(&world, recorded).await;
        } else {
            world.apply(std::slice::from_ref(recorded)).await.unwrap();
        }
    }
    position_at(&world, events.last().unwrap().offset.0).await;
    world.tick(5);
    world.decide(&[unfollow(1, 2), unfollow(3, 2)]).await;
    let report = world.verify().await;
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.pending_events, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Wherever the projector stands, nothing is reported; when it has caught up, nothing either.
    #[test]
    fn nothing_is_reported_while_events_are_on_their_way(batches in batches(), steps in 1_usize..7) {
        block_on(async {
            let world = World::new(USERS).await;
            for batch in &batches {
                world.tick(1);
                world.decide(batch).await;
                let report: Report = world.verify().await;
                prop_assert!(report.is_clean(), "{:#?}", report);
                world.apply_next(steps).await;
                let report = world.verify().await;
                prop_assert!(report.is_clean(), "{:#?}", report);
            }
            world.drain().await;
            let report = world.verify().await;
            prop_assert!(report.is_clean(), "{:#?}", report);
            prop_assert_eq!(report.pending_events, 0);
            Ok(())
        })?;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

mod without_the_log {
    //! Where the comparison cannot see what is on its way.

    use tidings_backbone::log::Log;
    use tidings_community::relation::verify::{Suspects, compare, compare_again};
    use tidings_testkit::{database::Engine, on_every_engine};

    use super::*;

    on_every_engine!(
        what_is_on_its_way_is_a_suspect_until_it_is_applied,
        what_changes_from_look_to_look_is_no_difference,
        what_is_wrong_is_a_difference_at_the_second_look_alone,
        what_is_parked_is_taken_back,
        counters_that_differ_from_the_mirror_are_found_at_once_whatever_is_on_its_way,
    );

    async fn followed_by_29(engine: Engine) -> World {
        let world = World::on(engine, 30).await;
        world.decide(&(2..=30).map(|from| follow(from, 1)).collect::<Vec<_>>()).await;
        world.drain().await;
        world
    }

    async fn first_look(world: &World) -> (Report, Suspects) {
        compare(&world.db, &Log::Embedded(world.db.clone())).await.unwrap()
    }

    async fn look_again(world: &World, suspects: &Suspects, report: &mut Report) -> Suspects {
        compare_again(&world.db, &Log::Embedded(world.db.clone()), suspects, report).await.unwrap()
    }

    async fn what_is_on_its_way_is_a_suspect_until_it_is_applied(engine: Engine) {
        let world = followed_by_29(engine).await;
        let (report, suspects) = first_look(&world).await;
        assert!(report.is_clean() && suspects.is_empty(), "{report:#?}");
        world.decide(&[follow(1, 2), unfollow(5, 1), follow(5, 6)]).await;
        let (mut report, suspects) = first_look(&world).await;
        assert!(report.is_clean(), "{report:#?}");
        assert_eq!((report.facts, report.mirror_rows, suspects.number()), (31, 29, 3));
        world.drain().await;
        // New ones are on their way by now; they are nobody's concern.
        world.decide(&[follow(7, 8)]).await;
        let left = look_again(&world, &suspects, &mut report).await;
        assert!(report.is_clean() && left.is_empty(), "{report:#?}");
    }

    async fn what_changes_from_look_to_look_is_no_difference(engine: Engine) {
        let world = followed_by_29(engine).await;
        world.decide(&[unfollow(5, 1)]).await;
        let (mut report, mut suspects) = first_look(&world).await;
        // Each time the same is shown: the mirror says yes and the fact no.
        for _ in 0..5 {
            suspects = look_again(&world, &suspects, &mut report).await;
            assert!(report.is_clean() && suspects.number() == 1, "{report:#?}");
            world.decide(&[follow(5, 1)]).await;
            world.drain().await;
            world.decide(&[unfollow(5, 1)]).await;
        }
        world.drain().await;
        assert!(look_again(&world, &suspects, &mut report).await.is_empty());
        assert!(report.is_clean());
    }

    async fn what_is_wrong_is_a_difference_at_the_second_look_alone(engine: Engine) {
        let world = followed_by_29(engine).await;
        for damage in [
            "DELETE FROM follower WHERE from_user_id = 2",
            "DELETE FROM following WHERE from_user_id = 3",
            "UPDATE follower SET updated_at = 5 WHERE from_user_id = 4",
            "UPDATE follower SET rel_status = 0 WHERE from_user_id = 5",
        ] {
            world.tamper(damage, vec![]).await;
        }
        let (mut report, suspects) = first_look(&world).await;
        assert_eq!(suspects.number(), 4);
        let suspects = look_again(&world, &suspects, &mut report).await;
        assert_eq!(suspects.number(), 4);
        assert!(look_again(&world, &suspects, &mut report).await.is_empty());
        for (kind, number) in
            [(Kind::MirrorMissing, 1), (Kind::MirrorExtra, 1), (Kind::MirrorTime, 1), (Kind::MirrorStatus, 1)]
        {
            assert_eq!(report.differences[&kind], number, "{report:#?}");
        }
        // Those of the two whose rows are no longer counted, and of whom they followed.
        assert_eq!(report.differences[&Kind::CounterValue], 3, "{report:#?}");
    }

    async fn what_is_parked_is_taken_back(engine: Engine) {
        let world = followed_by_29(engine).await;
        world.tick(5);
        world.decide(&[unfollow(5, 1), follow(5, 6), follow(7, 8)]).await;
        let events = world.relation_events().await;
        for recorded in &events[29..] {
            match recorded.event.key.as_str() {
                "5" => park(&world, recorded).await,
                _ => world.apply(std::slice::from_ref(recorded)).await.unwrap(),
            }
        }
        let (mut report, mut suspects) = first_look(&world).await;
        assert_eq!(report.pending_events, 2);
        for _ in 0..3 {
            suspects = look_again(&world, &suspects, &mut report).await;
        }
        assert!(report.is_clean() && suspects.is_empty(), "{report:#?}");
        // What is wrong beside it is found all the same.
        world.tamper("UPDATE follower SET version = 9 WHERE from_user_id = 5", vec![]).await;
        let (mut report, mut suspects) = first_look(&world).await;
        for _ in 0..3 {
            suspects = look_again(&world, &suspects, &mut report).await;
        }
        assert_eq!(report.differences, only(Kind::MirrorVersion, 1), "{report:#?}");
    }

    async fn counters_that_differ_from_the_mirror_are_found_at_once_whatever_is_on_its_way(engine: Engine) {
        let world = followed_by_29(engine).await;
        world.decide(&[unfollow(6, 1), follow(7, 6)]).await;
        assert!(first_look(&world).await.0.is_clean());
        world.tamper("DELETE FROM user_counter WHERE user_id = 6", vec![]).await;
        crate::counters::store(&world, 7, Counters { followings: 5, ..Counters::default() }).await;
        let (report, _) = first_look(&world).await;
        let expected = BTreeMap::from([(Kind::CounterMissing, 1), (Kind::CounterValue, 1)]);
        assert_eq!((report.differences, report.users), (expected, 30));
    }
}
