//! Reading topics from outside, whoever consumes them: through a consumer that is kept from look to look.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    Message, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::BorrowedMessage,
    types::RDKafkaErrorCode,
};
use tidings_event::Timestamp;

use super::{Options, is_news};
use crate::{Error, Result, clock::Stopwatch, limits::KAFKA_REQUEST_TIME_MAX, log::Part};

/// A consumer that only looks, for one caller at a time.
pub(super) struct Onlooker {
    options: Arc<Options>,
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    kept: Mutex<Option<BaseConsumer>>,
}

impl Onlooker {
    /// One of this name, that is set so. Nothing is connected yet.
    pub(super) fn new(
        options: Arc<Options>,
        name: &'static str,
        settings: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { options, name, settings, kept: Mutex::new(None) }
    }

    /// Looks through the consumer that is kept; after an error the next look takes a new one. Blocks.
    pub(super) fn with<T>(&self, look: impl FnOnce(&BaseConsumer) -> Result<T>) -> Result<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = match kept.take() {
            Some(consumer) => consumer,
            None => self.connect(self.settings)?,
        };
        let seen = look(&consumer)?;
        *kept = Some(consumer);
        Ok(seen)
    }

    /// A consumer of its own, set otherwise.
    pub(super) fn connect(&self, settings: &[(&str, &str)]) -> Result<BaseConsumer> {
        let mut config = self.options.onlooker(self.name);
        for (key, value) in settings {
            config.set(*key, *value);
        }
        config.create().map_err(Error::kafka("connecting to Kafka"))
    }
}

/// The first offset in each part that was appended at `at` or later; parts where nothing was are left out.
pub(super) fn first_since(
    consumer: &BaseConsumer,
    parts: &[Part],
    at: Timestamp,
    doing: &'static str,
) -> Result<BTreeMap<Part, i64>> {
    let mut asked = TopicPartitionList::new();
    for part in parts {
        let at = rdkafka::Offset::Offset(at.0);
        asked.add_partition_offset(&part.topic, part.number, at).map_err(Error::kafka(doing))?;
    }
    let found = consumer.offsets_for_times(asked, KAFKA_REQUEST_TIME_MAX).map_err(Error::kafka(doing))?;
    let first = |part: &Part| match found.find_partition(&part.topic, part.number)?.offset() {
        rdkafka::Offset::Offset(first) => Some((part.clone(), first)),
        _ => None,
    };
    Ok(parts.iter().filter_map(first).collect())
}

/// What whoever reads says of a record.
pub(super) enum Said {
    /// There may be more to come.
    More,
    /// Of its partition nothing more is wanted.
    Enough,
    /// The same, and much more may come: it is not fetched any more, by this consumer.
    Leave,
}

/// Reads partitions of a topic from these offsets on: one topic at a time, since that a partition has ended is told
/// without its topic. It ends when all have ended, or enough was read of each, or `each` breaks off; before each wait
/// `goes_on` is asked as well. Answers what broke it off.
pub(super) fn read_topic<B>(
    consumer: &BaseConsumer,
    topic: &str,
    beginnings: &BTreeMap<i32, i64>,
    doing: &'static str,
    goes_on: impl FnMut() -> ControlFlow<B>,
    each: impl FnMut(&BorrowedMessage<'_>) -> ControlFlow<B, Said>,
) -> Result<ControlFlow<B>> {
    let mut assigned = TopicPartitionList::new();
    for (number, first) in beginnings {
        let at = rdkafka::Offset::Offset(*first);
        assigned.add_partition_offset(topic, *number, at).map_err(Error::kafka(doing))?;
    }
    consumer.assign(&assigned).map_err(Error::kafka(doing))?;
    let open = beginnings.keys().copied().collect();
    let read = read(consumer, topic, open, doing, goes_on, each);
    consumer.unassign().map_err(Error::kafka(doing))?;
    read
}

fn read<B>(
    consumer: &BaseConsumer,
    topic: &str,
    mut open: BTreeSet<i32>,
    doing: &'static str,
    mut goes_on: impl FnMut() -> ControlFlow<B>,
    mut each: impl FnMut(&BorrowedMessage<'_>) -> ControlFlow<B, Said>,
) -> Result<ControlFlow<B>> {
    let mut silence = Stopwatch::start();
    while !open.is_empty() {
        if let ControlFlow::Break(why) = goes_on() {
            return Ok(ControlFlow::Break(why));
        }
        if silence.seconds() > KAFKA_REQUEST_TIME_MAX.as_secs_f64() {
            let source = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
            return Err(Error::Kafka { doing, source });
        }
        match consumer.poll(POLL_TIME) {
            None => {}
            Some(Ok(message)) => {
                silence = Stopwatch::start();
                let number = message.partition();
                if !open.contains(&number) {
                    continue;
                }
                let said = match each(&message) {
                    ControlFlow::Break(why) => return Ok(ControlFlow::Break(why)),
                    ControlFlow::Continue(said) => said,
                };
                if !matches!(said, Said::More) {
                    open.remove(&number);
                }
                if matches!(said, Said::Leave) {
                    leave(consumer, topic, number).map_err(Error::kafka(doing))?;
                }
            }
            Some(Err(KafkaError::PartitionEOF(number))) => {
                silence = Stopwatch::start();
                open.remove(&number);
            }
            Some(Err(error)) if is_news(&error) => {}
            Some(Err(source)) => return Err(Error::Kafka { doing, source }),
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn leave(consumer: &BaseConsumer, topic: &str, number: i32) -> Result<(), KafkaError> {
    let mut left = TopicPartitionList::new();
    left.add_partition(topic, number);
    consumer.pause(&left)
}

const POLL_TIME: Duration = Duration::from_millis(100);

impl std::fmt::Debug for Onlooker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Onlooker").field("name", &self.name).finish_non_exhaustive()
    }
}
