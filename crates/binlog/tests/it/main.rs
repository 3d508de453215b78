//! The binlogs of real servers, byte for byte, and bytes that no server wrote.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compressed;
mod damage;
mod gtids;
mod images;
mod json;
mod metadata;
mod model;
mod round_trips;
mod samples;
mod streams;
mod tables;
mod transactions;
mod values;
