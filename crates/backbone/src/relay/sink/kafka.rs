//! Records to Kafka, with the checkpoint in the same transaction.

use std::sync::Arc;

use super::WriteError;
use crate::{
    Error, Result,
    kafka::{
        Options,
        producer::Producer,
        topics::{self, Purpose},
    },
    relay::{DeadLetter, Record},
};

/// Appends to Kafka in transactions.
#[derive(Debug)]
pub struct Sink {
    producer: Producer,
    dead_letter_topic: Arc<str>,
}

impl Sink {
    /// Makes and checks the topics: `events` and the relay's own two. Relays of one `group` replace each
    /// other.
    ///
    /// # Errors
    /// When Kafka cannot be reached, or a topic is not as configured.
    pub async fn open(options: &Options, group: &str, events: &[String]) -> Result<Self> {
        let own =
            [(options.checkpoint_topic(), Purpose::Compacted), (options.dead_letter_topic(), Purpose::DeadLetters)];
        let events = events.iter().map(|topic| (topic.clone(), Purpose::Events));
        topics::ensure(options, &own.into_iter().chain(events).collect::<Vec<_>>()).await?;
        Ok(Self {
            producer: Producer::new(options.clone(), group.to_owned()),
            dead_letter_topic: options.dead_letter_topic().into(),
        })
    }

    pub(super) async fn take_over(&mut self) -> Result<Option<String>> {
        let checkpoint = self.producer.take_over().await?;
        let text = checkpoint.map(String::from_utf8).transpose();
        text.map_err(|error| Error::Invariant { message: format!("the relay's checkpoint is no text: {error}") })
    }

    pub(super) async fn write(
        &mut self,
        records: &[Record],
        dead: &[DeadLetter],
        checkpoint: &str,
    ) -> Result<(), WriteError> {
        let dead: Vec<Record> = dead
            .iter()
            .map(|letter| letter.to_record(&self.dead_letter_topic))
            .collect::<Result<_>>()
            .map_err(WriteError::Fatal)?;
        self.producer.write(records, &dead, checkpoint.as_bytes()).await
    }

    pub(super) fn record_bytes_max(&self) -> usize {
        self.producer.record_bytes_max()
    }
}
