//! What nobody can be faster than: reading the same bytes of the binlog and looking at none of them,
//! and sending the same records to Kafka and making none of them.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use mysql_async::{BinlogStreamRequest, binlog::EventType};
use rdkafka::{
    ClientConfig,
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer as _},
    types::RDKafkaErrorCode,
};
use tidings_backbone::{
    Clock, kafka,
    kafka::topics::{self, Purpose},
    relay::{Options, Position, Record, Source},
};

use crate::{
    child::{Shape, has_passed},
    outbox::{Outbox, connect},
};

const TIME_MAX: Duration = Duration::from_secs(60);
/// Records that are committed together, as many as the relay takes at most.
const TRANSACTION_RECORDS: usize = tidings_backbone::limits::RELAY_BATCH_RECORDS_MAX;

/// What went by in the binlog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) seconds: f64,
    pub(crate) events: usize,
    pub(crate) bytes: u64,
}

/// The stream from the first row's transaction to the last one's, with its events only counted.
pub(crate) async fn binlog(outbox: &Outbox) -> Read {
    let conn = connect(&outbox.server).await;
    let from = &outbox.from;
    let request = BinlogStreamRequest::new(77_001).with_filename(from.file.as_bytes()).with_pos(from.offset);
    let start = Instant::now();
    let mut stream = conn.get_binlog_stream(request).await.unwrap();
    let (mut position, mut events, mut bytes) = (from.clone(), 0, 0);
    while !has_passed(&position, &outbox.to) {
        let event = stream.next().await.unwrap().unwrap();
        let header = event.header();
        events += 1;
        bytes += u64::from(header.event_size());
        // What the server makes up for the stream alone has no place in a file.
        if header.log_pos() == 0 {
            continue;
        }
        position.offset = header.log_pos().into();
        if header.event_type() == Ok(EventType::ROTATE_EVENT) {
            position = rotated(event.data());
        }
    }
    Read { seconds: start.elapsed().as_secs_f64(), events, bytes }
}

/// Eight bytes of offset, then the name of the file.
fn rotated(body: &[u8]) -> Position {
    let (offset, file) = body.split_at(8);
    let offset = u64::from_le_bytes(offset.try_into().unwrap());
    Position { file: String::from_utf8(file.to_vec()).unwrap(), offset, ..Position::default() }
}

/// The records that the relay makes of all rows.
pub(crate) async fn records(outbox: &Outbox, rows: usize, prefix: &str) -> Vec<Record> {
    let formatter = Shape::CloudEvents.formatter(prefix, usize::MAX);
    let options = Options::new(outbox.source(), "bench-records");
    let checkpoint = tidings_backbone::relay::Checkpoint::at(outbox.from.clone());
    let mut source = Source::start(options, formatter, Some(checkpoint), Clock::system()).unwrap();
    let mut records = Vec::with_capacity(rows);
    while records.len() < rows {
        records.append(&mut source.next().await.unwrap().records);
    }
    records
}

/// Seconds until all records are acknowledged, on a topic of their own. Transactions are as large as the
/// relay's; without them, the client gathers as it likes.
pub(crate) async fn produce(kafka: &kafka::Options, topic: &str, records: &[Record], transactions: bool) -> f64 {
    let topic = format!("{}.{topic}", kafka.prefix);
    topics::ensure(kafka, &[(topic.clone(), Purpose::Events)]).await.unwrap();
    let producer = producer(kafka, &topic, transactions);
    tokio::task::block_in_place(|| {
        if transactions {
            producer.init_transactions(TIME_MAX).unwrap();
        }
        // The client learns of the topic now, as that of a running relay has.
        producer.client().fetch_metadata(Some(&topic), TIME_MAX).unwrap();
        let start = Instant::now();
        let size = if transactions { TRANSACTION_RECORDS } else { records.len() };
        for chunk in records.chunks(size) {
            if transactions {
                producer.begin_transaction().unwrap();
            }
            chunk.iter().for_each(|record| send(&producer, &topic, record));
            if transactions {
                producer.commit_transaction(TIME_MAX).unwrap();
            } else {
                producer.flush(TIME_MAX).unwrap();
            }
        }
        start.elapsed().as_secs_f64()
    })
}

fn producer(kafka: &kafka::Options, topic: &str, transactions: bool) -> BaseProducer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &kafka.brokers)
        .set("partitioner", "murmur2_random")
        .set("compression.type", "lz4")
        .set("batch.num.messages", "100000")
        .set("batch.size", "1000000")
        .set("queue.buffering.max.messages", "0")
        .set("queue.buffering.max.kbytes", "262144")
        .set("delivery.report.only.error", "true");
    if transactions {
        config.set("transactional.id", topic);
    }
    config.create().unwrap()
}

fn send(producer: &BaseProducer, topic: &str, record: &Record) {
    let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
    for (key, value) in &record.headers {
        headers = headers.insert(Header { key, value: value.as_ref() });
    }
    let mut message: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).headers(headers);
    (message.key, message.payload) = (record.key.as_deref(), record.value.as_deref());
    message.timestamp = record.timestamp_ms;
    while let Err((error, unsent)) = producer.send(message) {
        assert_eq!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
        producer.poll(Duration::from_millis(1));
        message = unsent;
    }
}
