//! Reading the binlog: transactions of the outbox tables, in the order of their commits.
//!
//! - [`stream`]: one stream of events, which is never silent for long.
//! - [`place`]: where it stands, always between two transactions.
//! - [`tables`], [`value`]: what the rows of the outbox tables mean.
//! - [`group`]: what an event means for the transaction that it belongs to.
//! - [`reader`], [`transaction`]: streams into batches.
//! - [`detour`]: a transaction that is read once more, since only now it is known to have committed.

mod detour;
mod group;
mod place;
mod reader;
mod rows;
mod stream;
mod tables;
mod transaction;
mod value;

pub(super) use place::Place;
pub(crate) use place::has_read;
pub(super) use reader::{Reader, RowsMissing, at};
