//! What a relay is doing, for whoever asks.

use tokio::sync::watch;

use super::{Checkpoint, Position};
use crate::{Clock, telemetry};

/// A relay as it is seen from outside. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    status: watch::Receiver<Status>,
    clock: Clock,
}

/// What a relay is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// In one word.
    pub state: State,
    /// Why, where that is not plain: what is down, what is being recovered, why it has stopped.
    pub detail: Option<String>,
    /// Up to where everything is in the log.
    pub position: Option<Position>,
    /// Records that were appended since the start.
    pub records: u64,
    /// Dead letters that were written since the start.
    pub dead: u64,
    /// When the last transaction that is in the log was written, in epoch milliseconds. Binlogs tell
    /// whole seconds.
    pub at_ms: Option<i64>,
    /// When the oldest transaction was written that was read and is not in the log yet.
    pub waiting_since_ms: Option<i64>,
}

/// What a relay is doing, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Another relay of the group is active; this one takes over when that one is gone.
    #[default]
    Standby,
    /// It reads and writes.
    Active,
    /// The source or the sink is away; it tries again.
    BackingOff,
    /// It needs somebody's decision.
    Stopped,
}

impl State {
    const NAMES: [&str; 4] = ["standby", "active", "backing_off", "stopped"];

    /// As metrics and answers have it.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl Handle {
    /// What it is doing now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Milliseconds since the oldest transaction was written that was read and is not in the log yet; 0
    /// if there is none.
    pub fn age_ms(&self) -> i64 {
        let waiting = self.status.borrow().waiting_since_ms;
        waiting.map_or(0, |since| (self.clock.now().0 - since).max(0))
    }

    /// Publishes what it is doing; called when metrics are scraped.
    pub fn publish_gauges(&self) {
        telemetry::relay_state(self.status.borrow().state.name(), &State::NAMES);
        telemetry::relay_age(self.age_ms() as f64 / 1_000.0);
    }

    /// Waits until the status meets a condition; nothing if the relay is gone before.
    pub async fn wait_for(&mut self, condition: impl FnMut(&Status) -> bool) -> Option<Status> {
        self.status.wait_for(condition).await.ok().map(|status| status.clone())
    }
}

/// The side that tells.
#[derive(Clone, Debug)]
pub(super) struct Live {
    status: watch::Sender<Status>,
    clock: Clock,
}

impl Live {
    pub(super) fn new(clock: Clock) -> (Self, Handle) {
        let (sender, status) = watch::channel(Status::default());
        (Self { status: sender, clock: clock.clone() }, Handle { status, clock })
    }

    pub(super) fn state(&self, state: State, detail: Option<String>) {
        self.status.send_if_modified(|status| {
            let has_changed = status.state != state || status.detail != detail;
            status.state = state;
            status.detail = detail;
            if state == State::Standby {
                // Whoever is active now has read it too.
                status.waiting_since_ms = None;
            }
            has_changed
        });
    }

    pub(super) fn active(&self) {
        self.state(State::Active, None);
    }

    pub(super) fn writing(&self, since_ms: Option<i64>) {
        // What was appended before and is not committed has waited longer.
        self.status.send_modify(|status| status.waiting_since_ms = status.waiting_since_ms.or(since_ms));
        self.tell_age();
    }

    /// Tells the metrics how long the oldest event has been waiting by now.
    pub(super) fn tell_age(&self) {
        let since = self.status.borrow().waiting_since_ms;
        let age_ms = since.map_or(0, |since| (self.clock.now().0 - since).max(0));
        telemetry::relay_age(age_ms as f64 / 1_000.0);
    }

    /// Tells the metrics that what occurred at `oldest_ms`, and what came after it, is in the log.
    pub(super) fn tell_delay(&self, oldest_ms: i64) {
        telemetry::relay_delay((self.clock.now().0 - oldest_ms).max(0) as f64 / 1_000.0);
    }

    pub(super) fn written(&self, checkpoint: &Checkpoint, records: usize, dead: usize) {
        self.status.send_modify(|status| {
            // Polling has no position.
            if !checkpoint.position.file.is_empty() {
                status.position = Some(checkpoint.position.clone());
            }
            status.at_ms = Some(checkpoint.at_ms);
            status.waiting_since_ms = None;
            status.records += records as u64;
            status.dead += dead as u64;
        });
        self.tell_age();
    }
}
