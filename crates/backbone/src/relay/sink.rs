//! Where records go: a closed set of places, each with its way of keeping the checkpoint beside them.
//!
//! | sink | one step | a stale writer | after a crash |
//! |---|---|---|---|
//! | [`kafka`] | one transaction | is refused by its transactional id | nothing is repeated |
//!
//! A sink is used by one task: [`Sink::take_over`] once, then [`Sink::write`] again and again.

pub mod kafka;

use super::{Checkpoint, DeadLetter, Record};
use crate::{Error, Result};

/// A place that records are appended to.
#[derive(Debug)]
pub enum Sink {
    /// Apache Kafka.
    Kafka(Box<kafka::Sink>),
}

/// Why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Somebody else has taken over since. Nothing was written, and nothing will be before
    /// [`Sink::take_over`].
    #[error("another relay of the group has taken over")]
    Fenced,
    /// The sink is away or busy. The same batch, with the same checkpoint, is to be written again: if
    /// it should be there already, it is not repeated (sinks that deliver at least once excepted).
    #[error("the sink did not take the batch")]
    Retriable(#[source] Error),
    /// The sink will never take one of the records. Nothing of the batch was written.
    #[error("the sink refuses a record: {reason}")]
    Refused {
        /// Its index in the batch.
        record: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Trying again is of no use before an operator has changed something.
    #[error("the sink cannot be written to")]
    Fatal(#[source] Error),
}

impl Sink {
    /// Takes over: fences whoever wrote before, and answers the last checkpoint of the group.
    ///
    /// # Errors
    /// When the sink cannot be reached ([`Error::is_transient`]) or used.
    pub async fn take_over(&mut self) -> Result<Option<Checkpoint>> {
        let text = match self {
            Self::Kafka(sink) => sink.take_over().await?,
        };
        text.as_deref().map(Checkpoint::from_json).transpose()
    }

    /// Appends the records, the dead letters and the checkpoint in one step.
    ///
    /// # Errors
    /// [`WriteError`] says what to do about each.
    pub async fn write(
        &mut self,
        records: &[Record],
        dead: &[DeadLetter],
        checkpoint: &Checkpoint,
    ) -> Result<(), WriteError> {
        let checkpoint = checkpoint.to_json().map_err(WriteError::Fatal)?;
        match self {
            Self::Kafka(sink) => sink.write(records, dead, &checkpoint).await,
        }
    }

    /// Bytes of key, value and headers that one record may have.
    pub fn record_bytes_max(&self) -> usize {
        match self {
            Self::Kafka(sink) => sink.record_bytes_max(),
        }
    }
}
