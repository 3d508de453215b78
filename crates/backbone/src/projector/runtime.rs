//! The loop of a projector: read a batch, apply it with its position, try parked keys again.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    Projector,
    apply::Applier,
    lease::Lease,
    position,
    reader::Reader,
    retry::{Gaps, retry_due},
    status::{Handle, Live, State},
};
use crate::{
    Clock, Db, Durability, Error, Result,
    clock::Stopwatch,
    limits::{PROJECTOR_BACKOFF_MAX, PROJECTOR_BACKOFF_MIN, PROJECTOR_BATCH_EVENTS_MAX},
    log::{Log, Offset, Recorded},
    parking, telemetry,
};

/// How a projector is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tries of a failing event, and the gaps between them.
    pub gaps: Gaps,
    /// What to do when the log no longer reaches back to the projector's position.
    pub on_missing_history: MissingHistory,
    /// Events applied in one transaction.
    pub batch_events_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gaps: Gaps::default(),
            on_missing_history: MissingHistory::Stop,
            batch_events_max: PROJECTOR_BATCH_EVENTS_MAX,
        }
    }
}

/// The outcome when a projector needs events that the log no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingHistory {
    /// The projector stops and says so; nothing is skipped.
    Stop,
    /// It goes on at the first event the log still holds, and says so.
    Earliest,
}

/// Runs projectors, each in a task of its own.
#[derive(Debug)]
pub struct Runtime {
    tasks: Vec<Task>,
    db: Db,
    log: Log,
    clock: Clock,
    handle: Handle,
}

impl Runtime {
    /// A runtime without projectors yet.
    pub fn new(db: Db, log: Log, clock: Clock) -> Self {
        let handle = Handle::new(db.clone(), log.clone(), clock.clone());
        Self { tasks: Vec::new(), db, log, clock, handle }
    }

    /// Adds a projector.
    #[must_use]
    pub fn with(mut self, projector: Arc<dyn Projector>, options: Options) -> Self {
        let live = self.handle.register(projector.name());
        self.tasks.push(Task {
            reader: Reader::new(self.log.clone(), options.batch_events_max),
            projector,
            options,
            db: self.db.clone(),
            log: self.log.clone(),
            clock: self.clock.clone(),
            live,
            unknown_types: HashSet::new(),
        });
        self
    }

    /// Tells how far the projectors are.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `shutdown`; each projector then finishes its transaction, so its position never
    /// passes an event that was not applied.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let mut running = JoinSet::new();
        for task in self.tasks {
            running.spawn(task.run(shutdown.clone()));
        }
        let watching = self.db.watch_other_processes();
        tokio::pin!(watching);
        loop {
            tokio::select! {
                ended = running.join_next() => match ended {
                    None => return Ok(()),
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        return Err(Error::Invariant { message: format!("a projector's task ended: {error}") });
                    }
                },
                Err(error) = &mut watching => {
                    if !shutdown.is_cancelled() {
                        tracing::warn!(error = Error::chain(&error), "commits of other processes are not noticed");
                        tokio::time::sleep(PROJECTOR_BACKOFF_MAX).await;
                    }
                    watching.set(self.db.watch_other_processes());
                }
            }
        }
    }
}

/// One projector and what it needs.
struct Task {
    projector: Arc<dyn Projector>,
    options: Options,
    db: Db,
    log: Log,
    reader: Reader,
    clock: Clock,
    live: watch::Sender<Live>,
    /// Types already warned of, so that each is said once.
    unknown_types: HashSet<String>,
}

/// What a step found to do.
enum Step {
    /// Something was applied; there may be more.
    Applied,
    /// Nothing to do before this long, or before the log grows.
    Idle(Option<Duration>),
}

impl Task {
    async fn run(mut self, shutdown: CancellationToken) {
        let name = self.projector.name();
        let mut lease = Lease::new(&self.db, name);
        let mut backoff = PROJECTOR_BACKOFF_MIN;
        let mut position = None;
        let mut appended = self.log.appended();
        loop {
            appended.mark_unchanged();
            let step = match position {
                _ if shutdown.is_cancelled() => return,
                _ if !lease.is_held() => lease.try_take().map(|taken| {
                    self.set_state(if taken { State::Running } else { State::Waiting }, None);
                    if taken { Step::Applied } else { Step::Idle(Some(Lease::RETRY_GAP)) }
                }),
                None => self.start().await.map(|start| {
                    position = Some(start);
                    Step::Applied
                }),
                Some(at) => self.step(at).await.map(|(moved, step)| {
                    position = Some(moved);
                    step
                }),
            };
            let pause = match step {
                Ok(step) => {
                    backoff = PROJECTOR_BACKOFF_MIN;
                    match step {
                        Step::Applied => continue,
                        Step::Idle(pause) => pause,
                    }
                }
                Err(error @ Error::HistoryMissing { .. }) => {
                    tracing::error!(projector = name, error = Error::chain(&error), "the projector has stopped");
                    self.set_state(State::Stopped, Some(Error::chain(&error)));
                    shutdown.cancelled().await;
                    return;
                }
                Err(Error::PositionMoved { .. }) => {
                    position = None;
                    continue;
                }
                Err(error) => {
                    self.back_off(&error, backoff);
                    let pause = backoff;
                    backoff = (backoff * 2).min(PROJECTOR_BACKOFF_MAX);
                    // A log that grows is no reason to disturb a dependency that is down.
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = shutdown.cancelled() => {}
                    }
                    continue;
                }
            };
            self.wait(&mut appended, pause, &shutdown).await;
        }
    }

    async fn wait(&self, appended: &mut watch::Receiver<u64>, pause: Option<Duration>, shutdown: &CancellationToken) {
        let due = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender lives in `self.db`, so the channel is open.
            _changed = appended.changed() => {}
            () = due => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Finds where to begin; a new projector begins at the beginning.
    async fn start(&self) -> Result<Offset> {
        let name = self.projector.name();
        let extent = self.log.extent().await?;
        let mut tx = self.db.write(Durability::Full).await?;
        let mut conn = tx.conn();
        let stored = position::position(&mut conn, name).await?;
        let mut start = stored.unwrap_or_default();
        if extent.earliest.0 > start.0 + 1 {
            match self.options.on_missing_history {
                MissingHistory::Stop => {
                    let (needed, earliest) = (start.0 + 1, extent.earliest.0);
                    return Err(Error::HistoryMissing { projector: name, needed, earliest });
                }
                MissingHistory::Earliest => {
                    tracing::warn!(
                        projector = name,
                        needed = start.0 + 1,
                        earliest = extent.earliest.0,
                        "events are missing from the log; going on at its first one, as configured"
                    );
                    start = Offset(extent.earliest.0 - 1);
                }
            }
        }
        if stored != Some(start) {
            position::set(&mut conn, name, start, self.clock.now()).await?;
        }
        tx.commit().await?;
        self.set_state(State::Running, None);
        Ok(start)
    }

    async fn step(&mut self, at: Offset) -> Result<(Offset, Step)> {
        let due = self.until_due().await?;
        if due == Some(Duration::ZERO) {
            retry_due(&self.applier(), &self.db).await?;
        }
        let batch = self.reader.read(at).await?;
        self.set_state(State::Running, None);
        let Some(last) = batch.last().map(|recorded| recorded.offset) else {
            let step = if due == Some(Duration::ZERO) { Step::Applied } else { Step::Idle(due) };
            return Ok((at, step));
        };
        let count = batch.len();
        let oldest = batch[0].event.occurred_at;
        let stopwatch = Stopwatch::start();
        let mine = self.select(batch);

        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let mut conn = tx.conn();
        if !mine.is_empty() {
            self.applier().apply(&mut conn, &mine).await?;
        }
        position::advance(&mut conn, self.projector.name(), at, last, self.clock.now()).await?;
        fail::fail_point!("projector-before-commit", |_| std::process::abort());
        tx.commit().await?;
        fail::fail_point!("projector-after-commit", |_| std::process::abort());

        self.projector.committed(&mine).await;
        telemetry::projector_batch(self.projector.name(), count, stopwatch.seconds());
        telemetry::projector_delay(self.projector.name(), (self.clock.now().0 - oldest.0) as f64 / 1000.0);
        self.live.send_modify(|live| live.events_total += count as u64);
        Ok((last, Step::Applied))
    }

    fn applier(&self) -> Applier<'_> {
        Applier { projector: &*self.projector, gaps: &self.options.gaps, clock: &self.clock }
    }

    /// How long until the next parked key is due; zero when one is due now.
    async fn until_due(&self) -> Result<Option<Duration>> {
        let mut tx = self.db.read().await?;
        let due = parking::next_due(&mut tx.conn(), self.projector.name()).await?;
        let now = self.clock.now();
        Ok(due.map(|due| Duration::from_millis(u64::try_from(due.0 - now.0).unwrap_or(0))))
    }

    /// Keeps the events the projector declared. A type of a family it knows that it did not
    /// declare is counted, and said once: it is from a newer writer, or a mistake.
    fn select(&mut self, batch: Vec<Recorded>) -> Vec<Recorded> {
        let types = self.projector.event_types();
        batch
            .into_iter()
            .filter(|recorded| {
                let event = &recorded.event;
                if types.contains(&event.event_type.as_str()) {
                    return true;
                }
                let family = |event_type: &str| event_type.split('.').next() == Some(event.family());
                if types.iter().any(|event_type| family(event_type)) {
                    telemetry::unknown_event(self.projector.name(), &event.event_type);
                    if self.unknown_types.insert(event.event_type.clone()) {
                        tracing::warn!(
                            projector = self.projector.name(),
                            event_type = event.event_type,
                            event_id = %event.id,
                            "passing over events of an unknown type"
                        );
                    }
                }
                false
            })
            .collect()
    }

    fn back_off(&self, error: &Error, pause: Duration) {
        let name = self.projector.name();
        let text = Error::chain(error);
        if error.is_transient() {
            tracing::warn!(
                projector = name,
                error = text,
                pause_ms = pause.as_millis(),
                "a dependency is down, waiting"
            );
        } else {
            tracing::error!(
                projector = name,
                error = text,
                pause_ms = pause.as_millis(),
                "the projector failed, waiting"
            );
        }
        telemetry::projector_backoff(name);
        self.set_state(State::BackingOff, Some(text));
    }

    fn set_state(&self, state: State, detail: Option<String>) {
        self.live.send_if_modified(|live| {
            let changed = live.state != state || live.detail != detail;
            live.state = state;
            live.detail = detail;
            changed
        });
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("projector", &self.projector.name()).finish_non_exhaustive()
    }
}
