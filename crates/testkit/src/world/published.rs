//! What is in the topics of a world, as a consumer sees it that reads what is committed.

use std::{collections::BTreeSet, time::Duration};

use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaError,
};
use serde_json::Value;

use super::World;

/// How long brokers may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A record of a topic of events.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Its partition.
    pub partition: i32,
    /// Its key.
    pub key: String,
    /// The event, as CloudEvents JSON.
    pub event: Value,
}

impl World {
    /// Hands every record of a family's topic to `take`, in the order of its partition.
    ///
    /// # Panics
    /// When the world has no topics, or the brokers do not answer.
    pub async fn published(&self, family: &str, take: impl FnMut(Published) + Send + 'static) {
        let services = self.services.as_ref().expect("a distributed world");
        let (brokers, topic) = (services.brokers().to_owned(), format!("{}.{family}", services.prefix()));
        tokio::task::spawn_blocking(move || read(&brokers, &topic, take)).await.unwrap();
    }
}

fn read(brokers: &str, topic: &str, mut take: impl FnMut(Published)) {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", format!("{topic}.test"))
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .create()
        .unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).unwrap();
    let mut left: BTreeSet<i32> = metadata.topics()[0].partitions().iter().map(|part| part.id()).collect();
    assert!(!left.is_empty(), "{topic} is not there");
    let mut assigned = TopicPartitionList::new();
    for partition in &left {
        assigned.add_partition_offset(topic, *partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assigned).unwrap();
    while !left.is_empty() {
        match consumer.poll(PATIENCE).expect("the brokers should answer") {
            Ok(message) => take(Published {
                partition: message.partition(),
                key: String::from_utf8(message.key().unwrap_or_default().to_vec()).unwrap(),
                event: serde_json::from_slice(message.payload().unwrap_or_default()).unwrap(),
            }),
            Err(KafkaError::PartitionEOF(partition)) => drop(left.remove(&partition)),
            Err(error) => panic!("{topic}: {error}"),
        }
    }
}
