//! A look at topics from outside, whoever consumes them: where they end, and what comes first after a
//! position.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    Message, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    types::RDKafkaErrorCode,
};
use tidings_event::Timestamp;

use super::{Options, is_news, message};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::KAFKA_REQUEST_TIME_MAX,
    log::{Behind, Offset, Part},
};

/// Looks, one caller at a time, through a consumer that is kept.
pub(crate) struct Peek {
    options: Arc<Options>,
    consumer: Mutex<Option<BaseConsumer>>,
}

impl Peek {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        Self { options, consumer: Mutex::new(None) }
    }

    /// The last offset of each part that nothing open stands before. Blocks.
    pub(crate) fn ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        self.with(|consumer| ends(consumer, parts))
    }

    /// The same with what belongs to transactions that have not ended. Blocks.
    pub(crate) fn uncommitted_ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        let mut config = self.options.onlooker("peek");
        config.set("isolation.level", "read_uncommitted");
        ends(&config.create().map_err(Error::kafka("connecting to Kafka"))?, parts)
    }

    /// The first offset that each part still holds. Blocks.
    pub(crate) fn earliest(&self, parts: Vec<Part>) -> Result<BTreeMap<Part, Offset>> {
        let first =
            |consumer: &BaseConsumer, part: Part| watermarks(consumer, &part).map(|(low, _)| (part, Offset(low)));
        self.with(|consumer| parts.into_iter().map(|part| first(consumer, part)).collect())
    }

    /// The last offset before what was appended at `at` or later, in each part. Blocks.
    pub(crate) fn before(&self, parts: Vec<Part>, at: Timestamp) -> Result<BTreeMap<Part, Offset>> {
        self.with(|consumer| before(consumer, parts, at))
    }

    /// Up to where each part holds no event behind these offsets, where that is further than they are. Blocks.
    pub(crate) fn clear(&self, reached: Vec<(Part, Offset)>) -> Result<BTreeMap<Part, Offset>> {
        self.with(|consumer| clear(consumer, reached))
    }

    /// How far readers at these positions are behind. Blocks.
    pub(crate) fn behind(&self, positions: Vec<(Part, Offset)>) -> Result<Vec<Behind>> {
        self.with(|consumer| behind(consumer, positions))
    }

    /// Looks through the one consumer; after an error the next look takes a new one.
    fn with<T>(&self, look: impl FnOnce(&BaseConsumer) -> Result<T>) -> Result<T> {
        let mut kept = self.consumer.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = match kept.take() {
            Some(consumer) => consumer,
            None => self.connect()?,
        };
        let seen = look(&consumer)?;
        *kept = Some(consumer);
        Ok(seen)
    }

    fn connect(&self) -> Result<BaseConsumer> {
        let mut config = self.options.onlooker("peek");
        // One record of each partition is wanted.
        config.set("queued.min.messages", "1");
        config.create().map_err(Error::kafka("connecting to Kafka"))
    }
}

fn ends(consumer: &BaseConsumer, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
    let end = |part: Part| watermarks(consumer, &part).map(|(_, high)| (part, Offset(high - 1)));
    parts.into_iter().map(end).collect()
}

fn before(consumer: &BaseConsumer, parts: Vec<Part>, at: Timestamp) -> Result<BTreeMap<Part, Offset>> {
    let doing = "looking for a moment in topics";
    let mut asked = TopicPartitionList::new();
    for part in &parts {
        let at = rdkafka::Offset::Offset(at.0);
        asked.add_partition_offset(&part.topic, part.number, at).map_err(Error::kafka(doing))?;
    }
    let found = consumer.offsets_for_times(asked, KAFKA_REQUEST_TIME_MAX).map_err(Error::kafka(doing))?;
    let mut places = BTreeMap::new();
    for part in parts {
        let first = found.find_partition(&part.topic, part.number).map(|element| element.offset());
        let before = match first {
            Some(rdkafka::Offset::Offset(first)) => first - 1,
            // Nothing was appended since.
            _ => watermarks(consumer, &part)?.1 - 1,
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
    let found = first_after(consumer, wanted)?;
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
    let found = first_after(consumer, wanted)?;
    let mut clear = BTreeMap::new();
    for (part, (next, end)) in ends {
        // What retention has removed before it was looked at may have been an event.
        if !found.contains_key(&part) && watermarks(consumer, &part)?.0 <= next {
            clear.insert(part, end);
        }
    }
    Ok(clear)
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

/// When the first record at or after these offsets occurred, for the parts that have one.
fn first_after(consumer: &BaseConsumer, mut wanted: BTreeMap<Part, i64>) -> Result<BTreeMap<Part, Option<Timestamp>>> {
    let mut found = BTreeMap::new();
    while let Some((first, _)) = wanted.first_key_value() {
        // One topic at a time: that a partition has ended is told without its topic.
        let topic = Arc::clone(&first.topic);
        let others = wanted.split_off(&Part { topic: Arc::clone(&topic), number: i32::MAX });
        first_in_topic(consumer, &topic, std::mem::replace(&mut wanted, others), &mut found)?;
    }
    Ok(found)
}

fn first_in_topic(
    consumer: &BaseConsumer,
    topic: &str,
    mut wanted: BTreeMap<Part, i64>,
    found: &mut BTreeMap<Part, Option<Timestamp>>,
) -> Result<()> {
    let doing = "looking at a topic";
    let mut assigned = TopicPartitionList::new();
    for (part, next) in &wanted {
        let at = rdkafka::Offset::Offset(*next);
        assigned.add_partition_offset(topic, part.number, at).map_err(Error::kafka(doing))?;
    }
    consumer.assign(&assigned).map_err(Error::kafka(doing))?;
    let mut silence = Stopwatch::start();
    while !wanted.is_empty() && silence.seconds() < KAFKA_REQUEST_TIME_MAX.as_secs_f64() {
        match consumer.poll(POLL_TIME) {
            None => {}
            Some(Ok(message)) => {
                silence = Stopwatch::start();
                let part = Part { topic: message.topic().into(), number: message.partition() };
                if wanted.remove(&part).is_some() {
                    found.insert(part, message::occurred_at(&message));
                }
            }
            Some(Err(KafkaError::PartitionEOF(number))) => wanted.retain(|part, _| part.number != number),
            Some(Err(error)) if is_news(&error) => {}
            Some(Err(source)) => return Err(Error::Kafka { doing, source }),
        }
    }
    consumer.unassign().map_err(Error::kafka(doing))?;
    if wanted.is_empty() {
        return Ok(());
    }
    let source = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
    Err(Error::Kafka { doing, source })
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

const POLL_TIME: Duration = Duration::from_millis(100);

impl std::fmt::Debug for Peek {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peek").finish_non_exhaustive()
    }
}
