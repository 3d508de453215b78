//! The calls of a transaction that block, and what their errors mean.

use std::{sync::Arc, time::Duration};

use rdkafka::{
    error::KafkaError,
    producer::{Producer as _, PurgeConfig},
    types::RDKafkaErrorCode as Code,
};

use super::{super::checkpoint::Mark, Client, Deliveries, Options, Outcome, Producer, Record, Stored, send};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::{KAFKA_COMMIT_TIME_MAX, KAFKA_QUEUE_BYTES_MAX, KAFKA_REQUEST_TIME_MAX, KAFKA_TRANSACTION_TIME_MAX},
};

/// Connects and takes the transactional id of a group. Blocks.
pub(super) fn open(options: &Options, group: &str, batch_bytes_max: usize) -> Result<Client> {
    let mut config = options.client();
    let millis = |time: Duration| time.as_millis().to_string();
    let defaults = [
        ("transactional.id", format!("{}.relay.{group}", options.prefix)),
        ("transaction.timeout.ms", millis(KAFKA_TRANSACTION_TIME_MAX)),
        ("message.timeout.ms", millis(KAFKA_TRANSACTION_TIME_MAX)),
        ("partitioner", "murmur2_random".to_owned()),
        ("compression.type", "lz4".to_owned()),
        // A transaction is sent as a whole and then waited for: lingering would be added to every one.
        ("linger.ms", "0".to_owned()),
        ("batch.num.messages", "100000".to_owned()),
        ("batch.size", batch_bytes_max.to_string()),
        ("message.max.bytes", crate::limits::KAFKA_RECORD_BYTES_MAX.to_string()),
        ("queue.buffering.max.messages", "0".to_owned()),
        ("queue.buffering.max.kbytes", (KAFKA_QUEUE_BYTES_MAX / 1024).to_string()),
        ("delivery.report.only.error", "true".to_owned()),
    ];
    for (name, value) in defaults {
        if !options.properties.contains_key(name) {
            config.set(name, value);
        }
    }
    let client: Client =
        config.create_with_context(Deliveries::default()).map_err(Error::kafka("connecting to Kafka"))?;
    client.init_transactions(KAFKA_REQUEST_TIME_MAX).map_err(Error::kafka("taking over the transactional id"))?;
    Ok(client)
}

/// Commits a mark to the topic of checkpoints. Whoever reads up to it has read all that was written
/// before the id was taken; what a broker calls the end of its log may be older just after a restart.
/// Blocks.
pub(super) fn mark(client: &Client, options: &Options, group: &str) -> Result<Mark> {
    let mark = Mark::new(group);
    let topic = options.checkpoint_topic();
    client.begin_transaction().map_err(Error::kafka("beginning a transaction"))?;
    client.send(mark.to_record(&topic)).map_err(|(source, _)| send::fatal_or(client, source))?;
    flush(client)?;
    if let Some(source) = client.context().take().error {
        return Err(send::fatal_or(client, source));
    }
    client.commit_transaction(KAFKA_COMMIT_TIME_MAX).map_err(Error::kafka("committing a transaction"))?;
    Ok(mark)
}

impl Producer {
    /// A batch of a transaction: of one that `is_open`, or of a new one. With a checkpoint it is committed.
    pub(super) async fn transact(
        &self,
        client: &Arc<Client>,
        is_open: bool,
        records: &[Record],
        dead: &[Record],
        stored: Option<&Stored>,
    ) -> Outcome {
        let sent = async {
            if !is_open {
                begin(client)?;
            }
            self.send_all(client, records, dead).await?;
            match stored {
                Some(stored) => self.send_checkpoint(client, stored).await,
                None => Ok(()),
            }
        };
        match (sent.await, stored) {
            (Err(outcome), _) => outcome,
            (Ok(()), None) => appended(client),
            (Ok(()), Some(_)) => finish(client, records.len()).await,
        }
    }
}

fn begin(client: &Client) -> Result<(), Outcome> {
    drop(client.context().take());
    let doing = "beginning a transaction";
    client
        .begin_transaction()
        .map_err(|source| Outcome::Failed { error: Error::Kafka { doing, source }, in_doubt: false })
}

/// Whether nothing is known yet that keeps the transaction from going on. What is not, comes out at its end.
fn appended(client: &Client) -> Outcome {
    client.poll(Duration::ZERO);
    match client.context().error() {
        Some(source) => Outcome::Failed { error: send::fatal_or(client, source), in_doubt: false },
        None => Outcome::Appended,
    }
}

/// Waits for what was sent, and commits.
async fn finish(client: &Arc<Client>, records: usize) -> Outcome {
    let flushing = client.clone();
    let flushed = blocking("sending records", move || flush(&flushing)).await;
    let undelivered = client.context().take();
    if let Some((record, bytes)) = undelivered.too_large {
        return match record < records {
            true => Outcome::TooLarge { record, bytes, is_alone: false },
            false => Outcome::Hopeless(format!(
                "a dead letter or the checkpoint has {bytes} bytes, more than its topic takes"
            )),
        };
    }
    if let Some((record, source)) = undelivered.refused.filter(|(record, _)| *record < records) {
        return Outcome::Refused { record, source };
    }
    if let Some(source) = undelivered.error {
        return Outcome::Failed { error: send::fatal_or(client, source), in_doubt: false };
    }
    if let Err(error) = flushed {
        return Outcome::Failed { error, in_doubt: false };
    }
    let committing = client.clone();
    let committed = blocking("committing a transaction", move || {
        committing.commit_transaction(KAFKA_COMMIT_TIME_MAX).map_err(Error::kafka("committing a transaction"))
    });
    match committed.await {
        Ok(()) => Outcome::Committed,
        Err(error) => {
            let in_doubt = !matches!(&error, Error::Kafka { source: KafkaError::Transaction(error), .. }
                    if error.txn_requires_abort());
            Outcome::Failed { error, in_doubt }
        }
    }
}

/// Waits until everything that was handed over is acknowledged or has failed. The client's own call
/// looks ten times a second, which is longer than a transaction takes.
fn flush(client: &Client) -> Result<()> {
    let started = Stopwatch::start();
    loop {
        client.poll(Duration::ZERO);
        if client.in_flight_count() == 0 {
            return Ok(());
        }
        if started.seconds() > KAFKA_COMMIT_TIME_MAX.as_secs_f64() {
            return Err(Error::Kafka { doing: "sending records", source: KafkaError::Flush(Code::OperationTimedOut) });
        }
        std::thread::sleep(FLUSH_GAP);
    }
}

const FLUSH_GAP: Duration = Duration::from_micros(200);

/// Gives a transaction up, so that the next can begin with the same client.
pub(super) async fn abort(client: Arc<Client>) -> Result<()> {
    blocking("aborting a transaction", move || {
        client.purge(PurgeConfig::default().queue().inflight());
        client.poll(Duration::ZERO);
        client.abort_transaction(KAFKA_REQUEST_TIME_MAX).map_err(Error::kafka("aborting a transaction"))
    })
    .await
}

/// Runs a call of the client that blocks on a thread made for it.
pub(super) async fn blocking<T: Send + 'static>(
    doing: &'static str,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let ended = |error| Error::Invariant { message: format!("{doing} ended early: {error}") };
    tokio::task::spawn_blocking(call).await.map_err(ended)?
}

/// Whether the broker says that somebody else has taken the id. It says so too when a transaction was
/// left open for longer than [`KAFKA_TRANSACTION_TIME_MAX`].
pub(super) fn is_fence(code: Code) -> bool {
    matches!(code, Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch)
}
