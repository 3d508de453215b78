//! The journey of one event: each state that it can be in, told truly, and when it came about.

mod search;
mod site;
mod trail;

use std::{sync::Arc, time::Duration};

use tidings_backbone::{
    Clock, Conn, EventIds,
    journey::{RelayState, State},
    log::Recorded,
    parking::{Discard, Filter, Redrive, Which},
    projector::{ApplyError, Options, Projector, Target},
};
use tidings_testkit::{database::Engine, on_every_engine, on_every_server};

use self::site::{Site, quick_and_dead};
use crate::world::{Fault, Recorder};

on_every_engine!(
    an_event_is_told_before_and_after_its_projector_ran_and_what_is_not_taken_is_skipped,
    a_parked_event_is_retried_dead_and_redriven_and_told_at_the_time_of_none_but_the_last,
    a_discarded_event_is_told_so_and_the_rest_of_its_key_is_applied,
    what_was_pruned_is_told_as_long_as_a_copy_is_anywhere_and_what_never_was_is_not,
    without_a_trail_no_times_are_told_but_the_states_are_right,
    many_events_are_told_in_the_order_in_which_they_were_applied,
    what_takes_long_is_told_at_its_end,
);
on_every_server!(
    what_the_relay_has_not_come_to_is_waiting_what_is_gone_from_the_log_is_unknown_and_dead_letters_are_told
);

async fn an_event_is_told_before_and_after_its_projector_ran_and_what_is_not_taken_is_skipped(engine: Engine) {
    let site = Site::on(engine).await;
    let [first, event] = site.emit([("a", 1), ("a", 2)]).await;
    let [foreign] = site.emit_as("switch.blinked", [("a", 3)]).await;
    let handle = site.handle();
    let journey = handle.journey(event.id).await.unwrap().unwrap();
    assert_eq!((&journey.event, journey.trace_id()), (&event, None));
    let relayed = &journey.relayed;
    assert_eq!((relayed.state, relayed.at.is_some()), (RelayState::Relayed, true));
    let before = i64::from(engine == Engine::Sqlite);
    assert_eq!(relayed.offset.unwrap().0, 1 + before, "it is the second of its part");
    let [stage] = &journey.projectors[..] else { panic!("{journey:?}") };
    assert_eq!((&*stage.projector, stage.generation.0, stage.is_live), ("recorder", 1, true));
    assert_eq!((stage.state, stage.events_before, stage.at), (State::Waiting, 1, None));

    site.clock.advance(Duration::from_millis(700));
    let running = site.start(&Recorder::new("recorder"), quick_and_dead());
    running.settle().await;
    site.clock.advance(Duration::from_millis(300));
    for id in [first.id, event.id] {
        let stage = site.stage(&running, id).await;
        assert_eq!((stage.state, stage.resolution), (State::Applied, Some(Duration::from_millis(100))));
        let journey = handle.journey(id).await.unwrap().unwrap();
        assert_eq!(journey.after_ms(stage.at.unwrap()), 700, "{journey:?}");
    }
    let stage = site.stage(&running, foreign.id).await;
    assert_eq!((stage.state, stage.at, stage.events_before), (State::Skipped, None, 0));
    running.stop().await;
}

async fn a_parked_event_is_retried_dead_and_redriven_and_told_at_the_time_of_none_but_the_last(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, quick_and_dead());
    let [failing, behind] = site.emit([("a", 1), ("a", 2)]).await;
    let [other] = site.emit([("b", 1)]).await;
    site.until_state(&running, failing.id, State::Retrying).await;
    site.until_state(&running, other.id, State::Applied).await;
    let stage = site.until_state(&running, failing.id, State::Retrying).await;
    let parked_at = site.clock.now();
    assert_eq!((stage.attempts, stage.at, stage.events_before), (1, None, 0));
    assert!(stage.next_attempt_at.unwrap() > parked_at && stage.error.unwrap().contains("told to fail"));
    let stage = site.until_state(&running, behind.id, State::Waiting).await;
    assert_eq!((stage.attempts, stage.events_before), (0, 1));
    assert!(stage.error.unwrap().contains("told to fail"), "what it waits for is said");

    site.clock.advance(Duration::from_secs(1));
    site.nudge().await;
    let dead = site.until_state(&running, failing.id, State::Dead).await;
    assert_eq!((dead.attempts, dead.at, dead.next_attempt_at), (2, Some(site.clock.now()), None));
    assert_eq!(site.stage(&running, behind.id).await.state, State::Waiting);

    site.clock.advance(Duration::from_secs(1));
    recorder.fail("a", 1, Fault::Error, 0);
    site.redrive(&Redrive { filter: Filter::one("recorder", "a"), ..Redrive::default() }).await.unwrap();
    running.settle().await;
    for id in [failing.id, behind.id] {
        let stage = site.stage(&running, id).await;
        assert_eq!((stage.state, stage.at), (State::Applied, Some(site.clock.now())), "not when it was parked");
        assert_eq!((stage.resolution, stage.attempts), (Some(Duration::from_millis(1)), 0));
    }
    let stage = site.stage(&running, other.id).await;
    assert_eq!((stage.state, stage.at), (State::Applied, Some(parked_at)));
    running.stop().await;
}

async fn a_discarded_event_is_told_so_and_the_rest_of_its_key_is_applied(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, Options { gaps: crate::world::quick(1).gaps, ..quick_and_dead() });
    let [poison, behind] = site.emit([("a", 1), ("a", 2)]).await;
    site.until_state(&running, poison.id, State::Dead).await;
    site.clock.advance(Duration::from_secs(1));
    let discarded_at = site.clock.now();
    let which = Which::Id(poison.id.to_string());
    let wanted = Discard {
        projector: "recorder".to_owned(),
        key: "a".to_owned(),
        which,
        reason: "it is poison".parse().unwrap(),
    };
    site.discard(&wanted).await;
    running.settle().await;
    // Also when the outbox does not have it any more: it is in the audit.
    site.execute("DELETE FROM outbox").await;
    let stage = site.stage(&running, poison.id).await;
    assert_eq!((stage.state, stage.at, stage.attempts), (State::Discarded, Some(discarded_at), 0));
    site.until_told(&running, behind.id, engine != Engine::Sqlite).await;
    running.stop().await;
}

async fn what_was_pruned_is_told_as_long_as_a_copy_is_anywhere_and_what_never_was_is_not(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, Options { gaps: crate::world::quick(1).gaps, ..quick_and_dead() });
    let [parked] = site.emit([("a", 1)]).await;
    let [applied] = site.emit([("b", 1)]).await;
    site.until_state(&running, parked.id, State::Dead).await;
    site.until_state(&running, applied.id, State::Applied).await;
    let never = EventIds::from_seed(99).next(site.clock.now());
    assert_eq!(running.handle.journey(never).await.unwrap(), None);
    let foreign = "6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().unwrap();
    assert_eq!(running.handle.journey(foreign).await.unwrap(), None);

    let before = running.handle.journey(parked.id).await.unwrap().unwrap();
    site.execute("DELETE FROM outbox").await;
    let after = running.handle.journey(parked.id).await.unwrap().unwrap();
    assert_eq!(after, before, "the lot has a copy");
    // Kafka still has it; the embedded log was the outbox.
    let told = running.handle.journey(applied.id).await.unwrap();
    assert_eq!(told.is_some(), engine != Engine::Sqlite, "{told:?}");
    if let Some(told) = told {
        assert_eq!((&told.event, told.relayed.state), (&applied, RelayState::Relayed));
        assert_eq!(told.projectors[0].state, State::Applied);
    }
    running.stop().await;
}

async fn without_a_trail_no_times_are_told_but_the_states_are_right(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    recorder.fail("a", 1, Fault::Error, u32::MAX);
    let running = site.start(&recorder, Options { keeps_trail: false, ..quick_and_dead() });
    let [failing] = site.emit([("a", 1)]).await;
    let [other] = site.emit([("b", 1)]).await;
    site.until_state(&running, failing.id, State::Retrying).await;
    recorder.fail("a", 1, Fault::Error, 0);
    site.clock.advance(Duration::from_secs(1));
    site.nudge().await;
    for id in [failing.id, other.id] {
        let stage = site.until_state(&running, id, State::Applied).await;
        assert_eq!((stage.at, stage.resolution), (None, None));
    }
    running.stop().await;
    assert_eq!(site.count("SELECT COUNT(*) FROM projector_trail").await, 0);
    assert_eq!(site.count("SELECT COUNT(*) FROM applied_late").await, 0);
}

async fn many_events_are_told_in_the_order_in_which_they_were_applied(engine: Engine) {
    let site = Site::on(engine).await;
    let running = site.start(&Recorder::new("recorder"), Options { batch_events_max: 7, ..quick_and_dead() });
    let mut events = Vec::new();
    for round in 0..12_u64 {
        let keys = ["a", "b", "c", "d"];
        events.push((site.clock.now(), site.emit(keys.map(|key| (key, round + 1))).await));
        running.settle().await;
        site.clock.advance(Duration::from_millis(if round % 2 == 0 { 40 } else { 350 }));
    }
    for (at, events) in events {
        for event in events {
            let stage = site.stage(&running, event.id).await;
            let told = stage.at.unwrap_or_else(|| panic!("{stage:?}"));
            // Rounds of one tick are told at the last of them.
            assert!((0..100).contains(&(told.0 - at.0)), "applied at {}, told at {}", at.0, told.0);
        }
    }
    running.stop().await;
}

/// A projector during whose work time passes.
struct Slow {
    inner: Arc<Recorder>,
    clock: Clock,
}

#[async_trait::async_trait]
impl Projector for Slow {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn event_types(&self) -> &'static [&'static str] {
        self.inner.event_types()
    }

    async fn apply(&self, batch: &[Recorded], target: Target, conn: Conn<'_>) -> Result<(), ApplyError> {
        self.clock.advance(Duration::from_millis(700));
        self.inner.apply(batch, target, conn).await
    }
}

async fn what_takes_long_is_told_at_its_end(engine: Engine) {
    let site = Site::on(engine).await;
    let slow = Slow { inner: Recorder::new("recorder"), clock: site.clock.clone() };
    let running = site.start_as(Arc::new(slow), quick_and_dead());
    for version in 1..=3 {
        let [event] = site.emit([("a", version)]).await;
        running.settle().await;
        let journey = running.handle.journey(event.id).await.unwrap().unwrap();
        let stage = &journey.projectors[0];
        assert_eq!((stage.state, journey.after_ms(stage.at.unwrap())), (State::Applied, 700), "{stage:?}");
    }
    running.stop().await;
}

async fn what_the_relay_has_not_come_to_is_waiting_what_is_gone_from_the_log_is_unknown_and_dead_letters_are_told(
    engine: Engine,
) {
    let site = Site::on(engine).await;
    let running = site.start(&Recorder::new("recorder"), quick_and_dead());
    let [there] = site.emit([("a", 1)]).await;
    running.settle().await;
    let [waiting] = site.commit_only([("a", 2)]).await;
    let journey = running.handle.journey(waiting.id).await.unwrap().unwrap();
    let there = running.handle.journey(there.id).await.unwrap().unwrap();
    assert_eq!((journey.relayed.state, journey.relayed.offset), (RelayState::Waiting, None));
    assert_eq!(journey.relayed.part, there.relayed.part, "where it comes to is known");
    assert!(journey.relayed.behind.unwrap() >= 1);
    assert_eq!(journey.projectors[0].state, State::Waiting);

    // What is gone from the log, and was committed: nobody can tell where it was.
    site.relay(Vec::new()).await;
    let journey = running.handle.journey(waiting.id).await.unwrap().unwrap();
    assert_eq!((journey.relayed.state, journey.projectors[0].state), (RelayState::Unknown, State::Unknown));

    // What could not be published is with the dead letters, and so is what comes behind it.
    site.set_aside("a").await;
    let journey = running.handle.journey(waiting.id).await.unwrap().unwrap();
    assert_eq!((journey.relayed.state, journey.projectors[0].state), (RelayState::DeadLetter, State::Waiting));
    running.stop().await;

    // What retention may have removed is not said to be there, though its key was set aside since.
    let handle = site.handle();
    site.empty(&journey.relayed.part).await;
    let journey = handle.journey(waiting.id).await.unwrap().unwrap();
    assert_eq!((journey.relayed.state, journey.projectors[0].state), (RelayState::Unknown, State::Unknown));
    site.emit([("a", 3)]).await;
    site.clock.advance(Duration::from_mins(1));
    let [later] = site.commit_only([("a", 4)]).await;
    site.set_aside("a").await;
    let journey = handle.journey(waiting.id).await.unwrap().unwrap();
    assert_eq!(journey.relayed.state, RelayState::Unknown, "the part begins behind it");
    let journey = handle.journey(later.id).await.unwrap().unwrap();
    assert_eq!(journey.relayed.state, RelayState::DeadLetter, "the part begins before it");
}
