//! The product, run as users run it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod cli;
mod conformance;
mod console;
mod crash;
mod database;
mod guarantee_1;
mod guarantee_10;
mod guarantee_2;
mod guarantee_4;
mod guarantee_5;
mod guarantee_6;
mod guarantee_8;
mod guarantee_9;
mod interleavings;
mod journey;
mod paging;
mod parked;
mod rebuild;
mod reconcile;
mod reconcile_relation;
mod roles;
mod routes;
mod runbook;
mod telemetry;

use std::{cell::Cell, time::Duration};

use tidings_testkit::{Kind, Options, World};

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_tidings");
/// Longest time that a test waits for a state.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks whether it is there.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// A running world, the one that the environment chooses, with some keys of the configuration set.
async fn world(settings: &[(&str, &str)]) -> World {
    world_on(Kind::chosen(), settings).await
}

/// The embedded world, for tests that damage or look at what only it has.
async fn embedded(settings: &[(&str, &str)]) -> World {
    world_on(Kind::Embedded, settings).await
}

/// A running world of this kind.
async fn world_on(kind: Kind, settings: &[(&str, &str)]) -> World {
    World::start_with(Options::new(BINARY).on(kind).with_all(settings)).await
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(LOOK_GAP).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

/// Waits until a metric, summed over labels and processes, is as wanted.
async fn until_metric(world: &World, name: &str, wanted: impl Fn(f64) -> bool) {
    let last = Cell::new(f64::NAN);
    let waiting = async {
        loop {
            last.set(world.metric(name).await);
            if wanted(last.get()) {
                return;
            }
            tokio::time::sleep(LOOK_GAP).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{name} is {}", last.get()));
}
