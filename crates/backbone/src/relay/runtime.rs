//! The relay itself: one of its group reads and writes, the others wait.

use tokio_util::sync::CancellationToken;

use super::{
    Batch, DeadLetter, Formatter, Handle, Options, Parked, Record, Sink, Source, State,
    backoff::Backoff,
    connection::Address,
    dead_letter::{WAITS, set_aside},
    lease::Lease,
    sink::WriteError,
    status::Live,
};
use crate::{Clock, Error, Result, clock::Stopwatch, telemetry};

/// Moves what is committed to the outbox tables of a database into a log.
#[derive(Debug)]
pub struct Relay {
    options: Options,
    address: Address,
    formatter: Formatter,
    sink: Sink,
    clock: Clock,
    live: Live,
    handle: Handle,
}

/// Why the relay is not the active one any more.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// Another relay is, or should be.
    StepDown(&'static str),
    Shutdown,
}

impl Relay {
    /// Puts a relay together.
    ///
    /// # Errors
    /// When the address of the source is none.
    pub fn new(options: Options, formatter: Formatter, sink: Sink, clock: Clock) -> Result<Self> {
        let address = Address::parse(&options.source)?;
        let (live, handle) = Live::new(clock.clone());
        Ok(Self { options, address, formatter, sink, clock, live, handle })
    }

    /// What tells how it is doing, also while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits for its turn, reads and writes, until `shutdown`. What is being written then is finished.
    ///
    /// # Errors
    /// When the relay cannot go on without somebody's decision. What only is away is waited for.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<()> {
        let ended = self.take_turns(&shutdown).await;
        if let Err(error) = &ended {
            tracing::error!(group = self.options.group, error = Error::chain(error), "the relay has stopped");
            self.live.state(State::Stopped, Some(Error::chain(error)));
        }
        ended
    }

    async fn take_turns(&mut self, shutdown: &CancellationToken) -> Result<()> {
        let mut backoff = Backoff::new();
        self.live.state(State::Standby, None);
        while !shutdown.is_cancelled() {
            let taken = tokio::select! {
                taken = Lease::take(&self.address, &self.options.group) => taken,
                () = shutdown.cancelled() => return Ok(()),
            };
            match taken {
                Ok(Some(lease)) => {
                    backoff.reset();
                    let ended = self.turn(&lease, shutdown).await;
                    lease.release().await;
                    match ended? {
                        Ended::Shutdown => return Ok(()),
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
                Err(error) if error.is_transient() => {
                    self.back_off(&mut backoff, &error, "the relay's source is away; trying again", shutdown).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One turn as the active relay.
    async fn turn(&mut self, lease: &Lease, shutdown: &CancellationToken) -> Result<Ended> {
        let mut backoff = Backoff::new();
        let checkpoint = loop {
            match self.sink.take_over().await {
                Ok(checkpoint) => break checkpoint,
                Err(error) if error.is_transient() => {
                    self.back_off(&mut backoff, &error, "the relay's sink is away; trying again", shutdown).await;
                }
                Err(error) => return Err(error),
            }
            if let Some(ended) = has_ended(lease, shutdown) {
                return Ok(ended);
            }
        };
        let position = checkpoint.as_ref().map(|checkpoint| checkpoint.position.to_string());
        tracing::info!(group = self.options.group, position, "the relay is active");
        self.live.active();
        let (options, formatter) = (self.options.clone(), self.formatter.clone());
        let told = (self.live.clone(), self.handle.clone());
        let source = Source::start_live(options, formatter, checkpoint, self.clock.clone(), told)?;
        self.work(source, lease, shutdown).await
    }

    async fn work(&mut self, mut source: Source, lease: &Lease, shutdown: &CancellationToken) -> Result<Ended> {
        // Keys that were parked because the sink refused a record, which the source does not know of.
        let mut refused = Parked::default();
        loop {
            let batch = tokio::select! {
                batch = source.next() => batch?,
                () = lease.lost.cancelled() => return Ok(Ended::StepDown("another relay has its lease")),
                () = shutdown.cancelled() => return Ok(Ended::Shutdown),
            };
            self.live.writing(batch.since_ms);
            if let Some(ended) = self.write(batch, &mut refused, lease, shutdown).await? {
                return Ok(ended);
            }
        }
    }

    /// Writes a batch, as often as it takes.
    async fn write(
        &mut self,
        mut batch: Batch,
        refused: &mut Parked,
        lease: &Lease,
        shutdown: &CancellationToken,
    ) -> Result<Option<Ended>> {
        let stopwatch = Stopwatch::start();
        let mut backoff = Backoff::new();
        let Batch { records, dead, checkpoint, .. } = &mut batch;
        wait_behind(refused, records, dead);
        loop {
            refused.add_to(&mut checkpoint.parked)?;
            match self.sink.write(records, dead, checkpoint).await {
                Ok(()) => break,
                Err(WriteError::Fenced) => return Ok(Some(Ended::StepDown("another relay has taken over"))),
                Err(WriteError::Refused { record, reason }) => {
                    set_aside(records, record, reason, refused, dead)?;
                    continue;
                }
                Err(WriteError::Retriable(error)) => {
                    self.back_off(&mut backoff, &error, "the relay's sink is away; trying again", shutdown).await;
                }
                Err(WriteError::Fatal(error)) => return Err(error),
            }
            if let Some(ended) = has_ended(lease, shutdown) {
                return Ok(Some(ended));
            }
        }
        if backoff.has_stepped() {
            self.live.active();
        }
        telemetry::relay_batch(records.len(), dead.len(), stopwatch.seconds());
        self.live.written(checkpoint, records.len(), dead.len());
        Ok(None)
    }

    async fn back_off(&self, backoff: &mut Backoff, error: &Error, what: &str, shutdown: &CancellationToken) {
        let pause = backoff.step();
        let (error, pause_ms) = (Error::chain(error), pause.as_millis());
        tracing::warn!(group = self.options.group, error, pause_ms, "{what}");
        telemetry::relay_backoff();
        self.live.state(State::BackingOff, Some(error));
        Backoff::wait(pause, shutdown).await;
    }
}

fn has_ended(lease: &Lease, shutdown: &CancellationToken) -> Option<Ended> {
    if shutdown.is_cancelled() {
        return Some(Ended::Shutdown);
    }
    lease.lost.is_cancelled().then_some(Ended::StepDown("another relay has its lease"))
}

/// Records of keys that are parked wait behind the record that the sink refused.
fn wait_behind(parked: &Parked, records: &mut Vec<Record>, dead: &mut Vec<DeadLetter>) {
    if parked.is_empty() {
        return;
    }
    let waiting = records.extract_if(.., |record| parked.contains(&record.order_key));
    let letters: Vec<_> = waiting.map(|record| DeadLetter::of_record(&record, WAITS.to_owned())).collect();
    dead.splice(..0, letters);
}
