//! The polling relay: for databases whose binlog cannot be read.
//!
//! Each row of an outbox is pending until it is in the log: a trigger notes its number in the transaction
//! that inserts it ([`noting`]), and it is struck off once the log has acknowledged it. So a row that
//! commits late is found however low its number is. Keys are spread over shards. Several pollers share
//! the shards without doubling the work: each shard is locked by one of them in the database, and written
//! under a transactional id of its own, whose checkpoint names the rows that went last: those are not
//! written again when they are met after a crash between the log's commit and the striking off. What a
//! frozen poller would still write is refused by the sink, since another has taken its shard over.
//!
//! Within a shard, rows go in the order of their numbers; that is the order of commits within a key as
//! long as writers of a key wait for each other, as those of Tidings' ledger do.

mod left;
mod noting;
mod pending;
mod shard;

use std::collections::BTreeMap;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use self::left::{Left, left, left_before, pending_up_to};
use self::{noting::Noting, pending::SHARDS, shard::Shard};
use super::{
    Formatter, Handle, Options, OutboxTable, Sink, State,
    backoff::Backoff,
    connection::{Address, Connection, denied},
    lease::{lock_name, member_names},
    server, sink,
    status::Live,
    writer::{Ended, Stop, Writer},
};
use crate::{
    Clock, Error, Result,
    limits::{RELAY_LEASE_LOOK_GAP, RELAY_LEASE_TIME_MAX, RELAY_POLLERS_MAX},
    telemetry,
};

/// Moves what is committed to the outbox tables of a database into a log, by asking for it.
#[derive(Debug)]
pub(super) struct Poller {
    options: Options,
    address: Address,
    outboxes: std::sync::Arc<[OutboxTable]>,
    /// Whether the source has let this relay in since its start, and these were looked at: they have its names then.
    is_checked: bool,
    formatter: Formatter,
    sink: sink::Options,
    clock: Clock,
    live: Live,
    handle: Handle,
}

/// A shard that this poller has.
struct Worker {
    stop: Stop,
    task: JoinHandle<Result<Ended>>,
}

impl Poller {
    /// Puts a polling relay together. Each shard has a sink of its own, made from `sink`.
    ///
    /// # Errors
    /// When the address of the source is none, or no table is named.
    pub(super) fn new(options: Options, formatter: Formatter, sink: sink::Options, clock: Clock) -> Result<Self> {
        let address = Address::parse(&options.source)?;
        let outboxes = options.outboxes(&address)?;
        let (live, handle) = Live::new(clock.clone());
        Ok(Self { options, address, outboxes, is_checked: false, formatter, sink, clock, live, handle })
    }

    /// What tells how it is doing, also while it runs. It has no position.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes its share of the shards, reads and writes, until `shutdown`. What is being written then is
    /// finished.
    ///
    /// # Errors
    /// When it cannot go on without somebody's decision. What only is away is waited for.
    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Result<()> {
        let mut backoff = Backoff::new();
        loop {
            let error = match self.session(&shutdown, &mut backoff).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !error.is_transient() {
                tracing::error!(group = self.options.group, error = Error::chain(&error), "the relay has stopped");
                self.live.state(State::Stopped, Some(Error::chain(&error)));
                return Err(error);
            }
            let pause = backoff.step();
            let (error, pause_ms) = (Error::chain(&error), pause.as_millis());
            tracing::warn!(group = self.options.group, error, pause_ms, "the relay's source is away; trying again");
            telemetry::relay_backoff();
            self.live.state(State::BackingOff, Some(error));
            Backoff::wait(pause, &shutdown).await;
            if shutdown.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// As long as one connection holds the locks.
    async fn session(&mut self, shutdown: &CancellationToken, backoff: &mut Backoff) -> Result<()> {
        let locks = Locks::connect(&self.address, &self.options.group).await;
        let mut locks = locks.map_err(denied(self.is_checked))?;
        if !self.is_checked {
            self.outboxes = server::check_tables(&mut locks.connection, &self.outboxes).await?;
            self.is_checked = true;
        }
        let mut notings = Vec::with_capacity(self.outboxes.len());
        for outbox in self.outboxes.iter() {
            notings.push(Noting::of(&mut locks.connection, outbox).await?);
        }
        let mut workers = BTreeMap::new();
        let ended = self.share(&mut locks, &notings, &mut workers, shutdown, backoff).await;
        // Without the connection the locks are gone, and others may have the shards already.
        for worker in workers.values() {
            worker.stop.lost.cancel();
        }
        for (_, worker) in workers {
            drop(worker.task.await);
        }
        locks.disconnect().await;
        ended
    }

    /// Takes and gives shards, so that each poller has about as many.
    async fn share(
        &self,
        locks: &mut Locks,
        notings: &[Noting],
        workers: &mut BTreeMap<u32, Worker>,
        shutdown: &CancellationToken,
        backoff: &mut Backoff,
    ) -> Result<()> {
        while !shutdown.is_cancelled() {
            tokio::select! {
                noted = self.note(locks, notings) => noted?,
                () = shutdown.cancelled() => return Ok(()),
            }
            self.reap(locks, workers).await?;
            let share = SHARDS.div_ceil(locks.pollers().await?) as usize;
            while workers.len() > share {
                let Some((shard, worker)) = workers.pop_last() else { break };
                worker.stop.lost.cancel();
                worker.task.await.map_err(mistake)??;
                locks.release(shard).await?;
            }
            for shard in locks.order() {
                if workers.len() < share && !workers.contains_key(&shard) && locks.take(shard).await? {
                    workers.insert(shard, self.start(shard, shutdown)?);
                }
            }
            let is_back = backoff.has_stepped();
            backoff.reset();
            match workers.is_empty() {
                true => self.live.state(State::Standby, None),
                false if is_back || self.handle.status().state == State::Standby => self.live.active(),
                false => {}
            }
            tokio::select! {
                () = tokio::time::sleep(RELAY_LEASE_LOOK_GAP) => {}
                () = shutdown.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Sees to it that all rows are noted. A large outbox takes its time.
    async fn note(&self, locks: &mut Locks, notings: &[Noting]) -> Result<()> {
        for noting in notings {
            noting.ensure(&mut locks.connection, self.options.first_start).await?;
        }
        Ok(())
    }

    /// Gives back the shards whose workers have ended: another poller has fenced them.
    async fn reap(&self, locks: &mut Locks, workers: &mut BTreeMap<u32, Worker>) -> Result<()> {
        let ended: Vec<u32> =
            workers.iter().filter(|(_, worker)| worker.task.is_finished()).map(|(shard, _)| *shard).collect();
        for shard in ended {
            if let Some(worker) = workers.remove(&shard) {
                let why = worker.task.await.map_err(mistake)??;
                tracing::warn!(group = self.options.group, shard, ?why, "the relay gives a shard up");
                locks.release(shard).await?;
            }
        }
        Ok(())
    }

    fn start(&self, index: u32, shutdown: &CancellationToken) -> Result<Worker> {
        let group = format!("{}.{index}", self.options.group);
        let sink = Sink::open(&of_shard(&self.sink, index), &group, &self.clock)?;
        let stop = Stop { lost: CancellationToken::new(), shutdown: shutdown.clone() };
        let shard = Shard {
            index,
            group: group.clone(),
            address: self.address.clone(),
            outboxes: self.outboxes.clone(),
            formatter: self.formatter.clone(),
            writer: Writer::new(sink, group, self.live.clone()),
            clock: self.clock.clone(),
            live: self.live.clone(),
            bytes_max: self.options.batch_bytes_max / SHARDS as usize,
            stop: stop.clone(),
        };
        Ok(Worker { stop, task: tokio::spawn(shard.run()) })
    }
}

/// Sinks that keep their checkpoint in a file need one for each shard.
fn of_shard(options: &sink::Options, index: u32) -> sink::Options {
    let mut options = options.clone();
    let file = match &mut options {
        sink::Options::Webhook(options) => &mut options.file,
        sink::Options::Stdout(options) => &mut options.file,
        sink::Options::Kafka(_) | sink::Options::Redis(_) => return options,
    };
    file.as_mut_os_string().push(format!(".{index}"));
    options
}

fn mistake(panic: tokio::task::JoinError) -> Error {
    Error::RelayStopped { reason: format!("a shard has failed by a mistake: {panic}") }
}

/// The locks of one poller, all held by one connection.
struct Locks {
    connection: Connection,
    group: String,
    /// Its number among the pollers of the group.
    member: u32,
}

impl Locks {
    const DOING: &'static str = "sharing work with other pollers";

    async fn connect(address: &Address, group: &str) -> Result<Self> {
        let mut connection = address.connect().await?;
        // While a trigger waits for open transactions to be made, all that come after wait too; so it tries
        // for a moment, and again. And noting rows must not lock them.
        let (silence, lock) = (RELAY_LEASE_TIME_MAX.as_secs(), RELAY_LEASE_LOOK_GAP.as_secs());
        let patience = format!("SET SESSION wait_timeout = {silence}, SESSION lock_wait_timeout = {lock}");
        connection.run(Self::DOING, &patience).await?;
        connection.lock_little().await?;
        let mut locks = Self { connection, group: group.to_owned(), member: 0 };
        for (member, name) in (0..).zip(member_names(group)) {
            if locks.lock(&name).await? {
                return Ok(Self { member, ..locks });
            }
        }
        let message = format!("there are {RELAY_POLLERS_MAX} pollers of the group already");
        Err(Error::RelayStopped { reason: message })
    }

    fn shard_name(&self, shard: u32) -> String {
        lock_name(&format!("{}:shard:{shard}", self.group))
    }

    async fn lock(&mut self, name: &str) -> Result<bool> {
        let answer: Option<(Option<i64>,)> =
            self.connection.first(Self::DOING, "SELECT GET_LOCK(?, 0)", (name,)).await?;
        Ok(answer == Some((Some(1),)))
    }

    async fn take(&mut self, shard: u32) -> Result<bool> {
        self.lock(&self.shard_name(shard)).await
    }

    async fn release(&mut self, shard: u32) -> Result<()> {
        let name = self.shard_name(shard);
        self.connection.first::<(Option<i64>,)>(Self::DOING, "SELECT RELEASE_LOCK(?)", (name,)).await.map(drop)
    }

    /// How many pollers there are, this one among them.
    async fn pollers(&mut self) -> Result<u32> {
        let mut pollers = 0;
        for name in member_names(&self.group.clone()) {
            let user: Option<(Option<u64>,)> =
                self.connection.first(Self::DOING, "SELECT IS_USED_LOCK(?)", (name,)).await?;
            pollers += u32::from(user.is_some_and(|(user,)| user.is_some()));
        }
        Ok(pollers.max(1))
    }

    /// All shards, beginning where no other poller is likely to begin.
    fn order(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.member * SHARDS / RELAY_POLLERS_MAX;
        (0..SHARDS).map(move |shard| (first + shard) % SHARDS)
    }

    async fn disconnect(self) {
        // A connection that does not end in order ends nevertheless, and the locks with it.
        drop(self.connection.into_conn().disconnect().await);
    }
}
