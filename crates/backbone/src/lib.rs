//! The path of an event, usable alone: a row and an event committed in one transaction, and
//! everything else following from the event.
//!
//! This room knows databases, retries and positions. It does not know what a follow is.
//!
//! In reading order, which is the order of the path:
//!
//! - [`db`]: one SQL text, the engine at the edge.
//! - [`ledger`]: concurrent commands commit together, each with its own outcome.
//! - [`outbox`]: events written in the transaction of their fact.
//! - [`relay`]: committed events out of a database into the log, where the log is not the outbox.
//! - [`log`]: committed events in order; embedded, the outbox itself.
//! - [`projector`]: batches of events applied with their position in one transaction.
//! - [`parking`]: where a key waits after one of its events failed, and what an operator does about it.
//! - [`alerts`]: somebody is told when a key dies.
//! - [`audit`]: who did what, and why.
//! - [`journey`]: where one event is on this path, and since when.
//! - [`reconcile`]: what follows from facts compared with them, and repaired by events.
//! - [`kafka`]: the log of the distributed mode.
//! - [`redis`]: hot state and caches of the distributed mode.
//! - [`trace`]: the spans of one request on this path; [`telemetry`]: its metrics.
//! - [`retention`]: old events go, but never past a projector.
//!
//! `examples/own_event.rs` shows an own event type, an own transaction and an own projector,
//! `examples/own_operations.rs` how such a projector is operated.

pub mod alerts;
pub mod audit;
pub mod clock;
mod counted;
pub mod db;
mod error;
pub mod idempotency;
pub mod journey;
pub mod kafka;
pub mod ledger;
pub mod limits;
pub mod log;
pub mod outbox;
pub mod parking;
pub mod projector;
pub mod reconcile;
pub mod redis;
pub mod relay;
pub mod retention;
pub mod telemetry;
pub mod trace;

pub use clock::{Clock, EventIds};
pub use db::{Conn, Db, Durability, Tx};
pub use error::{Error, Result};
pub use redis::Redis;
