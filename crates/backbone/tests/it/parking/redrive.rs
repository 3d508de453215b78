//! Redriving keys: in order, at a pace, stopping at the first new failure, and never without a trace.

use std::{num::NonZeroU32, time::Duration};

use serde_json::{Value, json};
use tidings_backbone::{
    Clock, Durability,
    idempotency::IdempotencyKey,
    limits::{REDRIVE_KEPT_KEYS_MAX, REDRIVE_KEYS_MAX},
    parking::{self, Filter, Redrive, Refusal, Shown, State},
    projector::{Gaps, Options},
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, versions};
use crate::world::{Fault, Recorder, quick};

on_every_engine!(
    a_dead_key_with_a_thousand_waiting_events_is_redriven_in_order_and_disturbs_nobody,
    a_redriven_key_stops_at_its_first_new_failure_and_keeps_what_came_before_it,
    a_key_that_is_retried_anyhow_is_tried_now_and_keeps_the_tries_that_it_has_left,
    what_would_be_redriven_is_told_and_nothing_changes,
    at_a_rate_keys_are_tried_one_after_the_other_and_a_long_one_in_pieces,
    a_clock_set_back_by_more_than_a_day_does_not_freeze_a_redriven_key,
    only_what_the_filter_chooses_is_redriven,
    of_more_keys_than_one_redrive_takes_the_rest_is_counted_and_comes_next,
    a_redrive_and_its_audit_are_one_transaction,
);

fn all() -> Redrive {
    Redrive::default()
}

fn one(key: &str) -> Redrive {
    Redrive { filter: Filter::one("recorder", key), ..all() }
}

async fn a_dead_key_with_a_thousand_waiting_events_is_redriven_in_order_and_disturbs_nobody(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 2);
    let running = site.start(&recorder, quick(2));
    site.emit(versions("a", 1..=600).chain(versions("b", 1..=10))).await;
    running.settle().await;
    site.emit(versions("a", 601..=1_000).chain(versions("b", 11..=20))).await;
    running.settle().await;
    let parked = site.only_parked().await;
    assert_eq!((parked.state, parked.attempts, parked.waiting), (State::Dead, 2, 1_000));

    let plan = site.redrive(&one("a")).await.unwrap();
    assert_eq!((plan.keys.len(), plan.waiting, plan.left), (1, 1_000, 0));
    site.emit(versions("a", 1_001..=1_010).chain(versions("b", 21..=30))).await;
    running.settle().await;
    running.stop().await;
    let applied = site.applied().await;
    assert_eq!(applied["a"], (1..=1_010).collect::<Vec<i64>>());
    assert_eq!(applied["b"], (1..=30).collect::<Vec<i64>>());
    assert_eq!(site.parked().await, []);
    assert_eq!(site.count("SELECT COUNT(*) FROM parked_event").await, 0);
    let record = site.audit().await.remove(0);
    assert_eq!((record.actor.as_str(), record.action.as_str()), ("cli:ada", "parking.redrive"));
    assert_eq!((record.projector.as_deref(), record.key.as_deref()), (Some("recorder"), Some("a")));
}

async fn a_redriven_key_stops_at_its_first_new_failure_and_keeps_what_came_before_it(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 5);
    recorder.fail("a", 7, Fault::Error, 1);
    let running = site.start(&recorder, quick(5));
    site.emit(versions("a", 1..=20)).await;
    running.settle().await;
    let died_first = site.only_parked().await.died_at.unwrap();

    site.redrive(&one("a")).await.unwrap();
    running.settle().await;
    let parked = site.only_parked().await;
    assert_eq!((parked.state, parked.attempts, parked.waiting), (State::Dead, 1, 14), "at once, not after five tries");
    assert!(parked.error.contains("told to fail") && parked.died_at.unwrap() >= died_first, "{parked:?}");
    assert_eq!(recorder.tries_alone("a", 7), 1);
    assert_eq!(site.applied().await["a"], [1, 2, 3, 4, 5, 6]);

    site.redrive(&one("a")).await.unwrap();
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], (1..=20).collect::<Vec<i64>>());
    assert_eq!(site.audit().await.len(), 2);
}

async fn a_key_that_is_retried_anyhow_is_tried_now_and_keeps_the_tries_that_it_has_left(engine: Engine) {
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 2);
    // While the clock stands still no key is retried by itself.
    let hour = Duration::from_hours(1);
    let gaps = Gaps { attempts_max: 3, first: hour, longest: hour };
    let running = site.start(&recorder, Options { gaps, ..Options::default() });
    site.emit(versions("a", 1..=3)).await;
    site.until("the key is parked", async || !site.parked().await.is_empty()).await;
    site.redrive(&one("a")).await.unwrap();
    site.until("it was tried", async || site.only_parked().await.attempts == 2).await;
    assert_eq!(site.only_parked().await.state, State::Retrying, "it has one try left");
    site.redrive(&one("a")).await.unwrap();
    site.until("it is free", async || site.parked().await.is_empty()).await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [1, 2, 3]);
}

async fn what_would_be_redriven_is_told_and_nothing_changes(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    let running = site.start(&recorder, quick(1));
    for key in ["a", "b"] {
        recorder.fail(key, 1, Fault::Error, 1);
        site.emit(versions(key, 1..=5)).await;
        running.settle().await;
    }
    running.stop().await;
    let before = site.parked().await;
    let wanted = Redrive { events_per_second: NonZeroU32::new(5), ..all() };
    let mut tx = site.db.read().await.unwrap();
    let plan = parking::plan(tx.conn(), &wanted).await.unwrap().unwrap();
    let keys: Vec<_> = plan.keys.iter().map(|key| (key.key.as_str(), key.waiting, key.after.as_secs())).collect();
    assert_eq!(keys, [("a", 5, 0), ("b", 5, 1)], "the longest parked first");
    assert_eq!((plan.waiting, plan.takes), (10, Duration::from_secs(2)));
    drop(tx);
    assert_eq!(site.parked().await, before);
    assert_eq!(site.audit().await, []);

    // However long it is looked at: who dies meanwhile is left out, and what comes behind a key goes with it.
    recorder.fail("c", 1, Fault::Error, 1);
    let running = site.start(&recorder, quick(1));
    site.emit(versions("a", 6..=6).chain(versions("c", 1..=1))).await;
    running.settle().await;
    running.stop().await;
    let shown = plan.shown();
    let fewer = Redrive { shown: Some(Shown { keys: 1, ..shown }), ..wanted.clone() };
    assert_eq!(site.redrive(&fewer).await, Err(Refusal::MoreThanShown { keys: 2, shown: 1 }));
    assert_eq!(site.audit().await, []);
    let done = site.redrive(&Redrive { shown: Some(shown), ..wanted }).await.unwrap();
    let keys: Vec<_> = done.keys.iter().map(|key| (key.key.as_str(), key.waiting)).collect();
    assert_eq!((keys, done.left), (vec![("a", 6), ("b", 5)], 0), "what was shown is what is done");
    assert_eq!(site.redrive(&all()).await.unwrap().keys[0].key, "c");
}

async fn at_a_rate_keys_are_tried_one_after_the_other_and_a_long_one_in_pieces(engine: Engine) {
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let recorder = Recorder::new("recorder");
    let running = site.start(&recorder, quick(1));
    for (key, last) in [("a", 25), ("b", 10), ("c", 10)] {
        recorder.fail(key, 1, Fault::Error, 1);
        site.emit(versions(key, 1..=last)).await;
        running.settle().await;
        site.clock.advance(Duration::from_secs(1));
    }
    let wanted = Redrive { events_per_second: NonZeroU32::new(10), ..all() };
    let plan = site.redrive(&wanted).await.unwrap();
    assert_eq!(plan.takes, Duration::from_millis(4_500));
    // What is applied half a second after each second.
    for expected in [[10, 0, 0], [20, 0, 0], [25, 10, 0], [25, 10, 10]] {
        let total: usize = expected.iter().sum();
        site.nudge().await;
        site.until(&format!("{expected:?}"), async || {
            site.count("SELECT COUNT(*) FROM applied").await >= i64::try_from(total).unwrap()
        })
        .await;
        let applied = site.applied().await;
        let counts = ["a", "b", "c"].map(|key| applied.get(key).map_or(0, Vec::len));
        assert_eq!(counts, expected);
        site.clock.advance(if expected == [20, 0, 0] { Duration::from_millis(1_500) } else { Duration::from_secs(1) });
    }
    site.until("all are free", async || site.parked().await.is_empty()).await;
    running.stop().await;
    let day = site.redrive(&wanted).await;
    assert_eq!(day, Err(Refusal::NoneParked));
}

async fn a_clock_set_back_by_more_than_a_day_does_not_freeze_a_redriven_key(engine: Engine) {
    let month = Duration::from_hours(24 * 30);
    let clock = Clock::manual(Timestamp(2 * i64::try_from(month.as_millis()).unwrap()));
    let site = Site::with_clock(engine, clock).await;
    let recorder = Recorder::new("recorder");
    let running = site.start(&recorder, quick(1));
    for key in ["a", "b"] {
        recorder.fail(key, 1, Fault::Error, 1);
        site.emit(versions(key, 1..=3_600)).await;
        running.settle().await;
    }
    running.stop().await;
    let wanted = Redrive { events_per_second: NonZeroU32::new(1), ..all() };
    site.redrive(&wanted).await.unwrap();
    let Site { world, broker } = site;
    let earlier = Site { world: crate::world::World { clock: Clock::manual(Timestamp(0)), ..world }, broker };
    let running = earlier.start(&recorder, quick(1));
    earlier.until("both were tried", async || earlier.applied().await.len() == 2).await;
    running.stop().await;
}

async fn only_what_the_filter_chooses_is_redriven(engine: Engine) {
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let recorder = Recorder::new("recorder");
    let running = site.start(&recorder, quick(1));
    for (key, fault) in [("a", Fault::Error), ("b", Fault::Panic), ("c", Fault::Error), ("d", Fault::Error)] {
        recorder.fail(key, 1, fault, 1);
        site.emit_as(if key == "c" { "switch.renamed" } else { "switch.turned" }, versions(key, 1..=2)).await;
        running.settle().await;
        site.clock.advance(Duration::from_secs(10));
    }
    running.stop().await;
    let at = |seconds: i64| Some(Timestamp(1_000_000_000 + seconds * 1_000));
    let by = Filter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (by(), vec!["a", "b", "c", "d"]),
        (Filter { projector: text("recorder"), ..by() }, vec!["a", "b", "c", "d"]),
        (Filter { projector: text("Recorder"), ..by() }, vec![]),
        (Filter { key: text("d"), ..by() }, vec!["d"]),
        (Filter { key: text("d "), ..by() }, vec![]),
        (Filter { event_type: text("switch.renamed"), ..by() }, vec!["c"]),
        (Filter { error: text("panicked: told"), ..by() }, vec!["b"]),
        (Filter { error: text("PANICKED"), ..by() }, vec![]),
        (Filter { error: text("%"), ..by() }, vec![]),
        (Filter { parked_from: at(10), parked_before: at(30), ..by() }, vec!["b", "c"]),
        (Filter { state: Some(State::Retrying), ..by() }, vec![]),
        (Filter { state: Some(State::Dead), parked_from: at(30), ..by() }, vec!["d"]),
    ] {
        assert_eq!(site.list(&filter).await, expected, "{filter:?}");
        let mut tx = site.db.read().await.unwrap();
        let plan = parking::plan(tx.conn(), &Redrive { filter: filter.clone(), ..all() }).await.unwrap();
        let keys: Vec<String> = plan.map_or(Vec::new(), |plan| plan.keys).into_iter().map(|key| key.key).collect();
        assert_eq!(keys, expected, "{filter:?}");
    }
    let filter = Filter { error: text("panicked"), ..by() };
    let reason = Some("the projector was mended".parse().unwrap());
    site.redrive(&Redrive { filter, reason, events_per_second: NonZeroU32::new(7), shown: None }).await.unwrap();
    let states: Vec<State> = site.parked().await.into_iter().map(|parked| parked.state).collect();
    assert_eq!(states, [State::Dead, State::Redriving, State::Dead, State::Dead]);
    // What is being redriven is no part of a further one, unless it is asked for.
    assert_eq!(site.redrive(&all()).await.unwrap().keys.len(), 3);
    let again = Filter { state: Some(State::Redriving), ..by() };
    assert_eq!(site.redrive(&Redrive { filter: again, ..all() }).await.unwrap().keys.len(), 4);

    let first = site.audit().await.pop().unwrap();
    assert_eq!((first.projector, first.key), (None, None));
    assert_eq!(first.reason.as_deref(), Some("the projector was mended"));
    let details: Value = serde_json::from_str(&first.details).unwrap();
    let expected = json!({"filter": {"error": "panicked"}, "events_per_second": 7, "keys": 1, "waiting": 2, "left": 0});
    assert_eq!(details, expected);
}

async fn a_redrive_and_its_audit_are_one_transaction(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, 1);
    let running = site.start(&recorder, quick(1));
    site.emit(versions("a", 1..=3)).await;
    running.settle().await;
    let before = site.only_parked().await;
    site.execute("ALTER TABLE audit RENAME TO gone").await;
    let wanted = one("a");
    let actor = tidings_backbone::audit::Actor::new("cli:ada");
    parking::redrive(&site.db, &wanted, &actor, None, site.clock.now()).await.unwrap_err();
    assert_eq!(site.only_parked().await, before);
    site.execute("ALTER TABLE gone RENAME TO audit").await;
    site.redrive(&wanted).await.unwrap();
    running.settle().await;
    running.stop().await;
    assert_eq!(site.applied().await["a"], [1, 2, 3]);
    assert_eq!(site.audit().await.len(), 1);
}

async fn of_more_keys_than_one_redrive_takes_the_rest_is_counted_and_comes_next(engine: Engine) {
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let count = i64::try_from(REDRIVE_KEYS_MAX).unwrap() + 5;
    let part = "outbox/0";
    let mut tx = site.db.write(Durability::Full).await.unwrap();
    let head = "INSERT INTO parked_key \
                (projector, part, event_key, state, attempts, next_attempt_at, error, parked_at) VALUES";
    let key = |number: i64| format!("key {number}");
    let rows = (0..count).map(|number| {
        ["recorder".into(), part.into(), key(number).into(), 1.into(), 3.into(), 0.into(), "".into(), number.into()]
    });
    tx.conn().execute_rows("parking", head, rows.collect(), "").await.unwrap();
    let head = "INSERT INTO parked_event (projector, part, event_key, log_offset, occurred_at, event) VALUES";
    let rows = (0..count)
        .map(|number| ["recorder".into(), part.into(), key(number).into(), number.into(), 0.into(), "{}".into()]);
    tx.conn().execute_rows("parking", head, rows.collect(), "").await.unwrap();
    tx.commit().await.unwrap();

    let key = IdempotencyKey { scope: "ada".to_owned(), key: "k".to_owned(), fingerprint: [1; 32] };
    let actor = tidings_backbone::audit::Actor::new("cli:ada");
    let redriven = async || parking::redrive(&site.db, &all(), &actor, Some(&key), site.clock.now()).await.unwrap();
    let first = redriven().await.unwrap();
    assert_eq!((first.keys.len(), first.waiting, first.left), (REDRIVE_KEYS_MAX, REDRIVE_KEYS_MAX as u64, 5));
    assert_eq!(
        (first.keys[0].key.as_str(), first.keys[9].key.as_str()),
        ("key 0", "key 9"),
        "the longest parked first"
    );
    let again = redriven().await.unwrap();
    let kept = first.keys[..REDRIVE_KEPT_KEYS_MAX].to_vec();
    assert_eq!(again, parking::Plan { keys: kept, ..first }, "what is stored of it is bounded");
    let next = site.redrive(&all()).await.unwrap();
    assert_eq!((next.keys.len(), next.left), (5, 0));
    assert_eq!(site.count("SELECT COUNT(*) FROM parked_key WHERE state = 2").await, count);
    assert_eq!(site.redrive(&all()).await, Err(Refusal::NoneParked));
}
