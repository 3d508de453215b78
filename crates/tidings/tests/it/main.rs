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

use tidings_testkit::{Kind, Options, World};

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_tidings");

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
