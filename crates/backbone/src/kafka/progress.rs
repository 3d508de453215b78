//! How far a relay has come, read from its checkpoints by whoever wants to know: true also while no
//! relay runs.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    types::RDKafkaErrorCode,
};

use super::{Options, is_news, peek::watermarks};
use crate::{Error, Result, clock::Stopwatch, limits::KAFKA_REQUEST_TIME_MAX, log::Part, relay::Checkpoint};

/// Follows the checkpoints of one group, from call to call.
pub(crate) struct Progress {
    group: String,
    kept: Mutex<Option<Reading>>,
}

struct Reading {
    consumer: BaseConsumer,
    part: Part,
    /// The first offset that was not read yet.
    next: i64,
    /// The last checkpoint of the group, or of each of its shards.
    latest: BTreeMap<String, Checkpoint>,
}

impl Progress {
    pub(crate) fn new(group: String) -> Self {
        Self { group, kept: Mutex::new(None) }
    }

    /// The last committed checkpoint of the group; `None` before its first one. Blocks.
    pub(crate) fn latest(&self, options: &Options) -> Result<Option<Checkpoint>> {
        self.read(options, |latest| latest.get(&self.group).cloned())
    }

    /// The last committed checkpoints of the relays at work: of each shard, where they poll. Those of the other way
    /// of reading may be there too, and are nobody's. Blocks.
    pub(crate) fn active(&self, options: &Options, is_polled: bool) -> Result<Vec<Checkpoint>> {
        self.read(options, |latest| {
            let active = latest.iter().filter(|(name, _)| (**name != self.group) == is_polled);
            active.map(|(_, checkpoint)| checkpoint.clone()).collect()
        })
    }

    /// What is to be had from the last committed checkpoints: that of the group, and those of the shards of its polling
    /// relays. Blocks.
    fn read<T>(&self, options: &Options, take: impl FnOnce(&BTreeMap<String, Checkpoint>) -> T) -> Result<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // After an error it is begun anew.
        let mut reading = match kept.take() {
            Some(reading) => reading,
            None => Reading::begin(options)?,
        };
        reading.read(&self.group)?;
        let taken = take(&reading.latest);
        *kept = Some(reading);
        Ok(taken)
    }
}

impl Reading {
    fn begin(options: &Options) -> Result<Self> {
        let consumer: BaseConsumer =
            options.onlooker("progress").create().map_err(Error::kafka("connecting to Kafka"))?;
        let part = Part { topic: options.checkpoint_topic().into(), number: 0 };
        let (next, _) = watermarks(&consumer, &part)?;
        Ok(Self { consumer, part, next, latest: BTreeMap::new() })
    }

    /// Reads on to the end.
    fn read(&mut self, group: &str) -> Result<()> {
        let doing = "reading checkpoints";
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.part.topic, 0, Offset::Offset(self.next)).map_err(Error::kafka(doing))?;
        // Taken anew each time: the end is told once for each time it is taken.
        self.consumer.assign(&list).map_err(Error::kafka(doing))?;
        let mut silence = Stopwatch::start();
        while silence.seconds() < KAFKA_REQUEST_TIME_MAX.as_secs_f64() {
            match self.consumer.poll(POLL_TIME) {
                None => {}
                Some(Ok(message)) => {
                    silence = Stopwatch::start();
                    self.next = message.offset() + 1;
                    if let Some(name) = message.key().and_then(|key| of_group(key, group)) {
                        let text = String::from_utf8_lossy(message.payload().unwrap_or_default());
                        self.latest.insert(name.to_owned(), Checkpoint::from_json(&text)?);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(error)) if is_news(&error) => {}
                Some(Err(source)) => return Err(Error::Kafka { doing, source }),
            }
        }
        let source = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
        Err(Error::Kafka { doing, source })
    }
}

/// The name under which a group, or a shard of it, stores its checkpoint.
fn of_group<'k>(key: &'k [u8], group: &str) -> Option<&'k str> {
    let name = std::str::from_utf8(key).ok()?;
    let shard = name.strip_prefix(group)?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (shard.is_empty() || shard.strip_prefix('.').is_some_and(is_number)).then_some(name)
}

const POLL_TIME: Duration = Duration::from_millis(100);

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("group", &self.group).finish_non_exhaustive()
    }
}
