//! Where records go: a closed set of places, each with its way of keeping the checkpoint beside them.
//!
//! | sink | one step | a stale writer | after a crash |
//! |---|---|---|---|
//! | [`kafka`] | one transaction | is refused by its transactional id | nothing is repeated |
//! | [`redis`] | one script | is refused by compare-and-set | nothing is repeated |
//! | [`webhook`] | each record, then a file | is kept out by a file lock | the last batch may be repeated |
//! | [`stdout`] | all lines, then a file | is kept out by a file lock | the last batch may be repeated |
//!
//! A sink is used by one task: [`Sink::take_over`] once, then [`Sink::write`] again and again.

pub mod kafka;
mod place;
pub mod redis;
pub mod stdout;
pub mod webhook;

use serde::Deserialize;

use super::{Checkpoint, DeadLetter, Record};
use crate::{Clock, Error, Result, limits::REDIS_RECORD_BYTES_MAX};

/// A place that records are appended to.
#[derive(Debug)]
pub enum Sink {
    /// Apache Kafka.
    Kafka(Box<kafka::Sink>),
    /// Redis Streams.
    Redis(Box<redis::Sink>),
    /// A signed webhook.
    Webhook(Box<webhook::Sink>),
    /// The standard output.
    Stdout(Box<stdout::Sink>),
}

/// Where the records of a relay go, as its configuration says.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Options {
    /// Apache Kafka.
    Kafka(kafka::Options),
    /// Redis Streams.
    Redis(redis::Options),
    /// A signed webhook.
    Webhook(Box<webhook::Options>),
    /// The standard output.
    Stdout(stdout::Options),
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
    /// The sink is away or busy, and batches that it had been given by [`Sink::append`] are not kept there:
    /// what comes behind the stored checkpoint is to be read again.
    #[error("the sink did not take all batches of a transaction")]
    Void(#[source] Error),
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
    /// The sink of a configuration, for the relays of one group. It connects when it is first used.
    ///
    /// # Errors
    /// When the configuration has what cannot be.
    pub fn open(options: &Options, group: &str, clock: &Clock) -> Result<Self> {
        Ok(match options {
            Options::Kafka(options) => Self::Kafka(Box::new(kafka::Sink::from_options(options, group))),
            Options::Redis(options) => Self::Redis(Box::new(redis::Sink::open(options, group)?)),
            Options::Webhook(options) => Self::Webhook(Box::new(webhook::Sink::open(options, clock.clone())?)),
            Options::Stdout(options) => Self::Stdout(Box::new(stdout::Sink::open(&options.file, std::io::stdout()))),
        })
    }

    /// Takes over: fences whoever wrote before, and answers the last checkpoint of the group.
    ///
    /// # Errors
    /// When the sink cannot be reached ([`Error::is_transient`]) or used.
    pub async fn take_over(&mut self) -> Result<Option<Checkpoint>> {
        let text = match self {
            Self::Kafka(sink) => sink.take_over().await?,
            Self::Redis(sink) => sink.take_over().await?,
            Self::Webhook(sink) => sink.take_over()?,
            Self::Stdout(sink) => sink.take_over()?,
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
            Self::Redis(sink) => sink.write(records, dead, &checkpoint).await,
            Self::Webhook(sink) => sink.write(records, dead, &checkpoint).await,
            Self::Stdout(sink) => sink.write(records, dead, &checkpoint).await,
        }
    }

    /// Whether [`append`](Self::append) can be used.
    pub fn appends(&self) -> bool {
        matches!(self, Self::Kafka(_))
    }

    /// Gives the sink a batch that becomes visible with the next one that is written, in the same step.
    ///
    /// # Errors
    /// [`WriteError`] says what to do about each.
    pub async fn append(&mut self, records: &[Record], dead: &[DeadLetter]) -> Result<(), WriteError> {
        match self {
            Self::Kafka(sink) => sink.append(records, dead).await,
            Self::Redis(_) | Self::Webhook(_) | Self::Stdout(_) => {
                let message = "only Kafka takes batches without a checkpoint".to_owned();
                Err(WriteError::Fatal(Error::Invariant { message }))
            }
        }
    }

    /// Bytes of key, value and headers that one record may have.
    pub fn record_bytes_max(&self) -> usize {
        match self {
            Self::Kafka(sink) => sink.record_bytes_max(),
            Self::Redis(_) => REDIS_RECORD_BYTES_MAX,
            Self::Webhook(sink) => sink.record_bytes_max(),
            Self::Stdout(sink) => sink.record_bytes_max(),
        }
    }
}
