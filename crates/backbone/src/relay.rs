//! The relay: reads committed events out of a database and appends them to a log.
//!
//! A source (the binlog, or the outbox table where there is no binlog to be had) yields changes of
//! outbox rows in commit order; a formatter turns each into a [`Record`]; a sink appends records
//! and checkpoint in one step, so that a checkpoint never passes what was not acknowledged.
//!
//! [`Relay`] is all of it, and [`Config`] the file it can be made from; [`Source`] is the half that reads the
//! binlog, for those who have a sink of their own.

mod backoff;
mod binlog;
mod change;
mod checkpoint;
mod config;
mod connection;
pub mod dead_letter;
mod definition;
pub mod format;
mod lease;
mod options;
mod outlet;
mod poll;
mod record;
mod recover;
mod refusal;
mod runtime;
mod seen;
mod select;
mod server;
pub mod sink;
mod source;
mod status;
mod writer;

pub(crate) use binlog::has_read;
pub use change::{Changes, ColumnNames, Places, Table};
pub use checkpoint::{Checkpoint, Partial, Position, Prepared, Recovery, Sent, TableSeen};
pub use config::{Config, Mode};
pub use dead_letter::{DeadLetter, Parked};
pub use format::{Format, Formatter, Route};
pub use lease::{is_held, publish_lease};
pub use options::{FirstStart, Options, OutboxTable};
pub use outlet::{Batch, Batches};
pub(crate) use poll::{Left, left, left_before, pending_up_to};
pub use record::Record;
pub use refusal::Refusal;
pub use runtime::Relay;
pub use seen::{Gap, Known, Seen};
pub use sink::{Sink, WriteError};
pub use source::Source;
pub use status::{Handle, State, Status};
