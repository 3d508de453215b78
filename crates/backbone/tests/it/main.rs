//! The backbone against real databases and a real Kafka, with a tiny feature of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backlog;
mod db;
mod formats;
mod idempotency;
mod journey;
mod kafka;
mod ledger;
mod migrations;
mod onward;
mod parking;
mod projector;
mod proxy;
mod rebuild;
mod reconcile;
mod redis;
mod relay;
mod retention;
mod said;
mod sinks;
mod world;
