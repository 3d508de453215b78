//! The backbone against a real SQLite file, with a tiny feature of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats;
mod idempotency;
mod ledger;
mod parking;
mod projector;
mod relay;
mod retention;
mod sinks;
mod world;
