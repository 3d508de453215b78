//! A look at topics from outside, whoever consumes them: where they end, and what comes first after a
//! position.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use rdkafka::{
    Message,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::BorrowedMessage,
    types::RDKafkaErrorCode,
};
use tidings_event::Timestamp;

use super::{
    Options, message,
    onlooker::{Onlooker, Said, first_since, read_topic},
};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::KAFKA_REQUEST_TIME_MAX,
    log::{Behind, Offset, Part},
};

/// Looks, one caller at a time, through a consumer that is kept.
#[derive(Debug)]
pub(crate) struct Peek(Onlooker);

impl Peek {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        // One record of each partition is wanted.
        Self(Onlooker::new(options, "peek", &[("queued.min.messages", "1")]))
    }

    /// The last offset of each part that nothing open stands before. Blocks.
    pub(crate) fn ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        self.0.with(|consumer| ends(consumer, parts))
    }

    /// The same with what belongs to transactions that have not ended. Blocks.
    pub(crate) fn uncommitted_ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        ends(&self.0.connect(&[("isolation.level", "read_uncommitted")])?, parts)
    }

    /// The first offset that each part still holds. Blocks.
    pub(crate) fn earliest(&self, parts: Vec<Part>) -> Result<BTreeMap<Part, Offset>> {
        let first =
            |consumer: &BaseConsumer, part: Part| watermarks(consumer, &part).map(|(low, _)| (part, Offset(low)));
        self.0.with(|consumer| parts.into_iter().map(|part| first(consumer, part)).collect())
    }

    /// The last offset before what was appended at `at` or later, in each part. Blocks.
    pub(crate) fn before(&self, parts: Vec<Part>, at: Timestamp) -> Result<BTreeMap<Part, Offset>> {
        self.0.with(|consumer| before(consumer, parts, at))
    }

    /// Whether a part still holds all that was appended to it at `at` or later. Blocks.
    pub(crate) fn reaches_back(&self, part: &Part, at: Timestamp) -> Result<bool> {
        self.0.with(|consumer| reaches_back(consumer, part, at))
    }

    /// Up to where each part holds no event behind these offsets, where that is further than they are. Blocks.
    pub(crate) fn clear(&self, reached: Vec<(Part, Offset)>) -> Result<BTreeMap<Part, Offset>> {
        self.0.with(|consumer| clear(consumer, reached))
    }

    /// How far readers at these positions are behind. Blocks.
    pub(crate) fn behind(&self, positions: Vec<(Part, Offset)>) -> Result<Vec<Behind>> {
        self.0.with(|consumer| behind(consumer, positions))
    }
}

fn ends(consumer: &BaseConsumer, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
    let end = |part: Part| watermarks(consumer, &part).map(|(_, high)| (part, Offset(high - 1)));
    parts.into_iter().map(end).collect()
}

fn before(consumer: &BaseConsumer, parts: Vec<Part>, at: Timestamp) -> Result<BTreeMap<Part, Offset>> {
    let found = first_since(consumer, &parts, at, "looking for a moment in topics")?;
    let mut places = BTreeMap::new();
    for part in parts {
        let before = match found.get(&part) {
            Some(first) => first - 1,
            // Nothing was appended since.
            None => watermarks(consumer, &part)?.1 - 1,
        };
        places.insert(part, Offset(before));
    }
    Ok(places)
}

fn behind(consumer: &BaseConsumer, positions: Vec<(Part, Offset)>) -> Result<Vec<Behind>> {
    let mut behind = Vec::with_capacity(positions.len());
    let mut wanted = BTreeMap::new();
    for (part, position) in positions {
        let (low, high) = watermarks(consumer, &part)?;
        let next = (position.0 + 1).max(low);
        if next < high {
            wanted.insert(part.clone(), next);
        }
        behind.push(Behind { part, events: (high - next).max(0), oldest: None });
    }
    let found = first_after(consumer, wanted, message::occurred_at)?;
    for behind in &mut behind {
        match found.get(&behind.part) {
            Some(at) => behind.oldest = *at,
            // What is left are ends of transactions.
            None => behind.events = 0,
        }
    }
    Ok(behind)
}

fn clear(consumer: &BaseConsumer, reached: Vec<(Part, Offset)>) -> Result<BTreeMap<Part, Offset>> {
    let (mut wanted, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for (part, reached) in reached {
        let (low, high) = watermarks(consumer, &part)?;
        let next = reached.0 + 1;
        if low <= next && next < high {
            wanted.insert(part.clone(), next);
            ends.insert(part, (next, Offset(high - 1)));
        }
    }
    let found = first_after(consumer, wanted, message::occurred_at)?;
    let mut clear = BTreeMap::new();
    for (part, (next, end)) in ends {
        // What retention has removed before it was looked at may have been an event.
        if !found.contains_key(&part) && watermarks(consumer, &part)?.0 <= next {
            clear.insert(part, end);
        }
    }
    Ok(clear)
}

fn reaches_back(consumer: &BaseConsumer, part: &Part, at: Timestamp) -> Result<bool> {
    let (low, _) = watermarks(consumer, part)?;
    if low == 0 {
        return Ok(true);
    }
    let found = first_after(consumer, BTreeMap::from([(part.clone(), low)]), message::appended_at)?;
    // What comes behind a record was appended after it.
    Ok(found.get(part).copied().flatten().is_some_and(|first| first < at))
}

/// The first offset of a part, and the one that the next committed record will have at least.
pub(crate) fn watermarks<C: rdkafka::consumer::ConsumerContext>(
    consumer: &BaseConsumer<C>,
    part: &Part,
) -> Result<(i64, i64)> {
    let started = Stopwatch::start();
    loop {
        match consumer.fetch_watermarks(&part.topic, part.number, KAFKA_REQUEST_TIME_MAX) {
            // Just after a topic was made, or a broker was started, not every broker knows it yet.
            Err(KafkaError::MetadataFetch(code)) if started.seconds() < patience(code).as_secs_f64() => {
                std::thread::sleep(NEW_TOPIC_GAP);
            }
            answer => return answer.map_err(Error::kafka("reading the ends of a topic")),
        }
    }
}

/// What `tell` says of the first record at or after these offsets, for the parts that have one.
fn first_after<T>(
    consumer: &BaseConsumer,
    wanted: BTreeMap<Part, i64>,
    tell: impl Fn(&BorrowedMessage<'_>) -> T,
) -> Result<BTreeMap<Part, T>> {
    let mut topics: BTreeMap<Arc<str>, BTreeMap<i32, i64>> = BTreeMap::new();
    for (part, next) in wanted {
        topics.entry(part.topic).or_default().insert(part.number, next);
    }
    let mut found = BTreeMap::new();
    for (topic, beginnings) in topics {
        let goes_on = || ControlFlow::<()>::Continue(());
        let first = |message: &BorrowedMessage<'_>| {
            let part = Part { topic: Arc::clone(&topic), number: message.partition() };
            found.insert(part, tell(message));
            ControlFlow::Continue(Said::Enough)
        };
        read_topic(consumer, &topic, &beginnings, "looking at a topic", goes_on, first).map(drop)?;
    }
    Ok(found)
}

/// How long it may take until a broker answers otherwise. A topic that is not known is likely not to be there.
fn patience(code: RDKafkaErrorCode) -> Duration {
    use RDKafkaErrorCode::{
        LeaderNotAvailable, NotLeaderForPartition, UnknownPartition, UnknownTopic, UnknownTopicOrPartition,
    };
    match code {
        LeaderNotAvailable | NotLeaderForPartition => KAFKA_REQUEST_TIME_MAX,
        UnknownPartition | UnknownTopic | UnknownTopicOrPartition => NEW_TOPIC_TIME_MAX,
        _ => Duration::ZERO,
    }
}

const NEW_TOPIC_TIME_MAX: Duration = Duration::from_secs(1);
const NEW_TOPIC_GAP: Duration = Duration::from_millis(50);
