//! Topics of a test's own on a real Kafka, and a producer for them.

use std::time::Duration;

use rdkafka::{
    ClientConfig, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
    message::OwnedHeaders,
    producer::{BaseProducer, BaseRecord, Producer},
};
use tidings_backbone::{
    kafka::{
        Options,
        topics::{self, Purpose},
    },
    log::Part,
    relay::Checkpoint,
};
use tidings_event::{Event, cloudevents};

use crate::world::PATIENCE;

/// Records that the producer's queue has room for.
const NOISE_AT_ONCE: usize = 50_000;

pub(crate) struct Broker {
    pub(crate) options: Options,
    producer: BaseProducer,
}

impl Broker {
    /// A topic `switch` with so many partitions, under a prefix of its own.
    pub(crate) async fn new(partitions: i32) -> Self {
        let brokers = std::env::var("TIDINGS_TEST_KAFKA")
            .unwrap_or_else(|_| panic!("TIDINGS_TEST_KAFKA names the brokers; `scripts/test` starts one and sets it"));
        Self::on(brokers, partitions).await
    }

    /// The same on brokers of one's own.
    pub(crate) async fn on(brokers: String, partitions: i32) -> Self {
        let prefix =
            format!("t{}", tidings_backbone::EventIds::from_os().next(tidings_backbone::Clock::system().now()));
        let options = Options { brokers, properties: Default::default(), prefix, partitions, replicas: 1 };
        // No relay writes here, so its checkpoints stay empty: what settles asks for them all the same.
        let wanted = [(options.topic("switch"), Purpose::Events), (options.checkpoint_topic(), Purpose::Compacted)];
        topics::ensure(&options, &wanted).await.unwrap();
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", &options.brokers)
            .set("transactional.id", format!("{}.test", options.prefix))
            .set("partitioner", "murmur2_random")
            .create()
            .unwrap();
        producer.init_transactions(PATIENCE).unwrap();
        Self { options, producer }
    }

    /// Appends events in one transaction.
    pub(crate) fn append(&self, events: impl IntoIterator<Item = Event>) {
        self.producer.begin_transaction().unwrap();
        self.send_all(events);
        self.producer.commit_transaction(PATIENCE).unwrap();
    }

    /// Appends events as a relay does that has published the outbox up to a number.
    pub(crate) fn append_relayed(&self, events: impl IntoIterator<Item = Event>, up_to: u64) {
        let mut checkpoint = Checkpoint::default();
        checkpoint.seen("outbox").max = up_to;
        self.append_with(events, &checkpoint);
    }

    /// Appends a checkpoint as a relay does that has set all aside that the outbox still held of a key.
    pub(crate) fn set_aside(&self, key: &str, up_to: u64) {
        let mut checkpoint = Checkpoint::default();
        checkpoint.seen("outbox").max = up_to;
        checkpoint.parked.park(key).unwrap();
        self.append_with([], &checkpoint);
    }

    fn append_with(&self, events: impl IntoIterator<Item = Event>, checkpoint: &Checkpoint) {
        self.producer.begin_transaction().unwrap();
        self.send_all(events);
        let (topic, value) = (self.options.checkpoint_topic(), checkpoint.to_json().unwrap());
        self.send(&topic, self.options.prefix.as_bytes(), value.as_bytes());
        self.producer.commit_transaction(PATIENCE).unwrap();
    }

    /// Appends events in a transaction that is then given up.
    pub(crate) fn append_aborted(&self, events: impl IntoIterator<Item = Event>) {
        self.producer.begin_transaction().unwrap();
        self.send_all(events);
        self.producer.flush(PATIENCE).unwrap();
        self.producer.abort_transaction(PATIENCE).unwrap();
    }

    /// Appends many records of others, as fast as can be.
    pub(crate) fn append_noise(&self, records: usize) {
        let topic = self.options.topic("switch");
        self.producer.begin_transaction().unwrap();
        for record in 0..records {
            if record % NOISE_AT_ONCE == 0 {
                self.producer.flush(PATIENCE).unwrap();
            }
            self.producer.send(BaseRecord::to(&topic).key("noise").payload("")).unwrap();
        }
        self.producer.commit_transaction(PATIENCE).unwrap();
    }

    /// Appends a record that need not be an event.
    pub(crate) fn append_raw(&self, family: &str, key: &[u8], value: &[u8]) {
        self.producer.begin_transaction().unwrap();
        self.send(&self.options.topic(family), key, value);
        self.producer.commit_transaction(PATIENCE).unwrap();
    }

    fn send_all(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            let value = cloudevents::json::encode(&event, "/test").unwrap();
            self.send(&self.options.topic(event.family()), event.key.as_bytes(), value.as_bytes());
        }
    }

    fn send(&self, topic: &str, key: &[u8], value: &[u8]) {
        let headers = OwnedHeaders::new();
        self.producer.send(BaseRecord::to(topic).key(key).payload(value).headers(headers)).unwrap();
        self.producer.poll(Duration::ZERO);
    }

    /// Removes the records of partition 0 before an offset, as retention does.
    pub(crate) async fn delete_before(&self, family: &str, offset: i64) {
        self.delete(&self.options.topic(family), 0, rdkafka::Offset::Offset(offset)).await;
    }

    /// Removes all records of a part that there are by now.
    pub(crate) async fn empty(&self, part: &Part) {
        self.delete(&part.topic, part.number, rdkafka::Offset::End).await;
    }

    async fn delete(&self, topic: &str, number: i32, before: rdkafka::Offset) {
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", &self.options.brokers).create().unwrap();
        let mut parts = TopicPartitionList::new();
        parts.add_partition_offset(topic, number, before).unwrap();
        admin.delete_records(&parts, &AdminOptions::new()).await.unwrap();
    }
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let held = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}
