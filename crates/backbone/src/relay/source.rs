//! The source of a relay: a task that reads the database and hands batches over, whatever happens to the
//! database meanwhile.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    Batch, Batches, Checkpoint, FirstStart, Formatter, Handle, Options, Refusal,
    backoff::Backoff,
    binlog::Reader,
    connection::{Address, denied},
    outlet::Outlet,
    recover::{Begin, FIRST_START},
    server,
    status::{Live, State},
};
use crate::{Clock, Error, Result, clock::Stopwatch, limits::RELAY_TABLE_LOOK_GAP};

/// Batches of what is committed to the outbox tables, from a checkpoint on.
///
/// The relay itself runs on it. Alone it is for those who have a sink of their own: who stores each
/// batch together with its checkpoint, in one step, and begins with that checkpoint again, misses
/// nothing and has nothing twice.
#[derive(Debug)]
pub struct Source {
    batches: Batches,
    task: Option<JoinHandle<Result<()>>>,
    shutdown: CancellationToken,
    handle: Handle,
}

impl Source {
    /// Starts reading behind `checkpoint`; without one, as [`Options::first_start`] says.
    ///
    /// # Errors
    /// When the address of the source is none, or no table is named.
    pub fn start(options: Options, formatter: Formatter, checkpoint: Option<Checkpoint>, clock: Clock) -> Result<Self> {
        let (live, handle) = Live::new(clock.clone());
        Self::start_live(options, formatter, checkpoint, clock, (live, handle), false)
    }

    pub(super) fn start_live(
        options: Options,
        formatter: Formatter,
        checkpoint: Option<Checkpoint>,
        clock: Clock,
        (live, handle): (Live, Handle),
        was_let_in: bool,
    ) -> Result<Self> {
        let address = Address::parse(&options.source)?;
        let outboxes = options.outboxes(&address)?;
        let parked = checkpoint.as_ref().map(|checkpoint| checkpoint.parked.clone()).unwrap_or_default();
        let (outlet, batches) = Outlet::new(formatter, parked, options.batch_records_max, options.batch_bytes_max);
        let is_first = checkpoint.is_none();
        let first_start = options.first_start;
        let reader = Reader::new(&options, address, outboxes, checkpoint.unwrap_or_default(), outlet, clock, live);
        let shutdown = CancellationToken::new();
        let task = Task {
            group: options.group,
            reader,
            begin: is_first.then_some(first_start),
            backoff: Backoff::new(),
            was_let_in,
            is_checked: false,
            since_look: None,
            shutdown: shutdown.clone(),
        };
        Ok(Self { batches, task: Some(tokio::spawn(task.run())), shutdown, handle })
    }

    /// What tells how it is doing.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The next batch, once the one before has been dropped. Waits while there is nothing to hand over.
    ///
    /// # Errors
    /// When the source cannot go on without somebody's decision. What only is away is waited for.
    pub async fn next(&mut self) -> Result<Batch> {
        if let Some(batch) = self.batches.next().await {
            return Ok(batch);
        }
        let ended = match self.task.take() {
            Some(task) => task.await,
            None => return Err(Error::SourceEnded),
        };
        match ended {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) => Err(Error::SourceEnded),
            Err(panic) => Err(Error::RelayStopped { reason: format!("the source has failed by a mistake: {panic}") }),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Options {
    /// The outbox tables, each with its database.
    pub(super) fn outboxes(&self, address: &Address) -> Result<Arc<[super::OutboxTable]>> {
        let stopped = |reason: &str| Err(Error::RelayStopped { reason: reason.to_owned() });
        if self.tables.is_empty() {
            return stopped("no outbox table is named");
        }
        let mut outboxes = self.tables.clone();
        for outbox in &mut outboxes {
            if outbox.database.is_empty() {
                address.database().clone_into(&mut outbox.database);
            }
            if outbox.database.is_empty() {
                return stopped("the address of the source names no database, and the outbox table none either");
            }
        }
        Ok(outboxes.into())
    }
}

struct Task {
    /// For the log.
    group: String,
    reader: Reader,
    /// What to do at the first start, until it is done.
    begin: Option<FirstStart>,
    backoff: Backoff,
    /// Whether this relay has been connected to the source since it was started.
    was_let_in: bool,
    is_checked: bool,
    /// Since the tables were read last because of what the binlog does not tell.
    since_look: Option<Stopwatch>,
    shutdown: CancellationToken,
}

impl Task {
    async fn run(mut self) -> Result<()> {
        let shutdown = self.shutdown.clone();
        tokio::select! {
            ended = self.go_on() => ended,
            () = shutdown.cancelled() => Ok(()),
        }
    }

    async fn go_on(&mut self) -> Result<()> {
        loop {
            let error = match self.round().await {
                Ok(()) => continue,
                Err(error) => error,
            };
            match &error {
                // Nobody receives batches any more.
                Error::SourceEnded if self.reader.outlet.is_closed() => return Ok(()),
                Error::BinlogRefused { refusal, .. } if *refusal != Refusal::Ahead => {}
                error if error.is_transient() => {}
                _ => return Err(error),
            }
            self.back_off(&error).await;
        }
    }

    /// One connection's life.
    async fn round(&mut self) -> Result<()> {
        let mut connection = self.reader.address.connect().await.map_err(denied(self.was_let_in))?;
        self.was_let_in = true;
        let flavor = connection.flavor;
        if !self.is_checked {
            self.reader.outboxes = server::check(&mut connection, &self.reader.outboxes).await?;
            self.is_checked = true;
        }
        if let Some(first_start) = self.begin {
            let begin = match first_start {
                FirstStart::Earliest => Begin::Table,
                FirstStart::Latest => Begin::End,
            };
            self.reader.recover(&mut connection, FIRST_START.to_owned(), begin).await?;
            self.begin = None;
        } else if self.reader.is_reading_tables() {
            self.reader.recover(&mut connection, String::new(), Begin::Noted).await?;
        }
        drop(connection);
        match self.reader.read(flavor, &mut self.backoff).await {
            Ok(missing) => {
                // Noted before all else: should anything fail from here on, the next round reads the tables.
                self.reader.note_missing(missing).await?;
                self.pause_between_looks().await;
                let mut connection = self.reader.address.connect().await?;
                self.reader.recover(&mut connection, String::new(), Begin::Noted).await
            }
            Err(Error::BinlogRefused {
                position,
                refusal: refusal @ (Refusal::Purged | Refusal::BadPosition),
                source,
            }) => {
                let reason = format!("the source does not give its binlog from {position} ({refusal}): {source}");
                self.begin_anew(reason).await
            }
            // Servers give their binlog from within a statement, too.
            Err(Error::Binlog { place, source: source @ tidings_binlog::Error::NoTableMap { .. } }) => {
                self.begin_anew(format!("{place} is no place between two transactions: {source}")).await
            }
            Err(error) => Err(error),
        }
    }

    /// What was not published is read from the outbox tables, since the binlog does not tell of it.
    async fn begin_anew(&mut self, reason: String) -> Result<()> {
        tracing::error!(group = self.group, reason, "what the binlog does not give any more is read from the outbox");
        let mut connection = self.reader.address.connect().await?;
        self.reader.recover(&mut connection, reason, Begin::Table).await
    }

    /// Beside a server whose clients go on writing statements, the tables are not read all the time. One look is
    /// enough for all that was committed before it.
    async fn pause_between_looks(&mut self) {
        if let Some(since) = &self.since_look {
            let passed = Duration::from_secs_f64(since.seconds());
            tokio::time::sleep(RELAY_TABLE_LOOK_GAP.saturating_sub(passed)).await;
        }
        self.since_look = Some(Stopwatch::start());
    }

    async fn back_off(&mut self, error: &Error) {
        let pause = self.backoff.step();
        let (text, pause_ms) = (Error::chain(error), pause.as_millis());
        tracing::warn!(group = self.group, error = text, pause_ms, "the relay's source is away; trying again");
        self.reader.live.state(State::BackingOff, Some(text));
        Backoff::wait(pause, &self.shutdown).await;
    }
}
