//! Events that are in the outbox and in the log, with a clock that is moved by hand.

use std::{ops::Deref, sync::Arc, time::Duration};

use tidings_backbone::{
    Clock, Durability,
    audit::Actor,
    journey::{Stage, State},
    log::Part,
    outbox,
    parking::{self, Discard},
    projector::{Gaps, Handle, Options, Projector, Runtime},
};
use tidings_event::{Event, EventId};
use tidings_testkit::database::Engine;

use crate::{
    kafka::{Broker, eventually},
    world::{Recorder, Running, World},
};

const TURNED: &str = "switch.turned";

/// A database with an outbox, and the log beside it where that is not the outbox.
pub(super) struct Site {
    world: World,
    broker: Option<Broker>,
}

impl Deref for Site {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// Two tries with a pause that only the clock of the test ends, as long as it does not take minutes.
pub(super) fn quick_and_dead() -> Options {
    let gap = Duration::from_millis(400);
    Options { gaps: Gaps { attempts_max: 2, first: gap, longest: gap }, ..Options::default() }
}

impl Site {
    /// The clock begins now, since brokers have the machine's: it may be moved by a few seconds.
    pub(super) async fn on(engine: Engine) -> Self {
        let world = World::on_with_clock(engine, Clock::manual(Clock::system().now())).await;
        if engine == Engine::Sqlite {
            world.record_order().await;
            return Self { world, broker: None };
        }
        let broker = Broker::new(3).await;
        Self { world: world.reading(&broker).await, broker: Some(broker) }
    }

    /// Commits events, `(key, version)` each, and appends them to the log.
    pub(super) async fn emit<const N: usize>(&self, events: [(&str, u64); N]) -> [Event; N] {
        self.emit_as(TURNED, events).await
    }

    pub(super) async fn emit_as<const N: usize>(&self, event_type: &str, events: [(&str, u64); N]) -> [Event; N] {
        let events = self.committed(event_type, events).await;
        self.relay(events.to_vec()).await;
        events
    }

    /// Commits events that no relay comes to.
    pub(super) async fn commit_only<const N: usize>(&self, events: [(&str, u64); N]) -> [Event; N] {
        self.committed(TURNED, events).await
    }

    async fn committed<const N: usize>(&self, event_type: &str, events: [(&str, u64); N]) -> [Event; N] {
        let events = events.map(|(key, version)| self.event(event_type, key, version));
        let mut tx = self.db.write(Durability::Full).await.unwrap();
        outbox::emit(tx.conn(), events.to_vec()).await.unwrap();
        tx.commit().await.unwrap();
        events
    }

    /// What became of an event for the recorder.
    pub(super) async fn stage(&self, running: &Running, id: EventId) -> Stage {
        let journey = running.handle.journey(id).await.unwrap().unwrap();
        let mut stages = journey.projectors;
        assert_eq!(stages.len(), 1, "{stages:?}");
        stages.remove(0)
    }

    pub(super) async fn until_state(&self, running: &Running, id: EventId, state: State) -> Stage {
        let what = format!("the event to be {}", state.name());
        eventually(&what, async || self.stage(running, id).await.state == state).await;
        self.stage(running, id).await
    }

    /// Whether the event is told at all.
    pub(super) async fn until_told(&self, running: &Running, id: EventId, is_told: bool) {
        eventually("the event to be told, or not", async || {
            running.handle.journey(id).await.unwrap().is_some() == is_told
        })
        .await;
    }

    pub(super) async fn discard(&self, wanted: &Discard) {
        let discarded = parking::discard(&self.db, wanted, &Actor::new("cli:ada"), None, self.clock.now()).await;
        discarded.unwrap().unwrap();
    }

    /// A commit that changes nothing: a clock that is moved by hand wakes nobody.
    pub(super) async fn nudge(&self) {
        self.execute("DELETE FROM switch").await;
    }

    /// Appends events to the log, as a relay does that has published all that the outbox holds.
    pub(super) async fn relay(&self, events: Vec<Event>) {
        let head = self.log.extent().await.unwrap().head;
        if let Some(broker) = &self.broker {
            broker.append_relayed(events, u64::try_from(head.0).unwrap());
        }
    }

    /// Tells of the outbox's events what a relay does that has set those of a key aside.
    pub(super) async fn set_aside(&self, key: &str) {
        let head = self.log.extent().await.unwrap().head;
        let broker = self.broker.as_ref().unwrap();
        broker.set_aside(key, u64::try_from(head.0).unwrap());
    }

    /// What Kafka's retention does to all that a part holds.
    pub(super) async fn empty(&self, part: &Part) {
        self.broker.as_ref().unwrap().empty(part).await;
    }

    /// Tells of events without running a projector.
    pub(super) fn handle(&self) -> Handle {
        let recorder: Arc<dyn Projector> = Recorder::new("recorder");
        let runtime = Runtime::new(self.db.clone(), self.log.clone(), self.clock.clone());
        runtime.with(recorder, quick_and_dead()).handle()
    }
}
