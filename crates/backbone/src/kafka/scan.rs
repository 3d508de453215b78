//! Reading a piece of a topic from outside, whoever consumes it: from one offset to another, what is committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rdkafka::{
    Message, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    types::RDKafkaErrorCode,
};
use tidings_event::{Event, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{Options, is_news, message};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::{KAFKA_REQUEST_TIME_MAX, KAFKA_SCAN_KIB_MAX},
    log::{Offset, Part},
};

/// The offsets to read in each part, the first and the last.
pub(crate) type Ranges = BTreeMap<Part, (i64, i64)>;

/// A record that was read.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) part: Part,
    pub(crate) offset: Offset,
    /// When it was appended, or made.
    pub(crate) recorded_at: Option<Timestamp>,
    /// The event; nothing where it is none.
    pub(crate) event: Option<Event>,
}

/// Reads all committed records of these ranges, in the order of each part, and hands them to `each` with what it has
/// gathered. What is read ahead is bounded, and nothing is kept. It ends when nobody waits for it any more.
pub(crate) async fn scan<S: Send + 'static>(
    options: Options,
    ranges: Ranges,
    mut gathered: S,
    each: impl Fn(&mut S, Scanned) + Send + 'static,
) -> Result<S> {
    let ending = CancellationToken::new();
    let _ends_with_this = ending.clone().drop_guard();
    let reading = move || {
        let mut config = options.onlooker("scan");
        config.set("queued.max.messages.kbytes", KAFKA_SCAN_KIB_MAX.to_string());
        let consumer: BaseConsumer = config.create().map_err(Error::kafka("connecting to Kafka"))?;
        let topics: BTreeSet<Arc<str>> = ranges.keys().map(|part| Arc::clone(&part.topic)).collect();
        // One topic at a time: that a partition has ended is told without its topic.
        for topic in topics {
            let of_topic = ranges.iter().filter(|(part, _)| part.topic == topic);
            let wanted = of_topic.map(|(part, range)| (part.number, *range)).collect();
            scan_topic(&consumer, &topic, wanted, &ending, |scanned| each(&mut gathered, scanned))?;
        }
        Ok(gathered)
    };
    tokio::task::spawn_blocking(reading)
        .await
        .unwrap_or_else(|error| Err(Error::Invariant { message: format!("reading topics ended: {error}") }))
}

fn scan_topic(
    consumer: &BaseConsumer,
    topic: &Arc<str>,
    mut wanted: BTreeMap<i32, (i64, i64)>,
    ending: &CancellationToken,
    mut each: impl FnMut(Scanned),
) -> Result<()> {
    let doing = "reading a topic once more";
    wanted.retain(|_, (first, last)| first <= last);
    let mut assigned = TopicPartitionList::new();
    for (number, (first, _)) in &wanted {
        let at = rdkafka::Offset::Offset(*first);
        assigned.add_partition_offset(topic, *number, at).map_err(Error::kafka(doing))?;
    }
    consumer.assign(&assigned).map_err(Error::kafka(doing))?;
    let mut silence = Stopwatch::start();
    while !wanted.is_empty() && !ending.is_cancelled() {
        if silence.seconds() > KAFKA_REQUEST_TIME_MAX.as_secs_f64() {
            let source = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
            return Err(Error::Kafka { doing, source });
        }
        match consumer.poll(POLL_TIME) {
            None => {}
            Some(Ok(message)) => {
                silence = Stopwatch::start();
                let number = message.partition();
                let Some((_, last)) = wanted.get(&number).copied() else { continue };
                if message.offset() <= last {
                    each(Scanned {
                        part: Part { topic: Arc::clone(topic), number },
                        offset: Offset(message.offset()),
                        recorded_at: message.timestamp().to_millis().map(Timestamp),
                        event: message::read(&message).ok().map(|recorded| recorded.event),
                    });
                }
                if message.offset() >= last {
                    wanted.remove(&number);
                    leave(consumer, topic, number).map_err(Error::kafka(doing))?;
                }
            }
            Some(Err(KafkaError::PartitionEOF(number))) => {
                silence = Stopwatch::start();
                wanted.remove(&number);
            }
            Some(Err(error)) if is_news(&error) => {}
            Some(Err(source)) => return Err(Error::Kafka { doing, source }),
        }
    }
    consumer.unassign().map_err(Error::kafka(doing))
}

/// What is appended meanwhile is not read.
fn leave(consumer: &BaseConsumer, topic: &str, number: i32) -> Result<(), KafkaError> {
    let mut left = TopicPartitionList::new();
    left.add_partition(topic, number);
    consumer.pause(&left)
}

const POLL_TIME: std::time::Duration = std::time::Duration::from_millis(100);
