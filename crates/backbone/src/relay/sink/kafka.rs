//! Records to Kafka, with the checkpoint in the same transaction.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;

use super::WriteError;
use crate::{
    Error, Result,
    kafka::{
        self,
        producer::Producer,
        topics::{self, Purpose},
    },
    relay::{DeadLetter, Record},
};

/// Where Kafka is, and which of its topics are the relay's.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `host:port`, several separated by commas.
    pub brokers: String,
    /// Further properties of librdkafka, such as `security.protocol`; none.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// What the names of the relay's own topics and its transactional id begin with: `tidings`.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// Topics that are made where they are missing, and must have `partitions` partitions; none.
    #[serde(default)]
    pub topics: Vec<String>,
    /// Partitions of these; 12.
    #[serde(default = "partitions")]
    pub partitions: i32,
    /// Replicas of a topic that is made; 1.
    #[serde(default = "replicas")]
    pub replicas: i32,
}

fn prefix() -> String {
    "tidings".to_owned()
}

fn partitions() -> i32 {
    12
}

fn replicas() -> i32 {
    1
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The properties may hold a password.
        f.debug_struct("Options")
            .field("brokers", &self.brokers)
            .field("prefix", &self.prefix)
            .field("topics", &self.topics)
            .finish_non_exhaustive()
    }
}

/// Appends to Kafka in transactions.
pub struct Sink {
    kafka: kafka::Options,
    topics: Vec<(String, Purpose)>,
    has_topics: bool,
    producer: Producer,
    dead_letter_topic: Arc<str>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("producer", &self.producer).field("topics", &self.topics).finish_non_exhaustive()
    }
}

impl Sink {
    /// A sink for the relays of one group, which replace each other. Connects when it is first used, and
    /// makes the topics then: `events` and the relay's own two.
    pub fn open(options: &kafka::Options, group: &str, events: &[String]) -> Self {
        let own =
            [(options.checkpoint_topic(), Purpose::Compacted), (options.dead_letter_topic(), Purpose::DeadLetters)];
        let events = events.iter().map(|topic| (topic.clone(), Purpose::Events));
        Self {
            topics: own.into_iter().chain(events).collect(),
            has_topics: false,
            producer: Producer::new(options.clone(), group.to_owned()),
            dead_letter_topic: options.dead_letter_topic().into(),
            kafka: options.clone(),
        }
    }

    /// The same from the configuration of a relay that is run alone.
    pub(super) fn from_options(options: &Options, group: &str) -> Self {
        let kafka = kafka::Options {
            brokers: options.brokers.clone(),
            properties: options.properties.clone(),
            prefix: options.prefix.clone(),
            partitions: options.partitions,
            replicas: options.replicas,
        };
        Self::open(&kafka, group, &options.topics)
    }

    pub(super) async fn take_over(&mut self) -> Result<Option<String>> {
        if !self.has_topics {
            topics::ensure(&self.kafka, &self.topics).await?;
            self.has_topics = true;
        }
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
        let dead = self.dead_letters(dead)?;
        self.producer.write(records, &dead, checkpoint.as_bytes()).await
    }

    pub(super) async fn append(&mut self, records: &[Record], dead: &[DeadLetter]) -> Result<(), WriteError> {
        let dead = self.dead_letters(dead)?;
        self.producer.append(records, &dead).await
    }

    fn dead_letters(&self, dead: &[DeadLetter]) -> Result<Vec<Record>, WriteError> {
        let records = dead.iter().map(|letter| letter.to_record(&self.dead_letter_topic));
        records.collect::<Result<_>>().map_err(WriteError::Fatal)
    }

    pub(super) fn record_bytes_max(&self) -> usize {
        self.producer.record_bytes_max()
    }
}
