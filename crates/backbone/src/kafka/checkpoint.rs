//! Checkpoints of relays, kept in a compacted topic: the last record of a group is its checkpoint.

use std::time::Duration;

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{BorrowedMessage, Header, Headers, OwnedHeaders},
    producer::BaseRecord,
};

use super::Options;
use crate::{
    Clock, Error, EventIds, Result,
    clock::Stopwatch,
    limits::{KAFKA_CHECKPOINT_READ_TIME_MAX, KAFKA_REQUEST_TIME_MAX},
};

/// The header that tells two equal checkpoints of two writes apart.
const SEQUENCE: &str = "sequence";

/// A checkpoint as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// Rises by one with each write of the group.
    pub(super) sequence: u64,
    /// What the relay wrote.
    pub(super) checkpoint: Vec<u8>,
}

impl Stored {
    pub(super) fn headers(&self) -> OwnedHeaders {
        let sequence = self.sequence.to_string();
        OwnedHeaders::new_with_capacity(1).insert(Header { key: SEQUENCE, value: Some(sequence.as_bytes()) })
    }

    fn read(message: &BorrowedMessage<'_>) -> Result<Self> {
        let sequence = message.headers().and_then(|headers| headers.iter().find(|header| header.key == SEQUENCE));
        let sequence = sequence.and_then(|header| std::str::from_utf8(header.value?).ok()?.parse().ok());
        let found = sequence.zip(message.payload());
        let (sequence, checkpoint) = found.ok_or_else(|| Error::Invariant {
            message: format!("the checkpoint at offset {} was not written by a relay", message.offset()),
        })?;
        Ok(Self { sequence, checkpoint: checkpoint.to_vec() })
    }
}

/// A record that shows a reader how far he must read.
#[derive(Debug)]
pub(super) struct Mark {
    key: String,
    id: String,
}

impl Mark {
    /// A mark that is told from every other. The next one of the group takes its place in the topic.
    pub(super) fn new(group: &str) -> Self {
        let id = EventIds::from_os().next(Clock::system().now());
        Self { key: format!("{group} taken over"), id: id.to_string() }
    }

    pub(super) fn to_record<'a>(&'a self, topic: &'a str) -> BaseRecord<'a, [u8], [u8], usize> {
        BaseRecord::with_opaque_to(topic, usize::MAX).partition(0).key(self.key.as_bytes()).payload(self.id.as_bytes())
    }

    fn is_in(&self, message: &BorrowedMessage<'_>) -> bool {
        message.payload() == Some(self.id.as_bytes()) && message.key() == Some(self.key.as_bytes())
    }
}

/// Reads the last committed checkpoint of a group before its mark. Blocks.
pub(super) fn read_last(options: &Options, group: &str, mark: &Mark) -> Result<Option<Stored>> {
    let topic = options.checkpoint_topic();
    let consumer = connect(options)?;
    let failed = Error::kafka("asking for the end of the checkpoints");
    let (_, end) = consumer.fetch_watermarks(&topic, 0, KAFKA_REQUEST_TIME_MAX).map_err(failed)?;
    // The group that takes over wrote lately, so most of a topic that was not compacted yet is not read.
    let mut window = WINDOW_MIN;
    loop {
        let from = end.saturating_sub(window).max(0);
        let found = read_from(&consumer, &topic, from, group, mark)?;
        if found.is_some() || from == 0 {
            return Ok(found);
        }
        window = window.saturating_mul(16);
    }
}

const WINDOW_MIN: i64 = 4_096;
const POLL_GAP: Duration = Duration::from_millis(100);

fn connect(options: &Options) -> Result<BaseConsumer> {
    options
        .client()
        // The client wants a group even where nothing is committed to it.
        .set("group.id", options.checkpoint_topic())
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        // The broker answers what it has: the mark is there already.
        .set("fetch.wait.max.ms", "1")
        // The first records may have been compacted away.
        .set("auto.offset.reset", "earliest")
        .create()
        .map_err(Error::kafka("connecting to Kafka"))
}

fn read_from(consumer: &BaseConsumer, topic: &str, from: i64, group: &str, mark: &Mark) -> Result<Option<Stored>> {
    let failed = || Error::kafka("reading checkpoints");
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, 0, Offset::Offset(from)).map_err(failed())?;
    consumer.assign(&place).map_err(failed())?;
    let started = Stopwatch::start();
    let mut found = None;
    while started.seconds() < KAFKA_CHECKPOINT_READ_TIME_MAX.as_secs_f64() {
        match consumer.poll(POLL_GAP) {
            Some(Ok(message)) if mark.is_in(&message) => return Ok(found),
            Some(Ok(message)) if message.key() == Some(group.as_bytes()) => found = Some(Stored::read(&message)?),
            Some(Ok(_)) | None => {}
            Some(Err(error)) => return Err(failed()(error)),
        }
    }
    Err(failed()(KafkaError::NoMessageReceived))
}
