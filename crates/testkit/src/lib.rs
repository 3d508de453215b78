//! What tests of the whole product stand on: worlds that run it as users do, a model of what it
//! must do, and the conformance suite that every world has to pass.
//!
//! In reading order:
//!
//! - [`process`]: a child process that never outlives its test.
//! - [`world`]: a running Tidings and the handle on its parts.
//! - [`caller`]: requests, as somebody.
//! - [`model`]: the follow graph in its plainest form.
//! - [`graph`]: generated graphs.
//! - [`conformance`]: the suite.
//! - [`database`]: a database for a test below the whole product, on each engine.
//! - [`servers`]: servers of a test's own, which it may kill, freeze and restart.
//! - [`topic`]: a topic of Kafka, read to its end.
//! - [`random`]: randomness that can be repeated.
//!
//! All but `database`, `servers` and `topic` goes through HTTP, the command line and signals: what only a test could do
//! would prove nothing about what users can.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "built for tests alone, which fail by panicking")]

pub mod caller;
pub mod conformance;
pub mod database;
pub mod graph;
pub mod model;
pub mod process;
pub mod random;
pub mod servers;
pub mod topic;
pub mod world;

pub use caller::{Answer, Caller};
pub use process::Process;
pub use world::{Capabilities, Kind, Options, Part, World};
