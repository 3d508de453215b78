//! How far projectors are, measured at the source: true also while they are dead.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tidings_event::Timestamp;
use tokio::sync::watch;

use super::position::positions;
use crate::{
    Clock, Db, Result,
    limits::OTHER_PROCESS_POLL_GAP,
    log::{Extent, Log, Offset},
    parking, telemetry,
};

/// What a projector is doing in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It has not begun here; perhaps another process runs it.
    #[default]
    Waiting,
    /// It applies what there is.
    Running,
    /// A dependency is down and it waits.
    BackingOff,
    /// It needs events that the log no longer holds.
    Stopped,
    /// Its position is stored, but no projector of that name is known here: renamed or removed.
    Unregistered,
}

/// What only the running task knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    pub(super) state: State,
    pub(super) detail: Option<String>,
}

/// One projector, as seen from outside.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: State,
    /// Why, when it is not simply running.
    pub detail: Option<String>,
    /// The last event it has dealt with; 0 before the first.
    pub position: Offset,
    /// Events committed and not yet dealt with.
    pub lag_events: i64,
    /// Age of the oldest event not yet applied, in milliseconds: of those, or of parked ones.
    pub oldest_age_ms: Option<i64>,
    /// Keys that wait for a retry.
    pub retrying_keys: i64,
    /// Keys whose attempts are spent.
    pub dead_keys: i64,
}

/// Tells how far projectors are, running here or not: a process that only looks takes the handle
/// of a [`super::Runtime`] that it never runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    db: Db,
    log: Log,
    clock: Clock,
    live: Arc<Mutex<BTreeMap<&'static str, watch::Sender<Live>>>>,
}

impl Handle {
    pub(super) fn new(db: Db, log: Log, clock: Clock) -> Self {
        Self { db, log, clock, live: Arc::default() }
    }

    pub(super) fn register(&self, projector: &'static str) -> watch::Sender<Live> {
        let live = watch::Sender::new(Live::default());
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert(projector, live.clone());
        live
    }

    fn live(&self, projector: &str) -> Option<Live> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.get(projector).map(|sender| sender.borrow().clone())
    }

    /// What the log holds now.
    pub async fn extent(&self) -> Result<Extent> {
        self.log.extent().await
    }

    /// Every projector that is registered here or has a stored position, by name.
    pub async fn statuses(&self) -> Result<Vec<Status>> {
        let stored = {
            let mut tx = self.db.read().await?;
            positions(tx.conn()).await?
        };
        let mut offsets: BTreeMap<String, Offset> =
            stored.into_iter().map(|position| (position.projector, position.offset)).collect();
        for name in self.live.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            offsets.entry((*name).to_owned()).or_default();
        }
        let head = self.log.extent().await?.head;
        let mut statuses = Vec::with_capacity(offsets.len());
        for (name, position) in offsets {
            statuses.push(self.status(name, position, head).await?);
        }
        Ok(statuses)
    }

    async fn status(&self, name: String, position: Offset, head: Offset) -> Result<Status> {
        let oldest = self.log.oldest_after(position).await?;
        let ((retrying_keys, dead_keys), oldest_parked) = {
            let mut tx = self.db.read().await?;
            (parking::count(tx.conn(), &name).await?, parking::oldest(&mut tx.conn(), &name).await?)
        };
        let oldest = [oldest, oldest_parked].into_iter().flatten().min();
        let age = |at: Timestamp| (self.clock.now().0 - at.0).max(0);
        let live = self.live(&name);
        let live = live.unwrap_or(Live { state: State::Unregistered, ..Live::default() });
        Ok(Status {
            state: live.state,
            detail: live.detail,
            position,
            lag_events: (head.0 - position.0).max(0),
            oldest_age_ms: oldest.map(age),
            retrying_keys,
            dead_keys,
            name,
        })
    }

    /// Publishes the gauges of every projector; called when metrics are scraped.
    pub async fn publish_gauges(&self) -> Result<()> {
        for status in self.statuses().await? {
            let age_seconds = status.oldest_age_ms.unwrap_or(0) as f64 / 1000.0;
            telemetry::projector_lag(&status.name, status.lag_events, age_seconds);
            telemetry::parked_keys(&status.name, status.retrying_keys, status.dead_keys);
        }
        Ok(())
    }

    /// Waits until every projector known here has dealt with all that was committed when it was called and
    /// no key waits for a retry. Answers whether that came about within `time_max`.
    pub async fn settle(&self, time_max: Duration) -> Result<bool> {
        let head = self.log.extent().await?.head;
        let settled = async {
            let mut commits = self.db.commits();
            loop {
                commits.mark_unchanged();
                let statuses = self.statuses().await?;
                let mut known = statuses.iter().filter(|status| status.state != State::Unregistered);
                if known.all(|status| status.position >= head && status.retrying_keys == 0) {
                    return Ok(true);
                }
                // Commits of other processes are noticed only where a runtime runs: here there may be none.
                tokio::select! {
                    changed = commits.changed() => if changed.is_err() {
                        return Ok(false);
                    },
                    () = tokio::time::sleep(OTHER_PROCESS_POLL_GAP) => {}
                }
            }
        };
        tokio::time::timeout(time_max, settled).await.unwrap_or(Ok(false))
    }
}
