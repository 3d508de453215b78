//! Looking for one event in topics: from about when it was appended, bounded in records and time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    Message, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{BorrowedMessage, Timestamp as RecordTime},
};
use tidings_event::{EventId, Timestamp};

use super::{Options, is_news, message};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::{JOURNEY_RECORDS_MAX, JOURNEY_SEARCH_TIME_MAX, KAFKA_REQUEST_TIME_MAX},
    log::{Offset, Part, Recorded},
};

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Where.
    pub(crate) parts: Vec<Part>,
    /// From where on.
    pub(crate) since: Since,
    /// Which event.
    pub(crate) id: EventId,
    /// Its key, if it is known: other records are not read then.
    pub(crate) key: Option<String>,
}

/// From where on an event is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Since {
    /// It was appended at this moment or later.
    Time(Timestamp),
    /// It is at this offset, or nowhere.
    Offset(Offset),
}

/// What was found.
#[derive(Debug)]
pub(crate) enum Found {
    /// The event.
    Here(Box<Record>),
    /// It is not there: all was looked through.
    Nowhere,
    /// There was more than is looked through.
    GaveUp,
}

/// An event in a topic.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) part: Part,
    pub(crate) recorded: Recorded,
    /// When the broker appended it, where the topic keeps that.
    pub(crate) appended_at: Option<Timestamp>,
}

/// Looks, one caller at a time, through a consumer that is kept.
pub(crate) struct Finder {
    options: Arc<Options>,
    consumer: Mutex<Option<BaseConsumer>>,
}

impl Finder {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        Self { options, consumer: Mutex::new(None) }
    }

    /// Looks for an event. Blocks.
    pub(crate) fn find(&self, wanted: &Wanted) -> Result<Found> {
        let mut kept = self.consumer.lock().unwrap_or_else(PoisonError::into_inner);
        // After an error the next one takes a new one.
        let consumer = match kept.take() {
            Some(consumer) => consumer,
            None => self.options.onlooker("find").create().map_err(Error::kafka("connecting to Kafka"))?,
        };
        let mut search = Search { consumer: &consumer, wanted, left: JOURNEY_RECORDS_MAX };
        let found = search.run()?;
        *kept = Some(consumer);
        Ok(found)
    }
}

const DOING: &str = "looking for an event in a topic";

struct Search<'a> {
    consumer: &'a BaseConsumer,
    wanted: &'a Wanted,
    /// Records that may still be looked at.
    left: usize,
}

impl Search<'_> {
    fn run(&mut self) -> Result<Found> {
        let started = Stopwatch::start();
        let mut topics: BTreeMap<Arc<str>, BTreeMap<i32, i64>> = BTreeMap::new();
        for (part, first) in self.beginnings()? {
            topics.entry(part.topic).or_default().insert(part.number, first);
        }
        // One topic at a time: that a partition has ended is told without its topic.
        for (topic, beginnings) in topics {
            match self.in_topic(&topic, &beginnings, &started)? {
                Found::Nowhere => {}
                found => return Ok(found),
            }
        }
        Ok(Found::Nowhere)
    }

    /// The first offset to look at in each part that has one.
    fn beginnings(&self) -> Result<Vec<(Part, i64)>> {
        let at = match self.wanted.since {
            Since::Offset(Offset(at)) => {
                return Ok(self.wanted.parts.iter().map(|part| (part.clone(), at)).collect());
            }
            Since::Time(at) => rdkafka::Offset::Offset(at.0),
        };
        let mut asked = TopicPartitionList::new();
        for part in &self.wanted.parts {
            asked.add_partition_offset(&part.topic, part.number, at).map_err(Error::kafka(DOING))?;
        }
        let found = self.consumer.offsets_for_times(asked, KAFKA_REQUEST_TIME_MAX).map_err(Error::kafka(DOING))?;
        let first = |part: &Part| match found.find_partition(&part.topic, part.number)?.offset() {
            rdkafka::Offset::Offset(first) => Some((part.clone(), first)),
            // Nothing was appended since.
            _ => None,
        };
        Ok(self.wanted.parts.iter().filter_map(first).collect())
    }

    fn in_topic(&mut self, topic: &str, beginnings: &BTreeMap<i32, i64>, started: &Stopwatch) -> Result<Found> {
        let mut assigned = TopicPartitionList::new();
        for (number, first) in beginnings {
            let at = rdkafka::Offset::Offset(*first);
            assigned.add_partition_offset(topic, *number, at).map_err(Error::kafka(DOING))?;
        }
        self.consumer.assign(&assigned).map_err(Error::kafka(DOING))?;
        let found = self.read(beginnings.keys().copied().collect(), started);
        self.consumer.unassign().map_err(Error::kafka(DOING))?;
        found
    }

    fn read(&mut self, mut open: BTreeSet<i32>, started: &Stopwatch) -> Result<Found> {
        while !open.is_empty() {
            if self.left == 0 || started.seconds() > JOURNEY_SEARCH_TIME_MAX.as_secs_f64() {
                return Ok(Found::GaveUp);
            }
            match self.consumer.poll(POLL_TIME) {
                None => {}
                Some(Ok(message)) => {
                    self.left -= 1;
                    if let Some(record) = self.wanted.matches(&message) {
                        return Ok(Found::Here(Box::new(record)));
                    }
                    if matches!(self.wanted.since, Since::Offset(_)) {
                        open.remove(&message.partition());
                    }
                }
                Some(Err(KafkaError::PartitionEOF(number))) => drop(open.remove(&number)),
                Some(Err(error)) if is_news(&error) => {}
                Some(Err(source)) => return Err(Error::Kafka { doing: DOING, source }),
            }
        }
        Ok(Found::Nowhere)
    }
}

impl Wanted {
    fn matches(&self, message: &BorrowedMessage<'_>) -> Option<Record> {
        let is_candidate = match &self.key {
            Some(key) => message.key() == Some(key.as_bytes()),
            // Ids are texts in every format that events have here.
            None => contains(message.payload().unwrap_or_default(), self.id.to_string().as_bytes()),
        };
        if !is_candidate {
            return None;
        }
        let recorded = message::read(message).ok().filter(|recorded| recorded.event.id == self.id)?;
        let appended_at = match message.timestamp() {
            RecordTime::LogAppendTime(millis) => Some(Timestamp(millis)),
            RecordTime::CreateTime(_) | RecordTime::NotAvailable => None,
        };
        let part = Part { topic: message.topic().into(), number: message.partition() };
        Some(Record { part, recorded, appended_at })
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

const POLL_TIME: Duration = Duration::from_millis(100);

impl std::fmt::Debug for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finder").finish_non_exhaustive()
    }
}
