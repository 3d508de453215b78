//! A topic of Kafka, read to its end as a consumer sees it that reads what is committed.

use std::{collections::BTreeSet, time::Duration};

use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaError,
    message::BorrowedMessage,
};

/// How long brokers may take to answer, and to end a transaction that a dead process left open.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK_GAP: Duration = Duration::from_millis(10);

/// Hands each committed record of a topic to `take`, in the order of its partition. Blocks.
///
/// A broker answers a commit before every partition has its mark, so a reader could come to an end that lies before
/// what was committed already. Whatever is written at the time of the call is therefore waited for until it is
/// committed or given up. A topic that nobody has made yet has no records.
///
/// # Panics
/// When the brokers do not answer.
pub fn read(brokers: &str, topic: &str, take: impl FnMut(&BorrowedMessage<'_>)) {
    settle(brokers, topic);
    read_visible(brokers, topic, take);
}

/// The same of what can be seen now, for a test that has a transaction under way.
///
/// # Panics
/// When the brokers do not answer.
pub fn read_visible(brokers: &str, topic: &str, mut take: impl FnMut(&BorrowedMessage<'_>)) {
    let consumer = consumer(brokers, topic, "read_committed");
    let mut left = partitions(&consumer, topic);
    let mut assigned = TopicPartitionList::new();
    for partition in &left {
        assigned.add_partition_offset(topic, *partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assigned).unwrap();
    while !left.is_empty() {
        match consumer.poll(PATIENCE).expect("the brokers should answer") {
            Ok(message) => take(&message),
            Err(KafkaError::PartitionEOF(partition)) => drop(left.remove(&partition)),
            Err(error) => panic!("{topic}: {error}"),
        }
    }
}

/// Waits until no partition has a transaction under way before what is its end now.
fn settle(brokers: &str, topic: &str) {
    let [written, committed] =
        ["read_uncommitted", "read_committed"].map(|isolation| consumer(brokers, topic, isolation));
    for partition in partitions(&written, topic) {
        let written = end(&written, topic, partition);
        let has_come = || end(&committed, topic, partition) >= written;
        assert!(looks().any(|()| has_come()), "{topic}/{partition}: a transaction does not end");
    }
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> BTreeSet<i32> {
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).unwrap();
    metadata.topics()[0].partitions().iter().map(|part| part.id()).collect()
}

/// The offset that the next record will have, of those that this consumer may see.
fn end(consumer: &BaseConsumer, topic: &str, partition: i32) -> i64 {
    let ask = || consumer.fetch_watermarks(topic, partition, PATIENCE);
    // The partition of a topic that was just made may have no leader yet.
    let answer = looks().map(|()| ask()).find(|answer| !matches!(answer, Err(KafkaError::MetadataFetch(_))));
    answer.unwrap_or_else(ask).unwrap().1
}

/// One at once, and more with a gap between them for as long as there is patience.
fn looks() -> impl Iterator<Item = ()> {
    (0..PATIENCE.as_millis() / LOOK_GAP.as_millis()).map(|look| {
        if look > 0 {
            std::thread::sleep(LOOK_GAP);
        }
    })
}

fn consumer(brokers: &str, topic: &str, isolation: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", format!("{topic}.test"))
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", isolation)
        .set("fetch.wait.max.ms", "1")
        .create()
        .unwrap()
}
