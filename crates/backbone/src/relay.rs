//! The relay: reads committed events out of a database and appends them to a log.
//!
//! A source (the binlog, or the outbox table where there is no binlog to be had) yields changes of
//! outbox rows in commit order; a formatter turns each into a [`Record`]; a sink appends records
//! and checkpoint in one step, so that a checkpoint never passes what was not acknowledged.

mod record;

pub use record::Record;
