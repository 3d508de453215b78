//! Topics are looked for before anything is sent to them.
//!
//! A client that is given records for a topic that is not there waits for it, for as long as a transaction may take,
//! and says in the end that a topic is unknown, and not which.

use std::sync::Arc;

use rdkafka::{producer::Producer as _, types::RDKafkaErrorCode};

use super::{Client, Producer, State, drop_aside, transaction::blocking};
use crate::{
    Error, Result,
    limits::{KAFKA_REQUEST_TIME_MAX, KAFKA_TOPIC_LOOK_GAP, KAFKA_TOPIC_LOOKS_MAX, KAFKA_TOPICS_KNOWN_MAX},
    relay::{Record, WriteError},
};

impl Producer {
    /// Makes sure that the topics of a batch are there, of which nothing was sent yet: so it can be tried again as
    /// it is. A transaction with batches in it does not wait for a topic, since its time is measured: it is void.
    pub(super) async fn look_for_topics(
        &mut self,
        client: &Arc<Client>,
        is_open: bool,
        records: &[Record],
        dead: &[Record],
    ) -> Result<(), WriteError> {
        self.state = if is_open { State::Void } else { State::Broken(None) };
        let Err(error) = self.look(client, records, dead).await else { return Ok(()) };
        match (self.failure(error), is_open) {
            (WriteError::Retriable(error), true) => {
                drop_aside(client.clone());
                Err(WriteError::Void(error))
            }
            (error @ WriteError::Retriable(_), false) => {
                self.state = State::Ready(client.clone());
                Err(error)
            }
            (error, _) => {
                drop_aside(client.clone());
                Err(error)
            }
        }
    }

    async fn look(&mut self, client: &Arc<Client>, records: &[Record], dead: &[Record]) -> Result<()> {
        let mut last: Option<&Arc<str>> = None;
        for Record { topic, .. } in records.iter().chain(dead) {
            // Neighbours mostly share the name itself, so that most are not even looked up.
            let is_known = last.is_some_and(|last| Arc::ptr_eq(last, topic)) || self.topics.contains(topic);
            last = Some(topic);
            if is_known {
                continue;
            }
            let (asking, name) = (client.clone(), topic.clone());
            if !blocking("looking for a topic", move || is_there(&asking, &name)).await? {
                return Err(Error::TopicMissing { topic: topic.to_string() });
            }
            // One makes room, whichever: were all forgotten, each batch over a few more would ask for hundreds anew.
            if self.topics.len() >= KAFKA_TOPICS_KNOWN_MAX
                && let Some(one) = self.topics.iter().next().cloned()
            {
                self.topics.remove(&one);
            }
            self.topics.insert(topic.clone());
        }
        Ok(())
    }
}

/// Whether the brokers know a topic. Those that make topics by themselves do so when they are asked for one, and need
/// a moment for it. Blocks.
fn is_there(client: &Client, topic: &str) -> Result<bool> {
    for look in 0..KAFKA_TOPIC_LOOKS_MAX {
        if look > 0 {
            std::thread::sleep(KAFKA_TOPIC_LOOK_GAP);
        }
        let metadata = client.client().fetch_metadata(Some(topic), KAFKA_REQUEST_TIME_MAX);
        let metadata = metadata.map_err(Error::kafka("looking for a topic"))?;
        let code = metadata.topics().first().and_then(|found| found.error()).map(RDKafkaErrorCode::from);
        // What else there is to say of the topic is said to who sends to it.
        if code != Some(RDKafkaErrorCode::UnknownTopicOrPartition) {
            return Ok(true);
        }
    }
    Ok(false)
}
