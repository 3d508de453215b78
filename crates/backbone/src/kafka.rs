//! Apache Kafka: how it is reached, and the names of topics. The only room that knows its client.
//!
//! - [`topics`]: made and checked at start.
//! - `partition`: where a key is; `onlooker` reads topics from outside: `find` for one event, `scan` for all of a
//!   piece, `peek` for where they end.
//! - `producer`: records and a checkpoint in one transaction; `checkpoint` reads the last one back.

mod checkpoint;
pub(crate) mod find;
pub(crate) mod message;
mod onlooker;
mod partition;
pub(crate) mod peek;
pub(crate) mod producer;
pub(crate) mod progress;
pub(crate) mod scan;
pub mod topics;

use std::collections::BTreeMap;

use rdkafka::{ClientConfig, error::KafkaError, types::RDKafkaErrorCode};

pub(crate) use self::partition::partition_of;
use crate::limits::KAFKA_RECONNECT_GAP_MAX;

/// Whether an error is but the client's news that connections have ended, maybe long ago: it makes new ones by
/// itself. Whoever reads goes on reading, and is answered or has waited long enough.
pub(crate) fn is_news(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure};
    matches!(error.rdkafka_error_code(), Some(AllBrokersDown | BrokerTransportFailure))
}

/// Where Kafka is, and how its topics are named and made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `host:port`, several separated by commas.
    pub brokers: String,
    /// Further properties of librdkafka, such as `security.protocol`; they win over what is set here.
    pub properties: BTreeMap<String, String>,
    /// What the names of topics, consumer groups and transactional ids begin with: `tidings`.
    pub prefix: String,
    /// Partitions of a topic that is made; one that exists must have as many.
    pub partitions: i32,
    /// Replicas of a topic that is made.
    pub replicas: i32,
}

impl Options {
    /// The topic of a family of event types: `tidings.relation` for `relation.followed`.
    pub fn topic(&self, family: &str) -> String {
        format!("{}.{family}", self.prefix)
    }

    /// The compacted topic in which relays keep their checkpoints.
    pub fn checkpoint_topic(&self) -> String {
        format!("{}.relay-checkpoint", self.prefix)
    }

    /// Where records go that cannot be published as they are, each with the reason.
    pub fn dead_letter_topic(&self) -> String {
        format!("{}.relay-dead-letter", self.prefix)
    }

    /// A consumer that only looks, whoever else reads: it commits nothing, sees what is committed, and is told
    /// where a partition ends. `name` tells it from others in the broker's lists.
    pub(crate) fn onlooker(&self, name: &str) -> ClientConfig {
        let mut config = self.client();
        config
            .set("group.id", format!("{}.{name}", self.prefix))
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "10");
        config
    }

    /// What every client begins with.
    pub(crate) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers);
        config.set("client.id", &self.prefix);
        // A broker that is away is said once, by whoever waits for it, and not by each of its threads.
        config.set("log.connection.close", "false");
        // One that is back is found soon: 10 s by default, twice where a first answer only leads to the next question.
        config.set("reconnect.backoff.max.ms", KAFKA_RECONNECT_GAP_MAX.as_millis().to_string());
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
    }
}
