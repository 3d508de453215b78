//! Where a source puts what it has read: batches of whole transactions, handed over one at a time.
//!
//! While one batch is being written, the next one is made of all that is read meanwhile. So a quiet
//! source has batches of one transaction and no delay, and a busy one has large ones.

use std::{ops::Range, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::{Changes, Checkpoint, DeadLetter, Formatter, Parked, Record};
use crate::{Error, Result, clock::Stopwatch, limits::RELAY_GATHER_TIME_MAX, telemetry};

/// What is written in one step.
#[derive(Debug)]
pub struct Batch {
    /// Records, in the order of commits.
    pub records: Vec<Record>,
    /// Rows that could not become records, in the order of commits.
    pub dead: Vec<DeadLetter>,
    /// How far the source has come with them.
    pub checkpoint: Checkpoint,
    /// Bytes of the records, dead letters counted as large.
    pub bytes: usize,
    /// When the first of them was written, by the server's clock, in epoch milliseconds; nothing if there
    /// are none.
    pub since_ms: Option<i64>,
    /// Held until the batch is written or dropped: only then the next one is handed over.
    _turn: OwnedSemaphorePermit,
}

/// The receiving end: batches in order.
#[derive(Debug)]
pub struct Batches(mpsc::Receiver<Batch>);

impl Batches {
    /// The next batch, once the one before has been dropped; nothing once the source has ended.
    pub async fn next(&mut self) -> Option<Batch> {
        self.0.recv().await
    }
}

/// The sending end, with the batch that is being made.
#[derive(Debug)]
pub(super) struct Outlet {
    formatter: Formatter,
    records: Vec<Record>,
    dead: Vec<DeadLetter>,
    bytes: usize,
    since_ms: Option<i64>,
    /// Since the batch has something in it.
    gathering: Option<Stopwatch>,
    parked: Parked,
    records_max: usize,
    bytes_max: usize,
    turn: Arc<Semaphore>,
    batches: mpsc::Sender<Batch>,
}

/// Dead letters are few, so it is enough to count them as large.
const DEAD_LETTER_BYTES_GUESSED: usize = 64 * 1024;

/// A point in the batch to which it can be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    records: usize,
    dead: usize,
    bytes: usize,
}

impl Outlet {
    pub(super) fn new(formatter: Formatter, parked: Parked, records_max: usize, bytes_max: usize) -> (Self, Batches) {
        let (sender, receiver) = mpsc::channel(1);
        let outlet = Self {
            formatter,
            records: Vec::new(),
            dead: Vec::new(),
            bytes: 0,
            since_ms: None,
            gathering: None,
            parked,
            records_max,
            bytes_max,
            turn: Arc::new(Semaphore::new(1)),
            batches: sender,
        };
        (outlet, Batches(receiver))
    }

    /// Marks where a transaction begins. There is one mark at a time: the keys that are parked since are known.
    pub(super) fn mark(&mut self) -> Mark {
        self.parked.mark();
        Mark { records: self.records.len(), dead: self.dead.len(), bytes: self.bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.dead.is_empty()
    }

    /// Whether nobody receives batches any more.
    pub(super) fn is_closed(&self) -> bool {
        self.batches.is_closed()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max || self.records.len() + self.dead.len() >= self.records_max
    }

    /// Whether what there is has been gathered for long enough, though more can be had at once.
    pub(super) fn is_ripe(&self) -> bool {
        self.gathering.as_ref().is_none_or(|since| since.seconds() >= RELAY_GATHER_TIME_MAX.as_secs_f64())
    }

    /// Adds what becomes of rows.
    pub(super) fn push(&mut self, changes: &Changes<'_>) -> Result<()> {
        let (records, dead) = (self.records.len(), self.dead.len());
        self.formatter.push(changes, &mut self.parked, &mut self.records, &mut self.dead)?;
        self.since_ms.get_or_insert(i64::from(changes.event_seconds) * 1_000);
        self.gathering.get_or_insert_with(Stopwatch::start);
        self.bytes += self.records[records..].iter().map(Record::bytes).sum::<usize>();
        self.bytes += self.dead[dead..].iter().map(|_| DEAD_LETTER_BYTES_GUESSED).sum::<usize>();
        Ok(())
    }

    /// Takes out what was added after `mark`: its transaction is void, or comes again in pieces.
    pub(super) fn take_back(&mut self, mark: Mark) {
        self.records.truncate(mark.records);
        self.dead.truncate(mark.dead);
        self.bytes = mark.bytes;
        if self.is_empty() {
            self.since_ms = None;
        }
        self.parked.take_back();
    }

    /// Whether anything stands before `mark`.
    pub(super) fn has_before(&self, mark: &Mark) -> bool {
        mark.records + mark.dead > 0
    }

    /// Forgets what was not handed over.
    pub(super) fn clear(&mut self, parked: &Parked) {
        self.records.clear();
        self.dead.clear();
        self.bytes = 0;
        self.parked = parked.clone();
    }

    /// Waits until the batch before is written: then it is the next one's turn.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        self.turn.clone().acquire_owned().await.map_err(|_closed| Error::SourceEnded)
    }

    /// Hands over what stands before `mark`; what stands behind stays, and `mark` becomes the beginning.
    pub(super) async fn hand_over_before(
        &mut self,
        turn: OwnedSemaphorePermit,
        mark: &mut Mark,
        checkpoint: &mut Checkpoint,
    ) -> Result<()> {
        let (records, dead) = (self.records.split_off(mark.records), self.dead.split_off(mark.dead));
        let bytes = self.bytes - mark.bytes;
        let parked = self.parked.take_back();
        self.hand_over(turn, checkpoint).await?;
        (self.records, self.dead, self.bytes) = (records, dead, bytes);
        self.parked.restore(parked);
        *mark = Mark::default();
        Ok(())
    }

    /// Hands over all there is. The checkpoint learns which keys are parked.
    pub(super) async fn hand_over(&mut self, turn: OwnedSemaphorePermit, checkpoint: &mut Checkpoint) -> Result<()> {
        checkpoint.parked = self.parked.clone();
        // The next batch is likely to be as large.
        let room = Vec::with_capacity(self.records.len());
        let records = std::mem::replace(&mut self.records, room);
        let dead = std::mem::take(&mut self.dead);
        let bytes = std::mem::take(&mut self.bytes);
        self.gathering = None;
        let since_ms = self.since_ms.take().filter(|_| !records.is_empty() || !dead.is_empty());
        telemetry::relay_handed_over(bytes);
        let batch = Batch { records, dead, checkpoint: checkpoint.clone(), bytes, since_ms, _turn: turn };
        // If nobody receives any more, the relay is being stopped, and this task with it.
        self.batches.send(batch).await.map_err(|_closed| Error::SourceEnded)
    }
}

/// Whether a row of a transaction is void, because the transaction was rolled back to a savepoint.
pub(super) fn is_void(void: &[Range<u64>], row: u64) -> bool {
    void.iter().any(|range| range.contains(&row))
}
