//! A projector as a consumer group: Kafka divides the partitions of its topics among the processes that
//! run it, and each assigned partition has a task of its own.
//!
//! Rebalancing is cooperative: partitions that stay are not disturbed. One that is taken away is given
//! up only after its task has finished its transaction; should this process have been thought dead
//! meanwhile, the compare-and-set of the position makes its transaction fail instead of doubling effects.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    ClientContext, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
    error::KafkaResult,
    types::RDKafkaRespErr,
};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    clear,
    feed::{Feed, PartitionFeed, Queue},
    joint::Joint,
    task::Plan,
};
use crate::{
    Error, Result,
    kafka::Options,
    limits::{
        KAFKA_POSITIONS_TIME_MAX, KAFKA_QUEUE_KIB_MAX, KAFKA_REBALANCE_TIME_MAX, KAFKA_SESSION_TIME_MAX,
        PROJECTOR_BACKOFF_MAX, PROJECTOR_BACKOFF_MIN,
    },
    log::{KafkaLog, Offset as Position, Part},
};

/// One projector on all the partitions that are assigned to this process.
#[derive(Debug)]
pub(super) struct Group {
    plan: Plan,
    log: KafkaLog,
}

/// What the consumer tells of rebalances.
#[derive(Debug)]
pub(super) struct GroupContext {
    plan: Plan,
    runtime: Handle,
    /// Assigned, and without a task so far.
    assigned: Mutex<Vec<Part>>,
    running: Mutex<BTreeMap<Part, Running>>,
}

/// The task of a partition.
#[derive(Debug)]
struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Group {
    pub(super) fn new(plan: Plan, log: KafkaLog) -> Self {
        Self { plan, log }
    }

    /// Runs until `shutdown`; each task then finishes its transaction.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let runtime = Handle::current();
        let (plan, log) = (self.plan.clone(), self.log.clone());
        // The client's calls block, and so does waiting for a task while a partition is taken away.
        let thread = tokio::task::spawn_blocking(move || self.block(&runtime, &shutdown));
        tokio::select! {
            ended = thread => if let Err(error) = ended {
                tracing::error!(error = Error::chain(&error), "the thread of a consumer group ended badly");
            },
            () = clear::keep(&plan, &log) => {}
        }
        clear::note_at_the_end(&plan, &log).await;
    }

    fn block(&self, runtime: &Handle, shutdown: &CancellationToken) {
        let mut backoff = PROJECTOR_BACKOFF_MIN;
        while !shutdown.is_cancelled() {
            match self.consume(runtime, shutdown) {
                Ok(()) => return,
                Err(error) => {
                    self.plan.back_off(&error, backoff);
                    runtime.block_on(async {
                        tokio::select! {
                            () = tokio::time::sleep(backoff) => {}
                            () = shutdown.cancelled() => {}
                        }
                    });
                    backoff = (backoff * 2).min(PROJECTOR_BACKOFF_MAX);
                }
            }
        }
    }

    fn consume(&self, runtime: &Handle, shutdown: &CancellationToken) -> Result<()> {
        let consumer = self.connect(runtime)?;
        let joint = Joint::start(&self.plan, runtime);
        let topics = self.log.topics(self.plan.projector().event_types());
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        consumer.subscribe(&topics).map_err(Error::kafka("joining a consumer group"))?;
        let mut said = false;
        while !shutdown.is_cancelled() {
            match consumer.poll(POLL_TIME) {
                // What was fetched before its partition had a queue of its own; its task reads it again.
                None | Some(Ok(_)) => {}
                Some(Err(error)) => {
                    // The client goes on by itself; said once until all is well again.
                    if !std::mem::replace(&mut said, true) {
                        tracing::warn!(projector = self.plan.identity(), %error, "Kafka is in trouble");
                    }
                }
            }
            for part in std::mem::take(&mut *lock(&consumer.context().assigned)) {
                said = false;
                self.begin(&consumer, &joint, part, shutdown);
            }
        }
        consumer.context().end(None);
        consumer.unsubscribe();
        // Leaving is told to the broker at once, so that others need not wait for the session's end.
        while !consumer.closed() {
            match consumer.assignment() {
                Ok(assignment) if assignment.count() > 0 => drop(consumer.poll(POLL_TIME)),
                _ => break,
            }
        }
        Ok(())
    }

    fn connect(&self, runtime: &Handle) -> Result<Arc<BaseConsumer<GroupContext>>> {
        let Options { prefix, .. } = self.log.options();
        let mut config = self.log.options().client();
        config
            .set("group.id", format!("{prefix}.{}", self.plan.identity()))
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            // A position outside of the topic is an error to be told, never a place to go on silently.
            .set("auto.offset.reset", "error")
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", KAFKA_SESSION_TIME_MAX.as_millis().to_string())
            // Brokers wait as long for members that do not join anew, and the partitions that change hands wait with
            // them: 300 s by default. Here every client is asked twenty times a second.
            .set("max.poll.interval.ms", KAFKA_REBALANCE_TIME_MAX.as_millis().to_string())
            .set("heartbeat.interval.ms", (KAFKA_SESSION_TIME_MAX / 5).as_millis().to_string())
            .set("queued.min.messages", "10000")
            .set("queued.max.messages.kbytes", KAFKA_QUEUE_KIB_MAX.to_string())
            .set("fetch.wait.max.ms", "100")
            .set("topic.metadata.refresh.interval.ms", "30000");
        let consumer = config.create_with_context(GroupContext {
            plan: self.plan.clone(),
            runtime: runtime.clone(),
            assigned: Mutex::default(),
            running: Mutex::default(),
        });
        consumer.map(Arc::new).map_err(Error::kafka("connecting to Kafka"))
    }

    /// Begins the task of a partition that was assigned.
    fn begin(
        &self,
        consumer: &Arc<BaseConsumer<GroupContext>>,
        joint: &Joint,
        part: Part,
        shutdown: &CancellationToken,
    ) {
        let Some(queue) = Queue::split(consumer, &part) else { return };
        let shutdown = shutdown.child_token();
        let task = self.plan.task(Feed::Partition(PartitionFeed::new(part.clone(), queue))).joining(joint.clone());
        let task = consumer.context().runtime.spawn(task.run(shutdown.clone()));
        let before = lock(&consumer.context().running).insert(part, Running { shutdown, task });
        if let Some(before) = before {
            before.shutdown.cancel();
        }
    }
}

const POLL_TIME: Duration = Duration::from_millis(50);

impl GroupContext {
    /// Where to begin: at the positions in the database, as numbers. What Kafka has noted is a hint for tools.
    ///
    /// The task of each partition goes to its position anyway. But a client that is still asking where "the end" is,
    /// when it is told to go elsewhere, asks again half a second later and goes there after all (librdkafka 2.x,
    /// `rd_kafka_toppar_handle_Offset` on an outdated answer): all between would be skipped in silence. So no such
    /// question is ever asked, unless the database cannot be; then it is for the beginning, from where all that is
    /// applied is passed over, and nothing skipped.
    fn begin_at(&self, parts: &[Part]) -> KafkaResult<TopicPartitionList> {
        let asking = tokio::time::timeout(KAFKA_POSITIONS_TIME_MAX, self.plan.positions(parts));
        let positions = match self.runtime.block_on(asking) {
            Ok(Ok(positions)) => positions,
            Ok(Err(error)) => {
                tracing::debug!(error = Error::chain(&error), "positions are not known yet");
                BTreeMap::new()
            }
            Err(_) => BTreeMap::new(),
        };
        beginnings(parts, &positions)
    }

    /// Ends the tasks of these parts, or all, and waits until each has finished its transaction.
    fn end(&self, parts: Option<&[Part]>) {
        let ended: Vec<Running> = {
            let mut running = lock(&self.running);
            match parts {
                None => std::mem::take(&mut *running).into_values().collect(),
                Some(parts) => parts.iter().filter_map(|part| running.remove(part)).collect(),
            }
        };
        for task in &ended {
            task.shutdown.cancel();
        }
        for task in ended {
            if let Err(error) = self.runtime.block_on(task.task) {
                tracing::error!(error = Error::chain(&error), "a projector's task ended badly");
            }
        }
    }
}

impl ClientContext for GroupContext {}

impl ConsumerContext for GroupContext {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let parts = parts(list);
        let done = if event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            let assigned = self.begin_at(&parts).and_then(|list| consumer.incremental_assign(&list));
            lock(&self.assigned).extend(parts);
            assigned
        } else {
            lock(&self.assigned).retain(|part| !parts.contains(part));
            self.end(Some(&parts));
            consumer.incremental_unassign(list)
        };
        if let Err(error) = done {
            tracing::error!(%error, "partitions were not taken or given up");
        }
    }
}

/// After each position; at the beginning where there is none.
fn beginnings(parts: &[Part], positions: &BTreeMap<Part, Position>) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(parts.len());
    for part in parts {
        let begin = positions.get(part).map_or(Offset::Beginning, |position| Offset::Offset(position.0 + 1));
        list.add_partition_offset(&part.topic, part.number, begin)?;
    }
    Ok(list)
}

fn parts(list: &TopicPartitionList) -> Vec<Part> {
    let elements = list.elements();
    elements.iter().map(|element| Part { topic: element.topic().into(), number: element.partition() }).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_begins_after_its_position_and_never_at_the_end() {
        let part = |number| Part { topic: "t".into(), number };
        let positions = BTreeMap::from([(part(0), Position(-1)), (part(1), Position(41))]);
        let list = beginnings(&[part(0), part(1), part(2)], &positions).unwrap();
        let offsets: Vec<Offset> = list.elements().iter().map(|element| element.offset()).collect();
        assert_eq!(offsets, [Offset::Offset(0), Offset::Offset(42), Offset::Beginning]);
    }
}
