//! The relay itself: one of its group reads and writes, the others wait.

use tokio_util::sync::CancellationToken;

use super::{
    Batch, Checkpoint, Formatter, Handle, Options, Sink, Source, State,
    backoff::Backoff,
    connection::{Address, denied},
    lease::Lease,
    poll::Poller,
    sink,
    status::Live,
    writer::{Ended, Stop, Writer},
};
use crate::{
    Clock, Error, Result,
    clock::Stopwatch,
    limits::{
        RELAY_BATCH_BYTES_MAX, RELAY_TRANSACTION_BATCHES_MAX, RELAY_TRANSACTION_TIME_MAX, RELAY_TRANSACTION_WAIT_MAX,
    },
    telemetry,
};

/// Moves what is committed to the outbox tables of a database into a log.
#[derive(Debug)]
pub struct Relay(Reading);

/// How it learns what is committed.
#[derive(Debug)]
enum Reading {
    Binlog(Box<Binlog>),
    Polling(Box<Poller>),
}

impl Relay {
    /// A relay that reads the binlog.
    ///
    /// # Errors
    /// When the address of the source is none.
    pub fn new(options: Options, formatter: Formatter, sink: Sink, clock: Clock) -> Result<Self> {
        let address = Address::parse(&options.source)?;
        let (live, handle) = Live::new(clock.clone());
        let writer = Writer::new(sink, options.group.clone(), live.clone());
        let binlog = Binlog { options, address, formatter, writer, clock, live, handle, is_careful: false };
        Ok(Self(Reading::Binlog(Box::new(binlog))))
    }

    /// A relay that asks the database again and again, for where the binlog cannot be read: with more
    /// delay and more work for the database, and several share the work. It needs the right to make a
    /// table and a trigger beside each outbox, or somebody who makes them. Each of its shards has a sink
    /// of its own, made from `sink`.
    ///
    /// # Errors
    /// When the address of the source is none, or no table is named.
    pub fn polling(options: Options, formatter: Formatter, sink: sink::Options, clock: Clock) -> Result<Self> {
        Ok(Self(Reading::Polling(Box::new(Poller::new(options, formatter, sink, clock)?))))
    }

    /// What tells how it is doing, also while it runs.
    pub fn handle(&self) -> Handle {
        match &self.0 {
            Reading::Binlog(binlog) => binlog.handle.clone(),
            Reading::Polling(poller) => poller.handle(),
        }
    }

    /// Waits for its turn, reads and writes, until `shutdown`. What is being written then is finished.
    ///
    /// # Errors
    /// When the relay cannot go on without somebody's decision. What only is away is waited for.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        match self.0 {
            Reading::Binlog(binlog) => binlog.run(shutdown).await,
            Reading::Polling(poller) => poller.run(shutdown).await,
        }
    }
}

/// A relay that reads the binlog.
#[derive(Debug)]
struct Binlog {
    options: Options,
    address: Address,
    formatter: Formatter,
    writer: Writer,
    clock: Clock,
    live: Live,
    handle: Handle,
    /// Whether several batches failed as one transaction: what made them fail may be one of them.
    is_careful: bool,
}

impl Binlog {
    async fn run(mut self, shutdown: CancellationToken) -> Result<()> {
        let ended = self.take_turns(&shutdown).await;
        if let Err(error) = &ended {
            tracing::error!(group = self.options.group, error = Error::chain(error), "the relay has stopped");
            self.live.state(State::Stopped, Some(Error::chain(error)));
        }
        ended
    }

    async fn take_turns(&mut self, shutdown: &CancellationToken) -> Result<()> {
        let (mut backoff, mut was_let_in) = (Backoff::new(), false);
        self.live.state(State::Standby, None);
        while !shutdown.is_cancelled() {
            let taken = tokio::select! {
                taken = Lease::take(&self.address, &self.options.group) => taken,
                () = shutdown.cancelled() => return Ok(()),
            };
            was_let_in |= taken.is_ok();
            match taken.map_err(denied(was_let_in)) {
                Ok(Some(lease)) => {
                    backoff.reset();
                    let stop = Stop { lost: lease.lost.clone(), shutdown: shutdown.clone() };
                    let ended = self.turn(&stop).await;
                    lease.release().await;
                    self.is_careful = false;
                    match ended? {
                        Ended::Shutdown => return Ok(()),
                        Ended::Void => self.is_careful = true,
                        Ended::StepDown(why) => {
                            tracing::warn!(group = self.options.group, why, "the relay steps down");
                            self.live.state(State::Standby, None);
                            Backoff::wait(backoff.step(), shutdown).await;
                        }
                    }
                }
                Ok(None) => {
                    backoff.reset();
                    self.live.state(State::Standby, None);
                }
                Err(error) if error.is_transient() => self.back_off(&mut backoff, &error, shutdown).await,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One turn as the active relay, from the stored checkpoint on.
    async fn turn(&mut self, stop: &Stop) -> Result<Ended> {
        let checkpoint = match self.writer.take_over(stop).await? {
            Ok(checkpoint) => checkpoint,
            Err(ended) => return Ok(ended),
        };
        let position = checkpoint.as_ref().map(|checkpoint| checkpoint.position.to_string());
        tracing::info!(group = self.options.group, position, "the relay is active");
        self.live.active();
        telemetry::relay_turn();
        let (options, formatter) = (self.options.clone(), self.formatter.clone());
        let told = (self.live.clone(), self.handle.clone());
        // The lease was taken there.
        let was_let_in = true;
        let mut source = Source::start_live(options, formatter, checkpoint, self.clock.clone(), told, was_let_in)?;
        let mut transaction = Transaction::new(&self.writer, self.is_careful);
        loop {
            let next = tokio::select! {
                batch = source.next() => Ok(batch),
                () = tokio::time::sleep(RELAY_TRANSACTION_WAIT_MAX), if transaction.open.is_some() => Err(None),
                ended = stop.wait() => Err(Some(ended)),
            };
            let ended = match next {
                Ok(Ok(batch)) => transaction.take(&mut self.writer, &self.live, batch, stop).await?,
                Ok(Err(error)) => {
                    transaction.end(&mut self.writer, stop).await?;
                    return Err(error);
                }
                Err(ended) => transaction.end(&mut self.writer, stop).await?.or(ended),
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    async fn back_off(&self, backoff: &mut Backoff, error: &Error, shutdown: &CancellationToken) {
        let pause = backoff.step();
        let (error, pause_ms) = (Error::chain(error), pause.as_millis());
        tracing::warn!(group = self.options.group, error, pause_ms, "the relay's source is away; trying again");
        telemetry::relay_backoff();
        self.live.state(State::BackingOff, Some(error));
        Backoff::wait(pause, shutdown).await;
    }
}

/// Which batches are written in one step.
struct Transaction {
    batches_max: usize,
    /// What it will be once the source has been read to its end.
    batches_max_later: usize,
    open: Option<Open>,
}

/// Batches that were appended to the log and are not committed yet.
struct Open {
    checkpoint: Checkpoint,
    batches: usize,
    since: Stopwatch,
}

impl Transaction {
    fn new(writer: &Writer, is_careful: bool) -> Self {
        let batches_max_later = if writer.appends() { RELAY_TRANSACTION_BATCHES_MAX } else { 1 };
        let batches_max = if is_careful { 1 } else { batches_max_later };
        Self { batches_max, batches_max_later, open: None }
    }

    /// Writes a batch, or only appends it where another one seems to stand right behind it.
    async fn take(&mut self, writer: &mut Writer, live: &Live, mut batch: Batch, stop: &Stop) -> Result<Option<Ended>> {
        live.writing(batch.since_ms);
        // Only a source that has much to give hands over batches that are far from empty.
        let is_last = batch.bytes < RELAY_BATCH_BYTES_MAX / 4;
        if is_last {
            self.batches_max = self.batches_max_later;
        }
        let (batches, since) = match self.open.take() {
            Some(open) => (open.batches + 1, open.since),
            None => (1, Stopwatch::start()),
        };
        let is_long = batches >= self.batches_max || since.seconds() >= RELAY_TRANSACTION_TIME_MAX.as_secs_f64();
        let Batch { records, dead, checkpoint, .. } = &mut batch;
        if is_last || is_long {
            return writer.write(records, dead, checkpoint, stop).await;
        }
        let ended = writer.append(records, dead, stop).await?;
        self.open = Some(Open { checkpoint: batch.checkpoint, batches, since });
        Ok(ended)
    }

    /// Commits what was appended.
    async fn end(&mut self, writer: &mut Writer, stop: &Stop) -> Result<Option<Ended>> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        writer.write(&mut Vec::new(), &mut Vec::new(), &mut open.checkpoint, stop).await
    }
}
