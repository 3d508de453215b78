//! Batches into the sink, as often as it takes.

use tokio_util::sync::CancellationToken;

use super::{
    Checkpoint, DeadLetter, Parked, Record, Sink, State,
    backoff::Backoff,
    dead_letter::{WAITS, set_aside},
    sink::WriteError,
    status::Live,
};
use crate::{Error, Result, clock::Stopwatch, telemetry, trace::RelayTrace};

/// The sink, and what is known of its refusals.
#[derive(Debug)]
pub(super) struct Writer {
    sink: Sink,
    /// For the log.
    group: String,
    live: Live,
    /// Keys that were parked because the sink refused a record, which the source does not know of.
    refused: Parked,
    /// Records and dead letters that were appended and not committed yet.
    appended: (usize, usize),
    /// When the oldest event occurred that was handed over and is not committed yet, in epoch milliseconds.
    oldest_ms: Option<i64>,
    trace: RelayTrace,
}

/// When to stop trying.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// The right to write is somebody else's.
    pub(super) lost: CancellationToken,
    /// The relay is being stopped.
    pub(super) shutdown: CancellationToken,
}

/// Why nothing is written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Another relay is the active one, or should be.
    StepDown(&'static str),
    /// The relay is being stopped.
    Shutdown,
    /// What was [appended](Writer::append) is lost, or in the log: the stored checkpoint tells.
    Void,
}

impl Stop {
    pub(super) fn ended(&self) -> Option<Ended> {
        if self.shutdown.is_cancelled() {
            return Some(Ended::Shutdown);
        }
        self.lost.is_cancelled().then_some(Ended::StepDown("another relay has its lease"))
    }

    /// Waits for it.
    pub(super) async fn wait(&self) -> Ended {
        tokio::select! {
            () = self.shutdown.cancelled() => Ended::Shutdown,
            () = self.lost.cancelled() => Ended::StepDown("another relay has its lease"),
        }
    }
}

impl Writer {
    pub(super) fn new(sink: Sink, group: String, live: Live) -> Self {
        Self {
            sink,
            group,
            live,
            refused: Parked::default(),
            appended: (0, 0),
            oldest_ms: None,
            trace: RelayTrace::default(),
        }
    }

    /// Fences whoever wrote before, and answers the last checkpoint.
    pub(super) async fn take_over(&mut self, stop: &Stop) -> Result<Result<Option<Checkpoint>, Ended>> {
        self.refused = Parked::default();
        self.appended = (0, 0);
        self.oldest_ms = None;
        self.trace = RelayTrace::default();
        let mut backoff = Backoff::new();
        loop {
            match self.sink.take_over().await {
                Ok(checkpoint) => return Ok(Ok(checkpoint)),
                Err(error) if error.is_transient() && !error.is_forbidden_by_kafka() => {
                    self.back_off(&mut backoff, &error, stop).await;
                }
                Err(error) => return Err(error),
            }
            if let Some(ended) = stop.ended() {
                return Ok(Err(ended));
            }
        }
    }

    /// Whether [`append`](Self::append) can be used.
    pub(super) fn appends(&self) -> bool {
        self.sink.appends()
    }

    /// Writes a batch in one step, with all that was appended before, and answers why not if it was to stop
    /// before.
    pub(super) async fn write(
        &mut self,
        records: &mut Vec<Record>,
        dead: &mut Vec<DeadLetter>,
        checkpoint: &mut Checkpoint,
        stop: &Stop,
    ) -> Result<Option<Ended>> {
        let stopwatch = Stopwatch::start();
        if let Some(ended) = self.hand_over(records, dead, Some(checkpoint), stop).await? {
            return Ok(Some(ended));
        }
        let (appended, appended_dead) = std::mem::take(&mut self.appended);
        let (records, dead) = (records.len() + appended, dead.len() + appended_dead);
        telemetry::relay_batch(records, dead, stopwatch.seconds());
        self.live.written(checkpoint, records, dead);
        self.trace.written(records);
        if let Some(oldest_ms) = self.oldest_ms.take() {
            self.live.tell_delay(oldest_ms);
        }
        Ok(None)
    }

    /// Gives the sink a batch that becomes visible with the next one that is written.
    pub(super) async fn append(
        &mut self,
        records: &mut Vec<Record>,
        dead: &mut Vec<DeadLetter>,
        stop: &Stop,
    ) -> Result<Option<Ended>> {
        if let Some(ended) = self.hand_over(records, dead, None, stop).await? {
            return Ok(Some(ended));
        }
        self.appended.0 += records.len();
        self.appended.1 += dead.len();
        Ok(None)
    }

    async fn hand_over(
        &mut self,
        records: &mut Vec<Record>,
        dead: &mut Vec<DeadLetter>,
        mut checkpoint: Option<&mut Checkpoint>,
        stop: &Stop,
    ) -> Result<Option<Ended>> {
        let mut backoff = Backoff::new();
        self.set_waiting_aside(records, dead);
        // Those of one batch are in the order of their commits.
        self.oldest_ms = self.oldest_ms.or_else(|| records.iter().find_map(|record| record.timestamp_ms));
        loop {
            let written = match checkpoint.as_deref_mut() {
                Some(checkpoint) => {
                    self.refused.add_to(&mut checkpoint.parked)?;
                    self.sink.write(records, dead, checkpoint).await
                }
                None => self.sink.append(records, dead).await,
            };
            match written {
                Ok(()) => break,
                Err(WriteError::Fenced) => return Ok(Some(Ended::StepDown("another relay has taken over"))),
                Err(WriteError::Refused { record, reason }) => {
                    set_aside(records, record, reason, &mut self.refused, dead)?;
                    continue;
                }
                Err(WriteError::Retriable(error)) => self.back_off(&mut backoff, &error, stop).await,
                Err(WriteError::Void(error)) => {
                    self.back_off(&mut backoff, &error, stop).await;
                    return Ok(Some(stop.ended().unwrap_or(Ended::Void)));
                }
                Err(WriteError::Fatal(error)) => return Err(Error::SinkStopped(Box::new(error))),
            }
            if let Some(ended) = stop.ended() {
                return Ok(Some(ended));
            }
        }
        self.trace.took(records);
        if backoff.has_stepped() {
            self.live.active();
        }
        Ok(None)
    }

    /// Records of keys that are parked wait behind the record that the sink refused.
    fn set_waiting_aside(&self, records: &mut Vec<Record>, dead: &mut Vec<DeadLetter>) {
        if self.refused.is_empty() {
            return;
        }
        let waiting = records.extract_if(.., |record| self.refused.contains(&record.order_key));
        let letters: Vec<_> = waiting.map(|record| DeadLetter::of_record(&record, WAITS.to_owned())).collect();
        dead.splice(..0, letters);
    }

    async fn back_off(&self, backoff: &mut Backoff, error: &Error, stop: &Stop) {
        let pause = backoff.step();
        let is_topic_missing = matches!(error, Error::TopicMissing { .. });
        let (error, pause_ms) = (Error::chain(error), pause.as_millis());
        if is_topic_missing {
            tracing::warn!(group = self.group, error, pause_ms, "the relay waits for a topic; trying again");
        } else {
            tracing::warn!(group = self.group, error, pause_ms, "the relay's sink is away; trying again");
        }
        telemetry::relay_backoff();
        self.live.tell_age();
        self.live.state(State::BackingOff, Some(error));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ended = stop.wait() => {}
        }
    }
}
