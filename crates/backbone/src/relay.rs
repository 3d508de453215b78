//! The relay: reads committed events out of a database and appends them to a log.
//!
//! A source (the binlog, or the outbox table where there is no binlog to be had) yields changes of
//! outbox rows in commit order; a formatter turns each into a [`Record`]; a sink appends records
//! and checkpoint in one step, so that a checkpoint never passes what was not acknowledged.

mod change;
mod checkpoint;
pub mod dead_letter;
pub mod format;
mod record;
mod seen;
pub mod sink;

pub use change::{Changes, ColumnNames, Places, Table};
pub use checkpoint::{Checkpoint, Partial, Position, Prepared, Recovery, TableSeen};
pub use dead_letter::{DeadLetter, Parked};
pub use format::{Format, Formatter, Route};
pub use record::Record;
pub use seen::{Gap, Seen};
pub use sink::{Sink, WriteError};
