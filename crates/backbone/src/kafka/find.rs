//! Looking for one event in topics: from about when it was appended, bounded in records and time.

use std::{cell::Cell, collections::BTreeMap, ops::ControlFlow, sync::Arc};

use rdkafka::{
    Message,
    consumer::BaseConsumer,
    message::{BorrowedMessage, Timestamp as RecordTime},
};
use tidings_event::{EventId, Timestamp};

use super::{
    Options, message,
    onlooker::{Onlooker, Said, first_since, read_topic},
};
use crate::{
    Result,
    clock::Stopwatch,
    limits::{JOURNEY_RECORDS_MAX, JOURNEY_SEARCH_TIME_MAX},
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
#[derive(Debug)]
pub(crate) struct Finder(Onlooker);

impl Finder {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        Self(Onlooker::new(options, "find", &[]))
    }

    /// Looks for an event. Blocks.
    pub(crate) fn find(&self, wanted: &Wanted) -> Result<Found> {
        self.0.with(|consumer| search(consumer, wanted))
    }
}

const DOING: &str = "looking for an event in a topic";

fn search(consumer: &BaseConsumer, wanted: &Wanted) -> Result<Found> {
    let started = Stopwatch::start();
    let mut topics: BTreeMap<Arc<str>, BTreeMap<i32, i64>> = BTreeMap::new();
    for (part, first) in wanted.beginnings(consumer)? {
        topics.entry(part.topic).or_default().insert(part.number, first);
    }
    // Records that may still be looked at.
    let left = Cell::new(JOURNEY_RECORDS_MAX);
    for (topic, beginnings) in topics {
        let goes_on = || match left.get() == 0 || started.seconds() > JOURNEY_SEARCH_TIME_MAX.as_secs_f64() {
            true => ControlFlow::Break(Found::GaveUp),
            false => ControlFlow::Continue(()),
        };
        let each = |message: &BorrowedMessage<'_>| {
            left.set(left.get() - 1);
            match (wanted.matches(message), wanted.since) {
                (Some(record), _) => ControlFlow::Break(Found::Here(Box::new(record))),
                (None, Since::Offset(_)) => ControlFlow::Continue(Said::Enough),
                (None, Since::Time(_)) => ControlFlow::Continue(Said::More),
            }
        };
        if let ControlFlow::Break(found) = read_topic(consumer, &topic, &beginnings, DOING, goes_on, each)? {
            return Ok(found);
        }
    }
    Ok(Found::Nowhere)
}

impl Wanted {
    /// The first offset to look at in each part that has one.
    fn beginnings(&self, consumer: &BaseConsumer) -> Result<BTreeMap<Part, i64>> {
        match self.since {
            Since::Offset(Offset(at)) => Ok(self.parts.iter().map(|part| (part.clone(), at)).collect()),
            Since::Time(at) => first_since(consumer, &self.parts, at, DOING),
        }
    }

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
