//! Handing records to the client.

use std::{sync::Arc, time::Duration};

use rdkafka::{
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::BaseRecord,
    types::RDKafkaErrorCode,
};

use super::{Client, Outcome, Producer, Record, Stored};
use crate::{Clock, Error, clock::Stopwatch, limits::KAFKA_COMMIT_TIME_MAX};

/// Records after which other tasks get a turn.
const RECORDS_BETWEEN_YIELDS: usize = 256;
/// Pause while the client's own queue is full.
const FULL_GAP: Duration = Duration::from_millis(1);
/// The index of what is no record of the batch.
const NONE: usize = usize::MAX;

type Message<'a> = BaseRecord<'a, [u8], [u8], usize>;

impl Producer {
    pub(super) async fn send_all(
        &self,
        client: &Arc<Client>,
        records: &[Record],
        dead: &[Record],
    ) -> Result<(), Outcome> {
        let latest_ms = Clock::system().now().0 + RECORD_AHEAD_MS_MAX;
        for (index, record) in records.iter().enumerate() {
            send(client, message(record, index, latest_ms)).await?;
            if index % RECORDS_BETWEEN_YIELDS == RECORDS_BETWEEN_YIELDS - 1 {
                tokio::task::yield_now().await;
            }
        }
        for record in dead {
            send(client, message(record, NONE, latest_ms)).await?;
        }
        Ok(())
    }

    pub(super) async fn send_checkpoint(&self, client: &Arc<Client>, stored: &Stored) -> Result<(), Outcome> {
        let topic = self.options.checkpoint_topic();
        let checkpoint = Message::with_opaque_to(&topic, NONE)
            .partition(0)
            .key(self.group.as_bytes())
            .payload(&stored.checkpoint)
            .headers(stored.headers());
        send(client, checkpoint).await
    }
}

/// How far ahead the time of a record may be, in milliseconds. Brokers refuse more than an hour, and all
/// its neighbours with it; local time that was stored as UTC would stop the relay for good.
const RECORD_AHEAD_MS_MAX: i64 = 30 * 60 * 1_000;

/// A record as the client takes it. A time that brokers would refuse is left out: they put theirs.
fn message(record: &Record, index: usize, latest_ms: i64) -> Message<'_> {
    let mut message = Message::with_opaque_to(&record.topic, index);
    message.partition = record.partition;
    message.key = record.key.as_deref();
    message.payload = record.value.as_deref();
    message.timestamp = record.timestamp_ms.filter(|time| *time <= latest_ms);
    if !record.headers.is_empty() {
        let headers = OwnedHeaders::new_with_capacity(record.headers.len());
        let insert = |headers: OwnedHeaders, (key, value): &(Arc<str>, Option<Vec<u8>>)| {
            headers.insert(Header { key, value: value.as_ref() })
        };
        message.headers = Some(record.headers.iter().fold(headers, insert));
    }
    message
}

/// Hands one record over, and waits while the client has no room.
async fn send(client: &Client, mut message: Message<'_>) -> Result<(), Outcome> {
    let mut waiting = None;
    loop {
        let (source, unsent) = match client.send(message) {
            Ok(()) => return Ok(()),
            Err(unsent) => unsent,
        };
        let waited = waiting.get_or_insert_with(Stopwatch::start).seconds();
        match source.rdkafka_error_code() {
            Some(RDKafkaErrorCode::QueueFull) if waited < KAFKA_COMMIT_TIME_MAX.as_secs_f64() => {}
            Some(RDKafkaErrorCode::UnknownPartition) if unsent.delivery_opaque != NONE => {
                return Err(Outcome::Refused { record: unsent.delivery_opaque, source });
            }
            Some(RDKafkaErrorCode::MessageSizeTooLarge) if unsent.delivery_opaque != NONE => {
                let bytes = unsent.payload.map_or(0, <[u8]>::len) + unsent.key.map_or(0, <[u8]>::len);
                return Err(Outcome::TooLarge { record: unsent.delivery_opaque, bytes, is_alone: true });
            }
            _ => return Err(Outcome::Failed { error: fatal_or(client, source), in_doubt: false }),
        }
        message = unsent;
        client.poll(Duration::ZERO);
        tokio::time::sleep(FULL_GAP).await;
    }
}

/// A client that has met its end answers everything alike; why it ended is what counts.
pub(super) fn fatal_or(client: &Client, source: KafkaError) -> Error {
    use rdkafka::producer::Producer;
    let end = client.client().fatal_error().map(|(code, _)| KafkaError::MessageProduction(code));
    Error::Kafka { doing: "sending records", source: end.unwrap_or(source) }
}

/// The first record with more than `limit` bytes, and how many it has.
pub(super) fn first_over(records: &[Record], limit: usize) -> Option<(usize, usize)> {
    let sizes = records.iter().map(Record::bytes).enumerate();
    sizes.into_iter().find(|(_, bytes)| *bytes > limit)
}
