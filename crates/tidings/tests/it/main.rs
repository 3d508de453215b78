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
mod paging;
mod routes;

use tidings_testkit::{Options, World};

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_tidings");

/// A running world with some keys of the configuration set.
async fn world(settings: &[(&str, &str)]) -> World {
    World::start_with(Options::new(BINARY).with_all(settings)).await
}
