//! A partition of Kafka, assigned to this process for the time being.
//!
//! The client fetches ahead into a queue of the partition's own, bounded in bytes, and stops fetching
//! when it is full; so a projector that is slow, or waits for its database, holds back nothing but
//! itself, and memory stays flat.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use rdkafka::{
    Message, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, base_consumer::PartitionQueue},
    error::KafkaError,
};
use tokio::sync::Notify;

use crate::{
    Error, Result,
    kafka::{message, peek::watermarks},
    limits::{KAFKA_HINT_EVENTS_MIN, KAFKA_REQUEST_TIME_MAX, PROJECTOR_BATCH_BYTES_MAX},
    log::{Offset, Part, Recorded},
    outbox::{Batch, MalformedEvent},
    projector::group::GroupContext,
};

/// The queue of a partition, and who is told when something comes into it.
pub(in crate::projector) struct Queue {
    consumer: Arc<BaseConsumer<GroupContext>>,
    queue: PartitionQueue<GroupContext>,
    filled: Arc<Notify>,
}

/// Reads one partition.
pub(in crate::projector) struct PartitionFeed {
    part: Part,
    queue: Queue,
    /// Read, and not yet handed out: what follows a malformed record, or that record itself.
    left: VecDeque<Result<Recorded, Box<MalformedEvent>>>,
    /// The position that was last told to Kafka.
    hinted: Offset,
}

impl Queue {
    /// Parts a partition from the consumer's other ones. `None` when it is not assigned any more.
    pub(in crate::projector) fn split(consumer: &Arc<BaseConsumer<GroupContext>>, part: &Part) -> Option<Self> {
        let mut queue = consumer.split_partition_queue(&part.topic, part.number)?;
        let filled = Arc::new(Notify::new());
        let notify = Arc::clone(&filled);
        queue.set_nonempty_callback(move || notify.notify_one());
        Some(Self { consumer: Arc::clone(consumer), queue, filled })
    }
}

impl PartitionFeed {
    pub(in crate::projector) fn new(part: Part, queue: Queue) -> Self {
        Self { part, queue, left: VecDeque::new(), hinted: Offset(-1) }
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    pub(super) async fn earliest(&self) -> Result<Offset> {
        let (consumer, part) = (Arc::clone(&self.queue.consumer), self.part.clone());
        let (low, _) = blocking(move || watermarks(&consumer, &part)).await?;
        Ok(Offset(low))
    }

    /// What was fetched before is dropped by the client.
    pub(super) async fn seek(&mut self, position: Offset) -> Result<()> {
        self.left.clear();
        let (consumer, part) = (Arc::clone(&self.queue.consumer), self.part.clone());
        let next = rdkafka::Offset::Offset(position.0 + 1);
        let went = blocking(move || {
            consumer
                .seek(&part.topic, part.number, next, KAFKA_REQUEST_TIME_MAX)
                .map_err(Error::kafka("going to a position of a topic"))
        })
        .await;
        match went {
            Err(Error::Kafka { source: KafkaError::Seek(text), .. }) => self.assign_again(next, &text),
            went => went,
        }
    }

    /// The client does not go anywhere on a partition that it gave up after an error; taken anew, it does.
    fn assign_again(&mut self, next: rdkafka::Offset, why: &str) -> Result<()> {
        let doing = "taking a partition anew";
        tracing::debug!(part = %self.part, why, doing);
        let consumer = Arc::clone(&self.queue.consumer);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.part.topic, self.part.number, next).map_err(Error::kafka(doing))?;
        consumer.incremental_unassign(&list).map_err(Error::kafka(doing))?;
        consumer.incremental_assign(&list).map_err(Error::kafka(doing))?;
        if let Some(queue) = Queue::split(&consumer, &self.part) {
            self.queue = queue;
        }
        Ok(())
    }

    pub(super) async fn read(&mut self, after: Offset, events_max: usize) -> Result<Batch> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        while events.len() < events_max && bytes < PROJECTOR_BATCH_BYTES_MAX {
            let Some(read) = self.next(after)? else { break };
            match read {
                Ok(recorded) => {
                    bytes += recorded.event.payload.get().len();
                    events.push(recorded);
                }
                Err(malformed) if events.is_empty() => return Ok(Batch::Malformed(*malformed)),
                Err(malformed) => {
                    self.left.push_front(Err(malformed));
                    break;
                }
            }
        }
        Ok(Batch::Events(events))
    }

    /// The next record after `after`, if one has been fetched.
    fn next(&mut self, after: Offset) -> Result<Option<Result<Recorded, Box<MalformedEvent>>>> {
        let offset = |read: &Result<Recorded, Box<MalformedEvent>>| match read {
            Ok(recorded) => recorded.offset,
            Err(malformed) => malformed.offset,
        };
        while let Some(read) = self.left.pop_front() {
            if offset(&read) > after {
                return Ok(Some(read));
            }
        }
        loop {
            match self.queue.queue.poll(Duration::ZERO) {
                None => return Ok(None),
                Some(Ok(message)) if message.offset() <= after.0 => {}
                Some(Ok(message)) => return Ok(Some(message::read(&message))),
                Some(Err(source)) => return Err(Error::Kafka { doing: "reading a topic", source }),
            }
        }
    }

    pub(super) async fn grown(&self) {
        self.queue.filled.notified().await;
    }

    pub(super) fn hint(&mut self, position: Offset) {
        if position.0 - self.hinted.0 < KAFKA_HINT_EVENTS_MIN {
            return;
        }
        self.hinted = position;
        let mut offsets = TopicPartitionList::new();
        let next = rdkafka::Offset::Offset(position.0 + 1);
        let told = offsets
            .add_partition_offset(&self.part.topic, self.part.number, next)
            .and_then(|()| self.queue.consumer.commit(&offsets, CommitMode::Async));
        if let Err(error) = told {
            tracing::debug!(part = %self.part, %error, "the position was not told to Kafka");
        }
    }
}

async fn blocking<T: Send + 'static>(ask: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(ask)
        .await
        .unwrap_or_else(|error| Err(Error::Invariant { message: format!("asking Kafka ended: {error}") }))
}
