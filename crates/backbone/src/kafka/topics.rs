//! Topics, made and checked at start.

use std::time::Duration;

use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    types::RDKafkaErrorCode,
};

use super::Options;
use crate::{Error, Result, limits::KAFKA_REQUEST_TIME_MAX};

/// What a topic is for, which decides how it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Events, by key over [`Options::partitions`].
    Events,
    /// The last value of each key, on one partition.
    Compacted,
    /// Records kept for an operator, on one partition.
    DeadLetters,
}

/// Makes the topics that are missing, and checks the partitions of the others: the place of a key
/// depends on their number, so it must never change while there are events.
///
/// # Errors
/// When Kafka cannot be asked or does not yet know what was made, or a topic has another number of partitions than
/// configured.
pub async fn ensure(options: &Options, topics: &[(String, Purpose)]) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> =
        options.client().create().map_err(Error::kafka("connecting to Kafka"))?;
    let new: Vec<NewTopic<'_>> = topics.iter().map(|(name, purpose)| new_topic(options, name, *purpose)).collect();
    let waiting = AdminOptions::new()
        .request_timeout(Some(KAFKA_REQUEST_TIME_MAX))
        .operation_timeout(Some(KAFKA_REQUEST_TIME_MAX));
    let made = admin.create_topics(&new, &waiting).await.map_err(Error::kafka("making topics"))?;
    for outcome in made {
        match outcome {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((topic, code)) => return Err(Error::TopicRefused { topic, code }),
        }
    }
    let names: Vec<(String, i32)> =
        topics.iter().map(|(name, purpose)| (name.clone(), partitions(options, *purpose))).collect();
    tokio::task::spawn_blocking(move || check(&admin, &names))
        .await
        .unwrap_or_else(|error| Err(Error::Invariant { message: format!("checking topics ended: {error}") }))
}

/// Bytes that a batch of records of a topic may have.
pub(crate) async fn batch_bytes_max(options: &Options, topic: &str) -> Result<usize> {
    let failed = || Error::kafka("reading the settings of a topic");
    let admin: AdminClient<DefaultClientContext> = options.client().create().map_err(failed())?;
    let waiting = AdminOptions::new().request_timeout(Some(KAFKA_REQUEST_TIME_MAX));
    let answers = admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &waiting).await.map_err(failed())?;
    let settings = answers
        .into_iter()
        .next()
        .unwrap_or(Err(RDKafkaErrorCode::UnknownTopic))
        .map_err(|code| Error::TopicRefused { topic: topic.to_owned(), code })?;
    let limit = settings.get("max.message.bytes").and_then(|entry| entry.value.as_ref()?.parse().ok());
    limit.ok_or_else(|| Error::Invariant { message: format!("the topic `{topic}` does not tell its limits") })
}

fn partitions(options: &Options, purpose: Purpose) -> i32 {
    match purpose {
        Purpose::Events => options.partitions,
        Purpose::Compacted | Purpose::DeadLetters => 1,
    }
}

fn new_topic<'t>(options: &'t Options, name: &'t str, purpose: Purpose) -> NewTopic<'t> {
    let topic = NewTopic::new(name, partitions(options, purpose), TopicReplication::Fixed(options.replicas));
    match purpose {
        // By their own time, old events that are published late would be deleted before anyone has read them.
        Purpose::Events => topic.set("message.timestamp.type", "LogAppendTime"),
        // Only closed segments are compacted.
        Purpose::Compacted => topic
            .set("cleanup.policy", "compact")
            .set("min.cleanable.dirty.ratio", "0.1")
            .set("segment.bytes", "16777216"),
        Purpose::DeadLetters => topic.set("retention.ms", "-1"),
    }
}

fn check(admin: &AdminClient<DefaultClientContext>, topics: &[(String, i32)]) -> Result<()> {
    for (name, wanted) in topics {
        let found = partition_count(admin, name)?;
        if found != *wanted {
            return Err(Error::TopicPartitions { topic: name.clone(), found, wanted: *wanted });
        }
    }
    Ok(())
}

/// Just after a topic was made, not every broker knows it yet; a busy one takes long to. It is no other number of
/// partitions than is wanted: whoever starts waits on.
fn partition_count(admin: &AdminClient<DefaultClientContext>, name: &str) -> Result<i32> {
    let mut tries_left = TRIES_MAX;
    loop {
        let metadata = admin
            .inner()
            .fetch_metadata(Some(name), KAFKA_REQUEST_TIME_MAX)
            .map_err(Error::kafka("reading the partitions of a topic"))?;
        let found = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        if found > 0 {
            return Ok(i32::try_from(found).unwrap_or(i32::MAX));
        }
        if tries_left == 0 {
            return Err(Error::TopicRefused {
                topic: name.to_owned(),
                code: RDKafkaErrorCode::UnknownTopicOrPartition,
            });
        }
        tries_left -= 1;
        std::thread::sleep(TRY_GAP);
    }
}

const TRIES_MAX: u32 = 50;
const TRY_GAP: Duration = Duration::from_millis(100);
