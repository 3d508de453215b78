//! The features against a real SQLite file, driven by hand: a test says when events are applied.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bucket;
mod bucket_shared;
mod concurrency;
mod counters;
mod facts;
mod hot;
mod in_common;
mod lists;
mod model;
mod projector;
mod rebuild;
mod reconcile;
mod redis;
mod registry;
mod top_page;
mod verify;
mod world;
