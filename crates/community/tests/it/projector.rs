//! The projector: every effect once, in order, whatever is repeated.

use proptest::{prelude::*, strategy::ValueTree};
use tidings_backbone::{
    log::{Offset, Recorded},
    projector::ApplyError,
};
use tidings_community::relation::counters::{CounterReader, Counters};
use tidings_event::payload::{Followed, Payload};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::{
    model::{Model, USERS, batches},
    world::{START, World, block_on, follow, pair, unfollow, user},
};

on_every_engine!(
    random_deliveries_end_at_the_facts,
    a_duplicate_at_another_offset_has_no_effect_also_a_day_later,
    a_stale_version_never_overwrites_a_newer_one,
    an_event_over_a_gap_is_applied_and_counts_as_its_row_turns,
    an_event_at_fault_is_the_events_error_and_nothing_is_written,
    a_counter_that_would_fall_below_zero_is_recounted_and_not_clamped,
    a_counter_that_is_lost_or_garbage_is_right_after_the_next_event,
    a_recount_does_not_count_events_that_are_still_on_their_way,
    a_whole_replay_from_the_beginning_changes_nothing,
    a_damaged_version_in_the_mirror_is_overwritten_by_the_next_event,
);

async fn counters(world: &World, id: i64) -> Counters {
    CounterReader::new(world.db.clone()).read(user(id)).await.unwrap().unwrap()
}

/// What is stored, without the repair of a read.
async fn stored(world: &World, id: i64) -> Option<Counters> {
    let mut tx = world.db.read().await.unwrap();
    let columns = match world.engine {
        Engine::Sqlite => "slots, checksum",
        Engine::Mariadb | Engine::Mysql => "followings, followers",
    };
    let sql = format!("SELECT {columns} FROM user_counter WHERE user_id = ?");
    let row = tx.conn().fetch_optional("testing", sql, vec![user(id).into()]).await.unwrap()?;
    Some(match world.engine {
        Engine::Sqlite => Counters::decode(&row.bytes(0).unwrap(), row.int(1).unwrap()).unwrap(),
        Engine::Mariadb | Engine::Mysql => {
            let slot = |column: usize| u32::try_from(row.int(column).unwrap()).unwrap();
            Counters::from([slot(0), slot(1), 0, 0, 0])
        }
    })
}

async fn a_duplicate_at_another_offset_has_no_effect_also_a_day_later(engine: Engine) {
    let world = World::on(engine, 2).await;
    world.done(follow(1, 2)).await;
    world.drain().await;
    let mut duplicate = world.relation_events().await;
    duplicate[0].offset = Offset(1_000);
    world.tick(86_400_000);
    world.apply(&duplicate).await.unwrap();
    assert_eq!(counters(&world, 2).await.followers, 1);
    assert_eq!(counters(&world, 1).await.followings, 1);

    world.done(unfollow(1, 2)).await;
    world.drain().await;
    world.apply(&duplicate).await.unwrap();
    assert_eq!(world.mirror().await, world.facts().await);
    assert_eq!(counters(&world, 2).await.followers, 0);
}

async fn a_stale_version_never_overwrites_a_newer_one(engine: Engine) {
    let world = World::on(engine, 2).await;
    world.decide(&[follow(1, 2), unfollow(1, 2), follow(1, 2)]).await;
    let events = world.relation_events().await;
    world.apply(&[events[2].clone(), events[1].clone(), events[0].clone()]).await.unwrap();
    let mirror = world.mirror().await;
    assert_eq!((mirror[&pair(1, 2)].0, mirror[&pair(1, 2)].1), (true, 3));
    assert_eq!(stored(&world, 2).await.unwrap().followers, 1);
}

async fn an_event_over_a_gap_is_applied_and_counts_as_its_row_turns(engine: Engine) {
    let world = World::on(engine, 2).await;
    world.decide(&[follow(1, 2), unfollow(1, 2), follow(1, 2)]).await;
    let events = world.relation_events().await;
    world.apply(&events[..1]).await.unwrap();
    world.apply(&events[2..]).await.unwrap();
    assert_eq!(world.mirror().await[&pair(1, 2)].1, 3);
    assert_eq!(stored(&world, 2).await.unwrap().followers, 1);
}

async fn an_event_at_fault_is_the_events_error_and_nothing_is_written(engine: Engine) {
    let world = World::on(engine, 3).await;
    world.decide(&[follow(1, 2), follow(1, 3)]).await;
    let good = world.relation_events().await;
    let mut too_new = good[1].clone();
    too_new.event.schema_version = Followed::SCHEMA_VERSION + 1;
    let mut malformed = good[1].clone();
    malformed.event.payload = serde_json::value::RawValue::from_string("{\"from\":\"1\"}".to_owned()).unwrap();
    let mut out_of_range = good[1].clone();
    out_of_range.event.version = u64::MAX;
    let mut unknown = good[1].clone();
    unknown.event.event_type = "relation.blocked".to_owned();
    for bad in [too_new, malformed, out_of_range, unknown] {
        let error = world.apply(&[good[0].clone(), bad]).await.unwrap_err();
        assert!(matches!(error, ApplyError::Event(_)), "{error:?}");
        assert!(world.mirror().await.is_empty());
        assert!(stored(&world, 1).await.is_none());
    }
    world.apply(&good).await.unwrap();
    assert_eq!(world.mirror().await, world.facts().await);
}

async fn a_counter_that_would_fall_below_zero_is_recounted_and_not_clamped(engine: Engine) {
    let world = World::on(engine, 4).await;
    world.decide(&[follow(1, 4), follow(2, 4), follow(3, 4)]).await;
    world.drain().await;
    // Drift that looks well: three followers, and the value says none.
    crate::counters::store(&world, 4, Counters::default()).await;
    world.done(unfollow(1, 4)).await;
    world.drain().await;
    assert_eq!(stored(&world, 4).await.unwrap().followers, 2);
}

async fn a_counter_that_is_lost_or_garbage_is_right_after_the_next_event(engine: Engine) {
    let world = World::on(engine, 4).await;
    let garbage = match engine {
        Engine::Sqlite => "UPDATE user_counter SET slots = x'00ff'",
        Engine::Mariadb | Engine::Mysql => "UPDATE user_counter SET followings = -5, followers = 5000000000",
    };
    for damage in ["DELETE FROM user_counter", garbage] {
        world.decide(&[follow(1, 4), follow(2, 4), follow(4, 1), unfollow(3, 4)]).await;
        world.drain().await;
        assert!(world.tamper(damage, vec![]).await > 0);
        world.decide(&[follow(3, 4), unfollow(4, 1)]).await;
        world.drain().await;
        let expected = Counters { followings: 0, followers: 3, ..Counters::default() };
        assert_eq!(stored(&world, 4).await, Some(expected), "{damage}");
    }
}

async fn a_recount_does_not_count_events_that_are_still_on_their_way(engine: Engine) {
    let world = World::on(engine, 4).await;
    world.done(follow(1, 2)).await;
    world.drain().await;
    world.tamper("DELETE FROM user_counter", vec![]).await;
    world.decide(&[follow(1, 3), follow(1, 4)]).await;
    // The first event makes the counters of user 1 be recounted, when the second is a fact already.
    world.apply_next(1).await;
    assert_eq!(stored(&world, 1).await.unwrap().followings, 2);
    world.apply_next(1).await;
    assert_eq!(stored(&world, 1).await.unwrap().followings, 3);
}

/// Delivers events of the log: mostly the next ones, at times ones that were delivered before.
#[derive(Clone, Debug)]
enum Delivery {
    Next(usize),
    Again { from: usize, count: usize },
    LoseCounters(i64),
}

fn deliveries() -> impl Strategy<Value = Vec<Delivery>> {
    let one = prop_oneof![
        4 => (1_usize..8).prop_map(Delivery::Next),
        2 => (0_usize..40, 1_usize..20).prop_map(|(from, count)| Delivery::Again { from, count }),
        1 => (1..=USERS).prop_map(Delivery::LoseCounters),
    ];
    proptest::collection::vec(one, 1..20)
}

async fn check_deliveries(
    engine: Engine,
    batches: &[Vec<tidings_community::relation::facts::Command>],
    deliveries: Vec<Delivery>,
) {
    let world = World::on(engine, USERS).await;
    let mut model = Model::default();
    for batch in batches {
        world.tick(1);
        model.decide_all(batch, world.clock.now());
        world.decide(batch).await;
    }
    let events = world.relation_events().await;
    let mut delivered = 0;
    for delivery in deliveries {
        let batch = match delivery {
            Delivery::Next(count) => {
                let end = (delivered + count).min(events.len());
                let batch = &events[delivered..end];
                delivered = end;
                batch
            }
            Delivery::Again { from, count } => {
                &events[from.min(delivered)..(from + count).min(delivered).max(from.min(delivered))]
            }
            Delivery::LoseCounters(id) => {
                world.tamper("DELETE FROM user_counter WHERE user_id = ?", vec![id.into()]).await;
                continue;
            }
        };
        world.apply(batch).await.unwrap();
    }
    world.apply(&events[delivered..]).await.unwrap();
    assert_eq!(world.mirror().await, model.pairs);
    for id in 1..=USERS {
        let (followings, followers) = model.counts(id);
        let expected = Counters { followings, followers, ..Counters::default() };
        if let Some(stored) = stored(&world, id).await {
            assert_eq!(stored, expected);
        }
        assert_eq!(counters(&world, id).await, expected);
    }
}

/// Some of what the next test tries many more of.
async fn random_deliveries_end_at_the_facts(engine: Engine) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..6 {
        let (batches, deliveries) = (batches(), deliveries()).new_tree(&mut runner).unwrap().current();
        check_deliveries(engine, &batches, deliveries).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However events are cut into batches, repeated and replayed, and whatever counters are lost
    /// on the way: the mirror is the facts and the counters are what is counted in the model.
    #[test]
    fn any_delivery_in_order_with_any_repetitions_ends_at_the_facts(
        batches in batches(),
        deliveries in deliveries(),
    ) {
        block_on(check_deliveries(Engine::Sqlite, &batches, deliveries));
    }
}

async fn a_whole_replay_from_the_beginning_changes_nothing(engine: Engine) {
    let world = World::on(engine, 20).await;
    for from in 1..=20 {
        let commands: Vec<_> =
            (1..=20).filter(|to| to % 3 == from % 3 && *to != from).map(|to| follow(from, to)).collect();
        world.decide(&commands).await;
    }
    world.decide(&[unfollow(1, 4), unfollow(2, 5), follow(1, 4)]).await;
    world.drain().await;
    let before = (world.mirror().await, all_counters(&world).await);
    let events: Vec<Recorded> = world.relation_events().await;
    for batch in events.chunks(7) {
        world.apply(batch).await.unwrap();
    }
    assert_eq!((world.mirror().await, all_counters(&world).await), before);
    assert!(world.verify().await.is_clean());
    assert_eq!(START, world.clock.now());
}

async fn all_counters(world: &World) -> Vec<Option<Counters>> {
    let mut all = Vec::new();
    for id in 1..=20 {
        all.push(stored(world, id).await);
    }
    all
}

async fn a_damaged_version_in_the_mirror_is_overwritten_by_the_next_event(engine: Engine) {
    // A column of a server holds numbers only.
    let damages: &[_] = if engine == Engine::Sqlite { &["'x'", "X'ff'", "-5"] } else { &["-5"] };
    for damage in damages {
        let world = World::on(engine, 4).await;
        world.decide(&[follow(1, 2), follow(3, 4)]).await;
        world.drain().await;
        world.tamper(&format!("UPDATE follower SET version = {damage} WHERE from_user_id = 1"), vec![]).await;
        world.decide(&[unfollow(1, 2), unfollow(3, 4)]).await;
        world.drain().await;
        assert_eq!(world.mirror().await, world.facts().await, "{damage}");
    }
}
