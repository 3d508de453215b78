//! A transactional producer: a batch of records and a checkpoint appended in one step, by one writer at
//! a time.
//!
//! Writers of one group share a transactional id. Whoever [takes over](Producer::take_over) gets a newer
//! epoch of it from the broker, which then refuses the older writer and ends what that one left open.
//!
//! There is one way out of trouble, whatever it was: the client is thrown away, and the next write takes
//! the id again and reads the checkpoint back. It tells whether the last batch is there (a commit whose
//! answer was lost), is not there, or somebody else has written since.
//!
//! Between two transactions the client pauses for some 20 ms, because the broker has not quite ended the
//! first. So while there is much to write, one transaction takes several batches ([`Producer::append`]).
//! They are not kept here: if it fails, they are void, and whoever has written them takes over again
//! and begins at the checkpoint that he then reads.

mod deliveries;
mod known;
mod send;
mod transaction;

use std::{collections::HashSet, sync::Arc, time::Duration};

use rdkafka::{error::KafkaError, producer::BaseProducer, types::RDKafkaErrorCode};

use self::{deliveries::Deliveries, transaction::blocking};
use super::{
    Options,
    checkpoint::{self, Stored},
    topics,
};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::{KAFKA_BATCH_BYTES_MAX, KAFKA_MARKERS_TIME, KAFKA_RECORD_BYTES_MAX},
    relay::{Record, WriteError},
};

/// The client of one epoch.
type Client = BaseProducer<Deliveries>;

/// Appends batches of records, each with the checkpoint that follows it.
pub(crate) struct Producer {
    options: Options,
    group: String,
    state: State,
    /// The last checkpoint that is known to be committed.
    last: Option<Stored>,
    record_bytes_max: usize,
    batch_bytes_max: usize,
    /// Topics that were there when they were looked for, since the last trouble.
    topics: HashSet<Arc<str>>,
    /// Runs since the last commit was answered.
    since_commit: Option<Stopwatch>,
}

enum State {
    /// Nothing was taken over, or somebody else did so since.
    Fenced,
    /// Ready for a transaction.
    Ready(Arc<Client>),
    /// In a transaction that has batches in it.
    Open(Arc<Client>),
    /// Such a transaction has failed: its batches are lost, or committed.
    Void,
    /// The last transaction went wrong. With a checkpoint, it may have been committed all the same.
    Broken(Option<Stored>),
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options may hold a password.
        f.debug_struct("Producer").field("group", &self.group).finish_non_exhaustive()
    }
}

impl Producer {
    /// A producer that has to [take over](Self::take_over) before it writes. Connects to nothing yet.
    pub(crate) fn new(options: Options, group: String) -> Self {
        let record_bytes_max = options.properties.get("message.max.bytes").and_then(|value| value.parse().ok());
        let record_bytes_max = record_bytes_max.unwrap_or(KAFKA_RECORD_BYTES_MAX);
        let batch_bytes_max = KAFKA_BATCH_BYTES_MAX;
        let (state, last, since_commit) = (State::Fenced, None, None);
        Self { options, group, state, last, record_bytes_max, batch_bytes_max, topics: HashSet::new(), since_commit }
    }

    /// Bytes of key, value and headers that a record may have.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// Fences whoever wrote before, and answers the last checkpoint. What the predecessor left open is
    /// aborted, what it was committing is committed first.
    ///
    /// # Errors
    /// When Kafka cannot be reached, or does not allow it.
    pub(crate) async fn take_over(&mut self) -> Result<Option<Vec<u8>>> {
        if let State::Ready(client) | State::Open(client) = std::mem::replace(&mut self.state, State::Fenced) {
            drop_aside(client);
        }
        let (client, last) = self.connect().await?;
        self.state = State::Ready(client);
        self.last = last;
        Ok(self.last.as_ref().map(|stored| stored.checkpoint.clone()))
    }

    /// Appends the records and the checkpoint in one transaction. A batch that was refused or not
    /// answered is to be written again as it was, until it is there or the writer is fenced.
    ///
    /// # Errors
    /// See [`WriteError`]; a batch that failed is not visible to anyone who reads committed records,
    /// unless the commit is what was not answered, and then the next write finds out.
    pub(crate) async fn write(
        &mut self,
        records: &[Record],
        dead: &[Record],
        checkpoint: &[u8],
    ) -> Result<(), WriteError> {
        let Some((client, is_open)) = self.client(records, checkpoint).await? else { return Ok(()) };
        self.look_for_topics(&client, is_open, records, dead).await?;
        let stored = Stored { sequence: self.next_sequence(), checkpoint: checkpoint.to_vec() };
        // If this future is dropped half-way, the next write takes it from here.
        self.state = if is_open { State::Void } else { State::Broken(Some(stored.clone())) };
        self.let_markers_land().await;
        let outcome = self.transact(&client, is_open, records, dead, Some(&stored)).await;
        match is_open {
            true => self.settle_open(outcome, client, Some(stored)),
            false => self.settle(outcome, client, Some(stored), records).await,
        }
    }

    /// Adds a batch to a transaction that a later [`write`](Self::write) ends. The batch may have reached
    /// the brokers or not when this returns; no more of it is kept than the client's queue holds.
    ///
    /// # Errors
    /// See [`WriteError`]. The first batch of a transaction can be tried again as it was; after that,
    /// [`WriteError::Void`] says that all batches of the transaction are lost.
    pub(crate) async fn append(&mut self, records: &[Record], dead: &[Record]) -> Result<(), WriteError> {
        let Some((client, is_open)) = self.client(records, &[]).await? else { return Ok(()) };
        self.look_for_topics(&client, is_open, records, dead).await?;
        self.state = if is_open { State::Void } else { State::Broken(None) };
        self.let_markers_land().await;
        let outcome = self.transact(&client, is_open, records, dead, None).await;
        match is_open {
            true => self.settle_open(outcome, client, None),
            false => self.settle(outcome, client, None, records).await,
        }
    }

    /// The client to write with, and whether it is in a transaction that has batches in it. None where the
    /// batch with this checkpoint turns out to be there.
    async fn client(
        &mut self,
        records: &[Record],
        checkpoint: &[u8],
    ) -> Result<Option<(Arc<Client>, bool)>, WriteError> {
        if let Some((record, bytes)) = send::first_over(records, self.record_bytes_max) {
            return Err(too_large(record, bytes, self.record_bytes_max));
        }
        match std::mem::replace(&mut self.state, State::Broken(None)) {
            State::Fenced => {
                self.state = State::Fenced;
                Err(WriteError::Fenced)
            }
            State::Void => {
                self.state = State::Void;
                Err(void(KafkaError::Canceled))
            }
            State::Ready(client) => Ok(Some((client, false))),
            State::Open(client) => Ok(Some((client, true))),
            State::Broken(in_doubt) => {
                let client = self.resume(in_doubt, checkpoint).await?;
                Ok(client.map(|client| (client, false)))
            }
        }
    }

    /// What has become of a transaction with earlier batches in it.
    fn settle_open(&mut self, outcome: Outcome, client: Arc<Client>, stored: Option<Stored>) -> Result<(), WriteError> {
        let error = match outcome {
            Outcome::Appended => {
                self.state = State::Open(client);
                return Ok(());
            }
            Outcome::Committed => {
                self.last = stored;
                self.state = State::Ready(client);
                self.since_commit = Some(Stopwatch::start());
                return Ok(());
            }
            Outcome::TooLarge { .. } | Outcome::Hopeless(_) => {
                void(KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge))
            }
            Outcome::Refused { source, .. } => void(source),
            Outcome::Failed { error, .. } => match self.failure(error) {
                WriteError::Retriable(error) => WriteError::Void(error),
                other => other,
            },
        };
        drop_aside(client);
        Err(error)
    }

    /// A broker answers a commit before its markers are in all partitions, and refuses the next transaction until
    /// they are; the client then tries again after 20 ms. So it is given a moment.
    async fn let_markers_land(&self) {
        let gone = self.since_commit.as_ref().map(|since| Duration::from_secs_f64(since.seconds()));
        if let Some(left) = gone.and_then(|gone| KAFKA_MARKERS_TIME.checked_sub(gone)) {
            tokio::time::sleep(left).await;
        }
    }

    async fn settle(
        &mut self,
        outcome: Outcome,
        client: Arc<Client>,
        stored: Option<Stored>,
        records: &[Record],
    ) -> Result<(), WriteError> {
        match outcome {
            Outcome::Appended => {
                self.state = State::Open(client);
                Ok(())
            }
            Outcome::Committed => {
                self.last = stored;
                self.state = State::Ready(client);
                self.since_commit = Some(Stopwatch::start());
                Ok(())
            }
            Outcome::TooLarge { record, bytes, is_alone } => {
                self.abort(client).await;
                if is_alone {
                    return Err(too_large(record, bytes, self.record_bytes_max));
                }
                self.too_large(&records[record].topic, record, bytes).await
            }
            Outcome::Refused { record, source } => {
                self.abort(client).await;
                Err(WriteError::Refused { record, reason: format!("Kafka does not take the record: {source}") })
            }
            Outcome::Hopeless(message) => {
                self.abort(client).await;
                Err(WriteError::Fatal(Error::RelayStopped { reason: message }))
            }
            Outcome::Failed { error, in_doubt } => {
                let failure = self.failure(error);
                if !matches!(failure, WriteError::Fenced) {
                    self.state = State::Broken(stored.filter(|_| in_doubt));
                }
                drop_aside(client);
                Err(failure)
            }
        }
    }

    /// Ends a transaction that went wrong by no fault of the client's.
    async fn abort(&mut self, client: Arc<Client>) {
        let aborted = transaction::abort(client.clone()).await.is_ok();
        self.state = if aborted { State::Ready(client) } else { State::Broken(None) };
    }

    /// The broker found the batch too large that this record was in, and it is the largest of them. Where
    /// it is within the limit, the batch is to blame, and the next client makes smaller ones.
    async fn too_large(&mut self, topic: &str, record: usize, bytes: usize) -> Result<(), WriteError> {
        let limit = topics::batch_bytes_max(&self.options, topic).await.map_err(|error| self.failure(error))?;
        if bytes + BATCH_BYTES_AROUND > limit {
            return Err(too_large(record, bytes, limit.min(self.record_bytes_max)));
        }
        self.batch_bytes_max = self.batch_bytes_max.min(limit.saturating_sub(BATCH_BYTES_AROUND)).max(1);
        if let State::Ready(client) = std::mem::replace(&mut self.state, State::Broken(None)) {
            drop_aside(client);
        }
        let doing = "sending batches that were too large; they will be smaller";
        let source = KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge);
        Err(WriteError::Retriable(Error::Kafka { doing, source }))
    }

    /// Takes the id again after trouble. Nothing where the batch in doubt turns out to be there.
    async fn resume(&mut self, in_doubt: Option<Stored>, checkpoint: &[u8]) -> Result<Option<Arc<Client>>, WriteError> {
        self.state = State::Broken(in_doubt.clone());
        let (client, found) = self.connect().await.map_err(|error| self.failure(error))?;
        if found == self.last {
            return Ok(Some(client));
        }
        if found.is_none() {
            let message = "the checkpoint is gone from its topic".to_owned();
            return Err(WriteError::Fatal(Error::Invariant { message }));
        }
        if found != in_doubt {
            // Somebody wrote since; he would not have been allowed to, had this one not been replaced.
            self.state = State::Fenced;
            drop_aside(client);
            return Err(WriteError::Fenced);
        }
        let is_same = found.as_ref().is_some_and(|stored| stored.checkpoint == checkpoint);
        self.last = found;
        self.state = State::Ready(client);
        if is_same {
            return Ok(None);
        }
        let message = "another batch was written before it was known what became of the last".to_owned();
        Err(WriteError::Fatal(Error::Invariant { message }))
    }

    async fn connect(&mut self) -> Result<(Arc<Client>, Option<Stored>)> {
        // Whatever the trouble was, a topic may have gone with it.
        self.topics.clear();
        let (options, group, batch_bytes_max) = (self.options.clone(), self.group.clone(), self.batch_bytes_max);
        blocking("taking over the transactional id", move || {
            let client = transaction::open(&options, &group, batch_bytes_max)?;
            let mark = transaction::mark(&client, &options, &group)?;
            Ok((Arc::new(client), checkpoint::read_last(&options, &group, &mark)?))
        })
        .await
    }

    fn next_sequence(&self) -> u64 {
        self.last.as_ref().map_or(0, |stored| stored.sequence) + 1
    }

    /// Says whose fault an error is. A writer that was fenced stays so until it takes over.
    fn failure(&mut self, error: Error) -> WriteError {
        let code = match &error {
            Error::Kafka { source, .. } => source.rdkafka_error_code(),
            _ => None,
        };
        match code {
            Some(code) if transaction::is_fence(code) => {
                self.state = State::Fenced;
                WriteError::Fenced
            }
            _ if error.is_forbidden_by_kafka() => WriteError::Fatal(error),
            _ if matches!(&error, Error::Kafka { source: KafkaError::ClientConfig(..), .. }) => {
                WriteError::Fatal(error)
            }
            _ if error.is_transient() => WriteError::Retriable(error),
            _ => WriteError::Fatal(error),
        }
    }
}

/// Bytes of a batch beside the key, the value and the headers of its only record, about.
const BATCH_BYTES_AROUND: usize = 512;

/// How far a transaction has come.
enum Outcome {
    /// It has the batch, and can take more.
    Appended,
    Committed,
    TooLarge {
        record: usize,
        bytes: usize,
        /// Whether it was looked at by itself, and not with its batch.
        is_alone: bool,
    },
    /// The broker will never take this record.
    Refused {
        record: usize,
        source: KafkaError,
    },
    /// What is no record of the batch will never be taken.
    Hopeless(String),
    Failed {
        error: Error,
        in_doubt: bool,
    },
}

fn too_large(record: usize, bytes: usize, limit: usize) -> WriteError {
    WriteError::Refused { record, reason: format!("the record has {bytes} bytes, at most {limit} are taken") }
}

fn void(source: KafkaError) -> WriteError {
    WriteError::Void(Error::Kafka { doing: "writing several batches in one transaction", source })
}

/// A client that is dropped waits for its own end, which is not for a thread of the runtime.
fn drop_aside(client: Arc<Client>) {
    drop(tokio::task::spawn_blocking(move || drop(client)));
}
