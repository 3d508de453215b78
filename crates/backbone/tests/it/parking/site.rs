//! A parking lot with its log on each engine: embedded, or on a server with a Kafka before it.

use std::{collections::HashMap, ops::Deref};

use tidings_backbone::{
    Clock, Error, audit,
    parking::{self, Discard, Discarded, Filter, Refusal, Which},
};
use tidings_testkit::database::Engine;

use crate::{kafka::Broker, world::World};

pub(super) const TURNED: &str = "switch.turned";

pub(crate) struct Site {
    pub(super) world: World,
    pub(super) broker: Option<Broker>,
}

impl Deref for Site {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Site {
    pub(crate) async fn on(engine: Engine) -> Self {
        Self::with_clock(engine, Clock::system()).await
    }

    pub(super) async fn with_clock(engine: Engine, clock: Clock) -> Self {
        let world = World::on_with_clock(engine, clock).await;
        if engine == Engine::Sqlite {
            world.record_order().await;
            return Self { world, broker: None };
        }
        let broker = Broker::new(3).await;
        Self { world: world.reading(&broker).await, broker: Some(broker) }
    }

    /// Commits events where the projectors read them, `(key, version)` each.
    pub(crate) async fn emit(&self, events: impl IntoIterator<Item = (String, u64)>) {
        self.emit_as(TURNED, events).await;
    }

    pub(super) async fn emit_as(&self, event_type: &str, events: impl IntoIterator<Item = (String, u64)>) {
        match &self.broker {
            None => self.world.emit(event_type, events).await,
            Some(broker) => broker.append(self.events(event_type, events)),
        }
    }

    /// Versions by key, in the order in which they were applied.
    pub(crate) async fn applied(&self) -> HashMap<String, Vec<i64>> {
        self.applied_by_key().await
    }

    /// The one key of the recorder that is parked.
    pub(super) async fn only_parked(&self) -> parking::ParkedKey {
        let mut parked = self.parked().await;
        assert_eq!(parked.len(), 1, "{parked:?}");
        parked.remove(0)
    }

    pub(super) async fn list(&self, filter: &Filter) -> Vec<String> {
        let mut tx = self.db.read().await.unwrap();
        let keys = parking::list(tx.conn(), filter, None, 1_000).await.unwrap();
        keys.into_iter().map(|parked| parked.key).collect()
    }

    pub(super) async fn waiting(&self, key: &str) -> Vec<parking::WaitingEvent> {
        let mut tx = self.db.read().await.unwrap();
        parking::events(tx.conn(), "recorder", key, None, 10_000).await.unwrap().0
    }

    pub(super) async fn discard(&self, key: &str, which: Which) -> Result<Result<Discarded, Refusal>, Error> {
        let reason = "it is poison".parse().unwrap();
        let wanted = Discard { projector: "recorder".to_owned(), key: key.to_owned(), which, reason };
        parking::discard(&self.db, &wanted, &audit::Actor::new("cli:ada"), None, self.clock.now()).await
    }

    pub(super) async fn audit(&self) -> Vec<audit::Record> {
        let mut tx = self.db.read().await.unwrap();
        audit::list(tx.conn(), None, 10_000).await.unwrap()
    }

    /// A commit that changes nothing, so that whoever waits for one looks again: a clock that is moved by hand
    /// wakes nobody.
    pub(super) async fn nudge(&self) {
        self.execute("DELETE FROM switch").await;
    }
}

pub(super) fn versions(key: &str, versions: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = (String, u64)> {
    versions.map(move |version| (key.to_owned(), version))
}

/// The version that an event of the recorder has.
pub(super) fn version(event: &parking::WaitingEvent) -> u64 {
    tidings_event::cloudevents::json::decode(event.event.as_bytes()).unwrap().version
}
