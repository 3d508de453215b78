//! A part of a Kafka broker for one test.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use rdkafka::{
    ClientConfig, Message,
    admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier},
    client::DefaultClientContext,
    message::{BorrowedMessage, Headers},
};
use tidings_backbone::{
    kafka::Options,
    relay::sink::{Sink, kafka},
};
use tidings_testkit::topic;

/// Options under which nobody else has topics.
pub(crate) fn options(brokers: String) -> Options {
    static TESTS: AtomicU64 = AtomicU64::new(0);
    let (process, test) = (std::process::id(), TESTS.fetch_add(1, Ordering::SeqCst));
    let now = tidings_backbone::Clock::system().now().0;
    Options {
        brokers,
        properties: BTreeMap::new(),
        prefix: format!("test-sinks-{now}-{process}-{test}"),
        partitions: 3,
        replicas: 1,
    }
}

pub(crate) fn local() -> Options {
    options(super::address("TIDINGS_TEST_KAFKA"))
}

pub(crate) fn sink(options: &Options) -> Sink {
    let topics = [options.topic("thing")];
    Sink::Kafka(Box::new(kafka::Sink::open(options, "group", &topics)))
}

/// Sets the bytes that a batch of a topic may have, and waits until the broker says so.
pub(super) async fn limit(options: &Options, topic: &str, bytes: usize) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", &options.brokers).create().unwrap();
    let bytes = bytes.to_string();
    let setting = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", &bytes);
    admin.alter_configs(&[setting], &AdminOptions::new()).await.unwrap().remove(0).unwrap();
    loop {
        let asked = [ResourceSpecifier::Topic(topic)];
        let settings = admin.describe_configs(&asked, &AdminOptions::new()).await.unwrap().remove(0).unwrap();
        if settings.get("max.message.bytes").unwrap().value.as_deref() == Some(&bytes) {
            break;
        }
    }
}

/// A record as a consumer gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) partition: i32,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<String>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    pub(crate) timestamp_ms: Option<i64>,
}

impl Found {
    fn read(message: &BorrowedMessage<'_>) -> Self {
        Self {
            partition: message.partition(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(|value| String::from_utf8_lossy(value).into_owned()),
            headers: message.headers().map_or_else(Vec::new, |headers| {
                let pairs = headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
                pairs.collect()
            }),
            timestamp_ms: message.timestamp().to_millis(),
        }
    }
}

/// All committed records of a topic, partition by partition.
pub(crate) fn committed(options: &Options, topic: &str) -> Vec<Found> {
    let mut found = Vec::new();
    topic::read(&options.brokers, topic, |message| found.push(Found::read(message)));
    found
}

/// What a consumer sees of a topic while a transaction is under way.
pub(super) fn visible(options: &Options, topic: &str) -> Vec<Found> {
    let mut found = Vec::new();
    topic::read_visible(&options.brokers, topic, |message| found.push(Found::read(message)));
    found
}

/// The values of a topic as numbers, in order.
pub(crate) fn numbers(options: &Options, topic: &str) -> Vec<usize> {
    let mut numbers: Vec<usize> =
        committed(options, topic).iter().map(|found| found.value.as_ref().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}
