//! How many events went through relay and projector, and how long after their commits.

use serde_json::Value;
use tidings_backbone::clock::Stopwatch;
use tidings_testkit::{Kind, Options, World, on_every_world};

use crate::{database::Hand, until, until_metric};

on_every_world!(each_event_is_counted_once_and_took_as_long_as_it_was_held_back);

/// So long nothing behind the outbox works.
const HELD_MS: i64 = 1_500;

/// What a stage tells of events.
struct Stage {
    events: &'static str,
    delay: &'static str,
}

const RELAY: Stage = Stage { events: "tidings_relay_records_total", delay: "tidings_relay_delay_seconds" };
const PROJECTOR: Stage = Stage { events: "tidings_projector_events_total", delay: "tidings_projector_delay_seconds" };

impl Stage {
    /// So many have gone through it, each by itself; answers how long they took, all together.
    async fn took(&self, world: &World, events: u32) -> f64 {
        let are_told = |told: f64| told == f64::from(events);
        until_metric(world, self.events, are_told).await;
        until_metric(world, &format!("{}_count", self.delay), are_told).await;
        world.metric(&format!("{}_sum", self.delay)).await
    }
}

async fn each_event_is_counted_once_and_took_as_long_as_it_was_held_back(kind: Kind) {
    let options = Options::new(crate::BINARY).on(kind);
    let (options, stages) = match kind {
        Kind::Embedded => (options, &[PROJECTOR][..]),
        Kind::Mariadb | Kind::Mysql => (options.apart(), &[RELAY, PROJECTOR][..]),
    };
    let world = World::start_with(options).await;
    world.register(1..=4).await;
    world.drain().await;
    // The outbox is read whole, of the topics those with events that the projector takes.
    let dealt_with = if kind == Kind::Embedded { 4.0 } else { 0.0 };
    until_metric(&world, PROJECTOR.events, |events| events == dealt_with).await;
    if kind != Kind::Embedded {
        until_metric(&world, RELAY.events, |records| records == 4.0).await;
    }

    let all = Stopwatch::start();
    let held_s = held_back(&world, kind).await;
    world.start().await;
    let mut took = Vec::new();
    for stage in stages {
        let delay = stage.took(&world, 1).await;
        assert!(delay >= held_s && delay < all.seconds() + 1.0, "{}: {delay} s, held {held_s} s", stage.delay);
        took.push(delay);
    }
    let rest = Stopwatch::start();
    let caller = world.user(1).await;
    for (events, to) in [(2, 3), (3, 4)] {
        caller.follow(to).await;
        for (stage, took) in stages.iter().zip(&took) {
            let delay = stage.took(&world, events).await - took;
            assert!(delay >= 0.0 && delay < rest.seconds() + 1.0, "{}: {delay} s", stage.delay);
        }
    }
}

/// A follow that is committed while nothing behind the outbox works; then no process runs. Answers for how many seconds
/// at least it has waited.
async fn held_back(world: &World, kind: Kind) -> f64 {
    let mut hand = Hand::in_database_of(world).await;
    if kind == Kind::Embedded {
        let held = "BEFORE UPDATE ON projector_position BEGIN SELECT RAISE(ABORT, 'held'); END";
        hand.run(format!("CREATE TRIGGER held {held}")).await;
    } else {
        for part in world.capabilities().parts.iter().filter(|part| !part.has_api()) {
            assert!(world.stop_part(*part).await.success(), "{part:?}");
        }
    }
    world.user(1).await.follow(2).await;
    let committed = Stopwatch::start();
    assert!(world.stop().await.success());
    if kind == Kind::Embedded {
        hand.run("DROP TRIGGER held").await;
    }
    until("the event to have been held back", async || {
        let lag: Value = serde_json::from_str(&world.run(&["lag", "--json"]).await).unwrap();
        // Of what is not relayed the log does not know.
        let behind = if kind == Kind::Embedded { &lag["projectors"][0] } else { &lag["relay"] };
        behind["oldest_age_ms"].as_i64().is_some_and(|age| age >= HELD_MS)
    })
    .await;
    committed.seconds()
}
