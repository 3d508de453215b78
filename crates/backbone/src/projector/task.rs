//! The loop of a projector on one part of the log: read a batch, apply it with its position, try
//! parked keys again.

mod select;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use metrics::SharedString;
use tidings_event::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    Generation, MissingHistory, Options, Projector,
    apply::{Applied, Applier, REDRIVE_BEYOND},
    feed::Feed,
    generation::{self, Lineage},
    joint::{Joint, Outcome, Step as JointStep},
    pace::Pace,
    position,
    retry::retry_due,
    status::{Live, LiveParts, State},
};
use crate::{
    Clock, Conn, Db, Durability, Error, Result, Tx,
    clock::Stopwatch,
    journey::trail::{self, Left},
    limits::{PARKING_HELD_GAP, PROJECTOR_BACKOFF_MAX, PROJECTOR_BACKOFF_MIN},
    log::{Offset, Part, Recorded},
    outbox::{Batch, MalformedEvent},
    parking::{self, Lot, Owner},
    telemetry, trace,
};

/// A projector and what its tasks need. Cheap to clone.
#[derive(Clone)]
pub(super) struct Plan {
    projector: Arc<dyn Projector>,
    options: Options,
    db: Db,
    clock: Clock,
    lineage: Lineage,
    pace: Pace,
    /// Where the tasks end that replay a stretch of the log.
    ends: Option<Arc<BTreeMap<Part, Offset>>>,
    live: LiveParts,
    /// Types that are no surprise.
    known_types: Arc<HashSet<String>>,
    /// Types already warned of, so that each is said once.
    unknown_types: Arc<Mutex<HashSet<String>>>,
    before_first: Offset,
}

/// One projector on one part of the log.
pub(super) struct Task {
    plan: Plan,
    feed: Feed,
    /// Where batches of several parts are committed together; without it each is committed by itself.
    joint: Option<Joint>,
    /// Whether its next batch is to be committed by itself, since the last one was in the way of others or may have
    /// been: what hangs holds up one transaction of theirs and no more.
    is_alone: bool,
    /// Where it stands; `None` before the stored position is read.
    position: Option<Offset>,
    /// Since when it stands there.
    since: Timestamp,
    /// Events tried at once: fewer after a batch has timed out.
    batch_events_max: usize,
    /// Whether the parking lot was empty when this task looked, and nobody can have parked since: whoever parks
    /// moves the position, and then this task fails and looks again.
    is_lot_empty: bool,
    /// The last event before the end of a replay, once events behind that end were read.
    last_before_end: Option<Offset>,
}

/// What a step found to do.
enum Step {
    /// The stored position was found; nothing was tried yet.
    Begun,
    /// Something was done; there may be more.
    Done,
    /// Nothing to do before this long, or before the log grows.
    Idle(Option<Duration>),
    /// Something was done, and what is next is not to be done before this long.
    Rest(Duration),
    /// The lease is another process's.
    Leased,
}

/// How often a task that is halted looks whether it may go on.
const HALT_LOOK_GAP: Duration = Duration::from_millis(100);

impl Plan {
    pub(super) fn new(
        projector: Arc<dyn Projector>,
        options: Options,
        db: Db,
        clock: Clock,
        before_first: Offset,
    ) -> Self {
        let lineage = Lineage::new(projector.name(), Generation::FIRST, true);
        let (known_types, unknown_types, live, pace) = Default::default();
        let ends = None;
        Self { projector, options, db, clock, lineage, pace, ends, live, known_types, unknown_types, before_first }
    }

    /// The same for a generation, whose tasks tell `live` what they do.
    pub(super) fn on(&self, lineage: Lineage, pace: Pace, live: LiveParts) -> Self {
        Self { lineage, pace, live, ..self.clone() }
    }

    /// The same up to these offsets.
    pub(super) fn until(self, ends: BTreeMap<Part, Offset>) -> Self {
        Self { ends: Some(Arc::new(ends)), ..self }
    }

    pub(super) fn knowing(mut self, known_types: Arc<HashSet<String>>) -> Self {
        self.known_types = known_types;
        self
    }

    pub(super) fn projector(&self) -> &dyn Projector {
        &*self.projector
    }

    /// When work began, if it is traced.
    pub(super) fn traced(&self) -> Option<SystemTime> {
        self.lineage.traced()
    }

    pub(super) fn name(&self) -> &'static str {
        self.projector.name()
    }

    /// The name of the generation that its tasks maintain.
    pub(super) fn identity(&self) -> &str {
        &self.lineage.identity
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn before_first(&self) -> Offset {
        self.before_first
    }

    pub(super) fn batch_events_max(&self) -> usize {
        self.options.batch_events_max
    }

    pub(super) fn task(&self, feed: Feed) -> Task {
        let batch_events_max = self.options.batch_events_max;
        Task {
            plan: self.clone(),
            feed,
            joint: None,
            is_alone: false,
            position: None,
            since: Timestamp::default(),
            batch_events_max,
            is_lot_empty: false,
            last_before_end: None,
        }
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// The stored positions in those of `parts` that have one.
    pub(super) async fn positions(&self, parts: &[Part]) -> Result<BTreeMap<Part, Offset>> {
        let mut look = self.db.glance().await?;
        let mut positions = BTreeMap::new();
        for part in parts {
            if let Some(position) = position::position(&mut look.conn(), self.identity(), part).await? {
                positions.insert(part.clone(), position);
            }
        }
        Ok(positions)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether it is kept when what was passed.
    pub(super) fn keeps_trail(&self) -> bool {
        self.options.keeps_trail
    }

    /// Notes that positions were left, on the transaction that moves them.
    pub(super) async fn note_trail<'p>(
        &self,
        conn: &mut Conn<'_>,
        left: impl Iterator<Item = Left<'p>>,
        now: Timestamp,
    ) -> Result<()> {
        if self.keeps_trail() { trail::note(conn, self.identity(), left, now).await } else { Ok(()) }
    }

    /// What applies events of `part`.
    pub(super) fn applier<'a>(&'a self, part: &'a Part) -> Applier<'a> {
        let Self { options, projector, lineage, clock, .. } = self;
        let Options { gaps, apply_time_max, keeps_trail, .. } = options;
        let (apply_time_max, keeps_trail) = (*apply_time_max, *keeps_trail);
        Applier { projector: &**projector, lineage, part, gaps, apply_time_max, keeps_trail, clock }
    }

    /// Says that the projector waits before it tries again.
    pub(super) fn back_off(&self, error: &Error, pause: Duration) {
        let (projector, text, pause_ms) = (self.identity(), Error::chain(error), pause.as_millis());
        if error.is_transient() {
            tracing::warn!(projector, error = text, pause_ms, "the projector waits and tries again");
        } else {
            tracing::error!(projector, error = text, pause_ms, "the projector failed, waits and tries again");
        }
        telemetry::projector_backoff(self.lineage.label());
    }
}

impl Task {
    pub(super) fn joining(self, joint: Joint) -> Self {
        Self { joint: Some(joint), ..self }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        self.work(&shutdown).await;
        self.plan.live.remove(self.feed.part());
    }

    async fn work(&mut self, shutdown: &CancellationToken) {
        let mut backoff = PROJECTOR_BACKOFF_MIN;
        while !shutdown.is_cancelled() {
            let (pause, or_grown) = match self.step().await {
                Ok(step) => {
                    if self.is_over(&step) {
                        backoff = PROJECTOR_BACKOFF_MIN;
                    }
                    match step {
                        Step::Begun | Step::Done => continue,
                        Step::Idle(pause) => (self.feed.longest_idle().into_iter().chain(pause).min(), true),
                        Step::Rest(pause) => (Some(pause), false),
                        Step::Leased => (Some(Feed::LEASE_GAP), false),
                    }
                }
                Err(error @ Error::GenerationGone { .. }) => {
                    tracing::info!(
                        projector = self.identity(),
                        error = Error::chain(&error),
                        "nobody reads it any more"
                    );
                    self.set_state(State::Waiting, Some(Error::chain(&error)));
                    shutdown.cancelled().await;
                    return;
                }
                Err(error @ Error::HistoryMissing { .. }) => {
                    let (projector, part) = (self.identity(), self.feed.part().to_string());
                    tracing::error!(projector, part, error = Error::chain(&error), "the projector has stopped");
                    self.set_state(State::Stopped, Some(Error::chain(&error)));
                    shutdown.cancelled().await;
                    return;
                }
                Err(error) => {
                    self.is_lot_empty = false;
                    if !self.feed.is_dense() || matches!(error, Error::PositionMoved { .. }) {
                        // What was read and not applied is read again, from the stored position.
                        self.position = None;
                    }
                    self.plan.back_off(&error, backoff);
                    self.set_state(State::BackingOff, Some(Error::chain(&error)));
                    let pause = backoff;
                    // Fewer events are another try.
                    if !matches!(error, Error::ApplyTimedOut { .. }) {
                        backoff = (backoff * 2).min(PROJECTOR_BACKOFF_MAX);
                    }
                    // A log that grows is no reason to disturb a dependency that is down.
                    (Some(pause), false)
                }
            };
            tokio::select! {
                () = self.feed.grown(), if or_grown => {}
                () = sleep(pause) => {}
                () = shutdown.cancelled() => {}
            }
        }
    }

    /// Whether what failed before does not fail any more. After an error a partition is read anew from the stored
    /// position, and may have nothing to read for a moment: that neither failed says nothing.
    fn is_over(&self, step: &Step) -> bool {
        match step {
            Step::Begun => false,
            Step::Idle(_) => self.feed.is_dense(),
            Step::Done | Step::Rest(_) | Step::Leased => true,
        }
    }

    fn identity(&self) -> &str {
        self.plan.identity()
    }

    fn label(&self) -> SharedString {
        self.plan.lineage.label()
    }

    async fn step(&mut self) -> Result<Step> {
        self.feed.begin_round();
        if self.plan.pace.is_halted() {
            self.set_state(State::Waiting, None);
            return Ok(Step::Rest(HALT_LOOK_GAP));
        }
        if !self.feed.is_mine()? {
            self.is_lot_empty = false;
            self.set_state(State::Waiting, None);
            return Ok(Step::Leased);
        }
        let Some(at) = self.position else {
            self.position = Some(self.start().await?);
            return Ok(Step::Begun);
        };
        let lot = if self.is_lot_empty { Lot::EMPTY } else { self.lot().await? };
        self.is_lot_empty = lot.is_empty;
        let mut due = self.until_due(&lot);
        if due == Some(Duration::ZERO) && retry_due(&self.applier(), &self.plan.db, at).await? == 0 {
            // Somebody else holds those that are due: they are looked at again in a while.
            due = Some(PARKING_HELD_GAP);
        }
        let end = self.plan.ends.as_ref().and_then(|ends| ends.get(self.feed.part()).copied());
        if end.is_some_and(|end| at >= end) {
            self.set_state(State::Waiting, None);
            return Ok(Step::Idle(due));
        }
        let events_max = self.plan.pace.batch_events_max(self.batch_events_max);
        if let Some(end) = end.filter(|_| self.last_before_end == Some(at)) {
            return self.pass_to(at, end).await;
        }
        let batch = self.feed.read(at, events_max).await?;
        self.set_state(State::Running, None);
        let first = match &batch {
            Batch::Events(events) => events.first().map(|first| first.offset),
            Batch::Malformed(row) => Some(row.offset),
        };
        if let Some(end) = end.filter(|end| first.is_some_and(|first| first > *end)) {
            return self.pass_to(at, end).await;
        }
        match batch {
            Batch::Events(events) if events.is_empty() && due == Some(Duration::ZERO) => Ok(Step::Done),
            Batch::Events(events) if events.is_empty() => Ok(Step::Idle(due)),
            Batch::Events(mut events) => {
                // The outbox is read ahead in whole batches, and read again; a partition gives no more than asked for.
                events.truncate(events_max);
                let read = events.len();
                events.retain(|recorded| end.is_none_or(|end| recorded.offset <= end));
                if events.len() < read {
                    // A partition does not give again what was read: the end may be no event of its own.
                    self.last_before_end = events.last().map(|last| last.offset);
                }
                if self.feed.is_dense() {
                    self.check_history(at, events[0].offset)?;
                }
                self.apply(at, events, &lot).await
            }
            Batch::Malformed(row) => self.park_malformed(at, &row).await,
        }
    }

    /// Nothing is to be applied up to the end of a replay.
    async fn pass_to(&mut self, at: Offset, end: Offset) -> Result<Step> {
        let tx = self.plan.db.write(Durability::Rebuildable).await?;
        self.commit(tx, at, end, None).await?;
        Ok(Step::Done)
    }

    /// Finds where to begin; a new projector begins at the beginning.
    async fn start(&mut self) -> Result<Offset> {
        let mut tx = self.plan.db.write(Durability::Full).await?;
        let mut conn = tx.conn();
        let live = generation::keep_live(&mut conn, self.plan.name()).await?;
        // Read under the write lock: no retention removes events between this look and the position.
        let earliest = self.feed.earliest(&mut conn).await?;
        let (identity, part) = (Arc::clone(&self.plan.lineage.identity), self.feed.part().clone());
        let place = position::place(&mut conn, &identity, &part).await?;
        let stored = place.map(|(position, _)| position);
        if stored.is_none() && *identity != *live.identity(self.plan.name()) {
            // Who begins a generation gives it its positions; where there are none, it has been removed.
            let (projector, generation) = (self.plan.name(), self.plan.lineage.generation.0);
            return Err(Error::GenerationGone { projector, generation });
        }
        let mut start = stored.unwrap_or(self.plan.before_first);
        // Nothing is missing where nothing was.
        let reached = position::reached_in(&mut conn, &identity, &part).await?;
        self.check_history(reached.map_or(start, |reached| reached.max(start)), earliest)?;
        start = start.max(Offset(earliest.0 - 1));
        let since = match place {
            Some((stored, since)) if stored == start => since,
            _ => {
                let now = self.plan.clock.now();
                position::set(&mut conn, &identity, &part, start, now).await?;
                // A tick ago, so that the very first events have a place before theirs in the trail.
                trail::tick_before(now)
            }
        };
        tx.commit().await?;
        self.since = since;
        self.feed.seek(start).await?;
        self.set_state(State::Running, None);
        Ok(start)
    }

    /// Offsets of the embedded log have no gaps: where the next one is missing, events are gone.
    fn check_history(&self, at: Offset, next: Offset) -> Result<()> {
        let (needed, earliest) = (at.0 + 1, next.0);
        if earliest <= needed {
            return Ok(());
        }
        let projector = self.identity();
        match self.plan.options.on_missing_history {
            MissingHistory::Earliest if self.plan.lineage.is_live() => {
                tracing::warn!(projector, needed, earliest, "events are missing from the log; going on, as configured");
                Ok(())
            }
            // What is built anew is built whole.
            _ => Err(Error::HistoryMissing { projector: projector.to_owned(), needed, earliest }),
        }
    }

    async fn apply(&mut self, at: Offset, batch: Vec<Recorded>, lot: &Lot) -> Result<Step> {
        let (count, oldest) = (batch.len(), batch[0].event.occurred_at);
        let last = batch[count - 1].offset;
        let (stopwatch, started) = (Stopwatch::start(), self.plan.traced());
        let (mut mine, mut has_failed) = (self.plan.select(batch), false);

        if lot.is_empty
            && !self.is_alone
            && let Some(joint) = &self.joint
        {
            let step = JointStep { part: self.feed.part().clone(), from: at, to: last, since: self.since };
            match joint.commit(step, mine).await? {
                Outcome::Committed(now) => {
                    self.passed(last, now);
                    return Ok(self.tell(count, oldest, stopwatch));
                }
                Outcome::Alone(events) => {
                    self.is_alone = true;
                    (mine, has_failed) = (events, true);
                }
            }
        }
        let (tx, applied) = match self.applied(&mine, lot.is_empty && !has_failed).await {
            Err(error @ Error::ApplyTimedOut { .. }) => return self.after_time_out(at, count, &mine, error).await,
            applied => applied?,
        };
        if applied.is_some() {
            // Somebody may be parked now.
            self.is_lot_empty = false;
        }
        self.commit(tx, at, last, applied.as_ref()).await?;
        let applied = applied.as_ref().map_or(&mine[..], |applied| &applied.events);
        trace::applied(self.plan.projector().name(), &[(self.feed.part(), applied)], started);
        self.applier().committed(applied).await;
        Ok(self.tell(count, oldest, stopwatch))
    }

    /// After a batch of `count` events, the oldest of which occurred at `oldest`: what is next.
    fn tell(&mut self, count: usize, oldest: Timestamp, stopwatch: Stopwatch) -> Step {
        self.batch_events_max = (self.batch_events_max * 2).min(self.plan.options.batch_events_max);
        let seconds = stopwatch.seconds();
        telemetry::projector_batch(self.label(), count, seconds);
        telemetry::projector_delay(self.label(), (self.plan.clock.now().0 - oldest.0).max(0) as f64 / 1000.0);
        self.plan.pace.rest(count, seconds).map_or(Step::Done, Step::Rest)
    }

    /// All up to `to` is dealt with.
    fn passed(&mut self, to: Offset, at: Timestamp) {
        (self.position, self.since) = (Some(to), at);
        self.feed.hint(to);
    }

    /// A transaction that holds the effects of `events`, and parks those at fault; and what became of them, if
    /// not all were simply applied. It is hopeful where nothing is parked and nothing has failed yet.
    async fn applied(&self, events: &[Recorded], is_hopeful: bool) -> Result<(Tx, Option<Applied>)> {
        let applier = self.applier();
        let mut tx = self.plan.db.write(Durability::Rebuildable).await?;
        if events.is_empty() {
            return Ok((tx, None));
        }
        // Nearly always it is hopeful; then no care costs anything. That nothing was parked since the look at the lot
        // is sure: whoever parks moves the position, and the commit would fail.
        if is_hopeful {
            if applier.call(&mut tx.conn(), events).await?.is_ok() {
                return Ok((tx, None));
            }
            tx.rollback().await?;
            tx = self.plan.db.write(Durability::Rebuildable).await?;
        }
        let applied = applier.apply(&mut tx.conn(), events).await?;
        Ok((tx, Some(applied)))
    }

    /// A batch that was not applied in its time is tried again with half its events; an event that
    /// was alone is at fault.
    async fn after_time_out(&mut self, at: Offset, count: usize, mine: &[Recorded], error: Error) -> Result<Step> {
        let (1, [alone]) = (count, mine) else {
            self.batch_events_max = (count / 2).max(1);
            return Err(error);
        };
        self.is_lot_empty = false;
        let mut tx = self.plan.db.write(Durability::Rebuildable).await?;
        let applied = self.applier().park_timed_out(&mut tx.conn(), alone, &error).await?;
        self.commit(tx, at, alone.offset, Some(&applied)).await?;
        Ok(Step::Done)
    }

    async fn park_malformed(&mut self, at: Offset, row: &MalformedEvent) -> Result<Step> {
        if self.feed.is_dense() {
            self.check_history(at, row.offset)?;
        }
        self.is_lot_empty = false;
        let mut tx = self.plan.db.write(Durability::Rebuildable).await?;
        // A row whose very type cannot be told may be anybody's.
        let is_mine = row.event_type.is_empty() || self.plan.projector.event_types().contains(&row.event_type.as_str());
        if is_mine {
            parking::park_malformed(&mut tx.conn(), self.owner(), row, self.plan.clock.now()).await?;
        }
        self.commit(tx, at, row.offset, None).await?;
        if is_mine {
            telemetry::key_parked(self.label());
            telemetry::key_dead(self.label());
            let (projector, offset, key, error) = (self.identity(), row.offset.0, &row.key, &row.reason);
            tracing::error!(projector, offset, key, error, "a row of the log is no event; its key is dead");
        }
        Ok(Step::Done)
    }

    /// Commits what `tx` holds together with the position.
    async fn commit(&mut self, mut tx: Tx, from: Offset, to: Offset, applied: Option<&Applied>) -> Result<()> {
        let (mut conn, now) = (tx.conn(), self.plan.now());
        position::advance(&mut conn, self.identity(), self.feed.part(), from, to, now).await?;
        let left = Left { part: self.feed.part(), offset: from, since: self.since };
        self.plan.note_trail(&mut conn, std::iter::once(left), now).await?;
        if let Some(Applied { behind, .. }) = applied
            && !behind.is_empty()
            && !parking::are_still_parked(&mut conn, self.owner(), behind).await?
        {
            return Err(Error::KeyFreed { projector: self.plan.name() });
        }
        fail::fail_point!("projector-before-commit", |_| std::process::abort());
        tx.commit().await?;
        fail::fail_point!("projector-after-commit", |_| std::process::abort());
        self.applier().tell_parked(applied.map_or(&[], |applied| &applied.parked));
        self.is_alone = false;
        self.passed(to, now);
        Ok(())
    }

    fn applier(&self) -> Applier<'_> {
        self.plan.applier(self.feed.part())
    }

    fn owner(&self) -> Owner<'_> {
        Owner { projector: self.identity(), part: self.feed.part() }
    }

    async fn lot(&self) -> Result<Lot> {
        let mut look = self.plan.db.glance().await?;
        parking::lot(&mut look.conn(), self.owner()).await
    }

    /// How long until a key is due; zero when one is, or its time lies further ahead than any that is given.
    fn until_due(&self, lot: &Lot) -> Option<Duration> {
        let until = |due: Timestamp, beyond: Duration| {
            let wait = Duration::from_millis(u64::try_from(due.0 - self.plan.clock.now().0).unwrap_or(0));
            if wait > beyond { Duration::ZERO } else { wait }
        };
        let retry = lot.next_retry.map(|due| until(due, self.plan.options.gaps.beyond()));
        let redrive = lot.next_redrive.map(|due| until(due, REDRIVE_BEYOND));
        retry.into_iter().chain(redrive).min()
    }

    fn set_state(&self, state: State, detail: Option<String>) {
        self.plan.live.set(self.feed.part(), Live { state, detail });
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("projector", &self.identity()).finish_non_exhaustive()
    }
}
