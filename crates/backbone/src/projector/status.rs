//! How far projectors are, measured at the source: true also while they are dead.

mod forget;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tidings_event::{EventId, Timestamp};

pub use self::forget::{Forgotten, NotForgotten};
use super::{
    Generation, Projector, generation,
    position::{Position, positions},
    rebuild::{self, Rebuilds},
};
use crate::{
    Clock, Db, Result, audit,
    counted::{self, Counted},
    journey::{self, Journey},
    limits::OTHER_PROCESS_POLL_GAP,
    log::{Extent, Log, Offset, Part},
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

/// What only a running task knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    pub(super) state: State,
    pub(super) detail: Option<String>,
}

/// What the tasks of one projector tell, each of its part of the log. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveParts(Arc<Mutex<BTreeMap<Part, Live>>>);

impl State {
    const NAMES: [&str; 5] = ["waiting", "running", "backing_off", "stopped", "unregistered"];

    /// As metrics and answers have it.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// How much it asks to be looked at.
    fn urgency(self) -> u8 {
        match self {
            Self::Waiting | Self::Unregistered => 0,
            Self::Running => 1,
            Self::BackingOff => 2,
            Self::Stopped => 3,
        }
    }
}

impl LiveParts {
    pub(super) fn set(&self, part: &Part, live: Live) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match parts.get_mut(part) {
            Some(known) => *known = live,
            None => drop(parts.insert(part.clone(), live)),
        }
    }

    pub(super) fn remove(&self, part: &Part) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(part);
    }

    /// All of them in one: the state that most asks to be looked at.
    fn together(&self) -> Live {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.values().max_by_key(|live| live.state.urgency()).cloned().unwrap_or_default()
    }
}

/// What the tasks of each generation of a projector tell, by identity. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks(Arc<Mutex<Generations>>);

#[derive(Debug, Default)]
struct Generations {
    parts: BTreeMap<String, LiveParts>,
    /// The identity of the one that readers are given; nothing before it runs here.
    live: Option<String>,
}

impl Tasks {
    /// Where the tasks of one generation tell what they do.
    pub(super) fn of(&self, identity: &str) -> LiveParts {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.parts.entry(identity.to_owned()).or_default().clone()
    }

    /// Which of them readers are given.
    pub(super) fn set_live(&self, identity: &str) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.live.as_deref() != Some(identity) {
            tasks.live = Some(identity.to_owned());
        }
    }

    /// What the generation does that readers are given; and the others, once there was one.
    fn states(&self) -> (State, Option<State>) {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (live, others): (Vec<_>, Vec<_>) =
            tasks.parts.iter().partition(|(identity, _)| Some(*identity) == tasks.live.as_ref());
        let together = |parts: Vec<(&String, &LiveParts)>| {
            parts.into_iter().map(|(_, parts)| parts.together().state).max_by_key(|state| state.urgency())
        };
        (together(live).unwrap_or_default(), together(others))
    }
}

/// A projector that is known here.
#[derive(Clone)]
struct Registered {
    projector: Arc<dyn Projector>,
    parts: Vec<Part>,
    tasks: Tasks,
}

/// One projector, as seen from outside.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its name; of a generation that is being built with its number: `relation@2`.
    pub name: String,
    /// Whether it is the one whose projection is read; else it is being built.
    pub is_live: bool,
    /// The name under which its positions and its parking lot are stored.
    pub identity: String,
    /// What it is doing.
    pub state: State,
    /// Why, when it is not simply running.
    pub detail: Option<String>,
    /// How many events it has dealt with, those passed over included: the last offset, over all parts of
    /// the log.
    pub position: Offset,
    /// How far it is in each part of the log.
    pub parts: Vec<PartStatus>,
    /// Events committed and not yet dealt with.
    pub lag_events: i64,
    /// Age of the oldest of them, in milliseconds.
    pub lag_age_ms: Option<i64>,
    /// Age of the oldest event not yet applied, in milliseconds: of those, or of parked ones.
    pub oldest_age_ms: Option<i64>,
    /// Keys that wait for a retry, those that are being redriven included.
    pub retrying_keys: i64,
    /// Those of them that are tried because they were redriven.
    pub redriving_keys: i64,
    /// Keys whose attempts are spent.
    pub dead_keys: i64,
}

/// How far a projector is in one part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartStatus {
    /// The part.
    pub part: Part,
    /// The last event it has dealt with.
    pub position: Offset,
    /// Events committed and not yet dealt with.
    pub lag_events: i64,
}

/// Tells how far projectors are, running here or not: a process that only looks takes the handle
/// of a [`super::Runtime`] that it never runs. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    db: Db,
    log: Log,
    clock: Clock,
    registered: Arc<Mutex<BTreeMap<&'static str, Registered>>>,
    /// Generations whose gauges were published while they were built, by their name in metrics.
    measured: Arc<Mutex<BTreeSet<String>>>,
    /// Projectors that were shown to belong to no program.
    unregistered: Arc<Mutex<BTreeSet<String>>>,
    /// What the metrics were told last.
    told: Arc<Mutex<Vec<Told>>>,
}

/// What the metrics were told of a projector, as moments: an age goes on growing while nobody can look.
#[derive(Clone, Debug)]
struct Told {
    name: String,
    lag_events: i64,
    oldest_behind: Option<Timestamp>,
    oldest: Option<Timestamp>,
}

impl Told {
    /// What was not relayed is not applied either.
    fn publish(&self, now: Timestamp, unrelayed: Option<Timestamp>) {
        let oldest = self.oldest.into_iter().chain(unrelayed).min();
        let age = |at: Option<Timestamp>| at.map_or(0, |at| (now.0 - at.0).max(0)) as f64 / 1_000.0;
        telemetry::projector_lag(&self.name, self.lag_events, age(self.oldest_behind), age(oldest));
    }
}

impl Handle {
    pub(super) fn new(db: Db, log: Log, clock: Clock) -> Self {
        let (registered, measured, unregistered, told) = Default::default();
        Self { db, log, clock, registered, measured, unregistered, told }
    }

    pub(super) fn register(&self, projector: Arc<dyn Projector>, parts: Vec<Part>) -> Tasks {
        let (name, tasks) = (projector.name(), Tasks::default());
        telemetry::no_unknown_event(name);
        telemetry::no_unknown_event(&generation::next_label(name));
        let registered = Registered { projector, parts, tasks: tasks.clone() };
        self.registered.lock().unwrap_or_else(PoisonError::into_inner).insert(name, registered);
        tasks
    }

    /// Rebuilds of the projectors that are registered here, whichever process leads them.
    pub fn rebuilds(&self) -> Rebuilds {
        let registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        let projectors = registered.values().map(|registered| Arc::clone(&registered.projector)).collect();
        Rebuilds::new(self.db.clone(), self.log.clone(), self.clock.clone(), projectors)
    }

    /// The journey of one event; nothing where nobody knows the event any more, or ever did. Kafka is given some
    /// [`crate::limits::JOURNEY_LOG_TIME_MAX`] to tell where it is: what it does not tell is unknown.
    ///
    /// # Errors
    /// When the database fails; and Kafka, where the event can only be found there.
    pub async fn journey(&self, id: EventId) -> Result<Option<Journey>> {
        let taken = {
            let registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
            registered.iter().map(|(name, known)| (*name, known.projector.event_types())).collect()
        };
        journey::tell(&self.db, &self.log, &taken, id).await
    }

    /// What the outbox holds now.
    pub async fn extent(&self) -> Result<Extent> {
        self.log.extent().await
    }

    /// Every projector that is registered here or has a stored position, by name; and generations that are
    /// being built. Those that are being removed are nobody's any more.
    pub async fn statuses(&self) -> Result<Vec<Status>> {
        let (stored, generations, built) = {
            let mut tx = self.db.read().await?;
            let (stored, generations) = (positions(tx.conn()).await?, generation::all(&mut tx.conn()).await?);
            (stored, generations, rebuild::names_of_unfinished(&mut tx.conn()).await?)
        };
        let live = |name: &str| generations.get(name).copied().unwrap_or(Generation::FIRST);
        let mut places: BTreeMap<String, BTreeMap<Part, Offset>> = BTreeMap::new();
        let registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, Registered { parts, .. }) in &registered {
            let parts = parts.iter().map(|part| (part.clone(), self.log.before_first()));
            places.insert(live(name).identity(name), parts.collect());
        }
        for Position { projector, part, offset, .. } in stored {
            places.entry(projector).or_default().insert(part, offset);
        }
        let mut statuses = Vec::with_capacity(places.len());
        for (identity, places) in places {
            let is_built = built.contains(&identity);
            let name = plain(&identity);
            // What is not being built any more and is not read is being removed, a replay too.
            let is_live = !is_built && live(name).identity(name) == identity;
            if !is_live && !is_built {
                continue;
            }
            let told = registered.get(name).map(|known| known.tasks.of(&identity).together());
            let name = if is_live { name.to_owned() } else { identity.clone() };
            let status = self.status(identity, places.into_iter().collect(), told).await?;
            statuses.push(Status { name, is_live, ..status });
        }
        statuses.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(statuses)
    }

    async fn status(&self, identity: String, places: Vec<(Part, Offset)>, live: Option<Live>) -> Result<Status> {
        let behind = self.log.behind(places.clone()).await?;
        let (parked, oldest_parked) = {
            let mut tx = self.db.read().await?;
            (parking::count(tx.conn(), &identity).await?, parking::oldest(&mut tx.conn(), &identity).await?)
        };
        let oldest_behind = behind.iter().filter_map(|behind| behind.oldest).min();
        let oldest = oldest_behind.into_iter().chain(oldest_parked).min();
        let age = |at: Timestamp| (self.clock.now().0 - at.0).max(0);
        let live = live.unwrap_or(Live { state: State::Unregistered, ..Live::default() });
        let dealt_with = |(_, position): &(Part, Offset)| position.0 - self.log.before_first().0;
        Ok(Status {
            state: live.state,
            detail: live.detail,
            position: Offset(places.iter().map(dealt_with).sum()),
            lag_events: behind.iter().map(|behind| behind.events).sum(),
            parts: places
                .into_iter()
                .zip(behind)
                .map(|((part, position), behind)| PartStatus { part, position, lag_events: behind.events })
                .collect(),
            lag_age_ms: oldest_behind.map(age),
            oldest_age_ms: oldest.map(age),
            retrying_keys: parked.tried(),
            redriving_keys: parked.redriving,
            dead_keys: parked.dead,
            name: identity.clone(),
            is_live: true,
            identity,
        })
    }

    /// Publishes the gauges of every projector as far as they are known without looking: the ages of what was
    /// seen last go on growing.
    pub fn publish_told(&self) {
        let (now, unrelayed) = (self.clock.now(), self.log.unrelayed_since());
        self.told.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|told| told.publish(now, unrelayed));
        for (name, Registered { tasks, .. }) in &*self.registered.lock().unwrap_or_else(PoisonError::into_inner) {
            let (live, built) = tasks.states();
            telemetry::projector_state(name, live.name(), &State::NAMES);
            if let Some(built) = built {
                telemetry::projector_state(&generation::next_label(name), built.name(), &State::NAMES);
            }
        }
    }

    /// Publishes the gauges of every projector; called when metrics are scraped.
    pub async fn publish_gauges(&self) -> Result<()> {
        let statuses = self.statuses().await?;
        let now = self.clock.now();
        let since = |age_ms: i64| Timestamp(now.0 - age_ms);
        let told = statuses.iter().map(|status| Told {
            name: status.label(),
            lag_events: status.lag_events,
            oldest_behind: status.lag_age_ms.map(since),
            oldest: status.oldest_age_ms.map(since),
        });
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told.collect();
        {
            let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
            // What is built no longer is behind nothing.
            measured.iter().for_each(|name| telemetry::projector_lag(name, 0, 0.0, 0.0));
            measured.iter().for_each(|name| telemetry::parked_keys(name, parking::Counts::default()));
            measured.extend(statuses.iter().filter(|status| !status.is_live).map(Status::label));
        }
        self.publish_told();
        let nobodys = statuses.iter().filter(|status| status.state == State::Unregistered);
        let nobodys: BTreeSet<String> = nobodys.map(|status| status.name.clone()).collect();
        {
            let mut unregistered = self.unregistered.lock().unwrap_or_else(PoisonError::into_inner);
            for gone in unregistered.iter().filter(|name| !nobodys.contains(*name)) {
                telemetry::projector_state(gone, "forgotten", &State::NAMES);
                telemetry::projector_lag(gone, 0, 0.0, 0.0);
            }
            nobodys.iter().for_each(|name| telemetry::projector_state(name, State::Unregistered.name(), &State::NAMES));
            *unregistered = nobodys;
        }
        for status in statuses {
            telemetry::parked_keys(&status.label(), status.parked());
        }
        self.publish_rebuilds().await
    }

    /// The last rebuild of each projector that is known here.
    async fn publish_rebuilds(&self) -> Result<()> {
        let rebuilds = self.rebuilds().all().await?;
        for name in self.registered.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            if let Some(rebuild) = rebuilds.iter().find(|rebuild| rebuild.projector == *name) {
                telemetry::rebuild_state(name, rebuild.told_state(), rebuild::told_states());
            }
        }
        Ok(())
    }

    /// Publishes what is counted in the database, whichever process did it; called when metrics are scraped. What
    /// never came about is told as well: else nobody would see the first increase.
    pub async fn publish_counted(&self) -> Result<()> {
        let found = {
            let mut tx = self.db.read().await?;
            counted::all(&mut tx.conn()).await?
        };
        let mut told: BTreeMap<(Counted, String), u64> = BTreeMap::new();
        let names: Vec<&str> = self.registered.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect();
        let never = |what: Counted| move |label: &&str| ((what, (*label).to_owned()), 0);
        told.extend(audit::ACTIONS.iter().map(never(Counted::Actions)));
        told.extend(names.iter().map(never(Counted::DiscardedEvents)));
        told.extend(["done", "failed"].iter().map(never(Counted::Reconciliations)));
        told.extend([""].iter().map(never(Counted::RepairedEvents)));
        told.extend(found.into_iter().map(|(what, label, count)| ((what, label), count)));
        for ((what, label), count) in told {
            match what {
                Counted::Actions => telemetry::actions_noted(&label, count),
                Counted::DiscardedEvents => telemetry::events_discarded(&label, count),
                Counted::Reconciliations => telemetry::reconciliations_ended(&label, count),
                Counted::RepairedEvents => telemetry::reconciliation_repaired(count),
            }
        }
        Ok(())
    }

    /// Waits until every projector known here has dealt with all that was committed when it was called and
    /// no key waits for a retry. Answers whether that came about within `time_max`.
    pub async fn settle(&self, time_max: Duration) -> Result<bool> {
        let settled = async {
            self.log.relayed().await?;
            let ends = self.log.ends(self.parts()).await?;
            let mut commits = self.db.commits();
            loop {
                commits.mark_unchanged();
                let statuses = self.statuses().await?;
                let is_known = |status: &&Status| status.is_live && status.state != State::Unregistered;
                let mut known = statuses.iter().filter(is_known);
                if known.all(|status| status.has_reached(&ends)) {
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

    /// The parts of the log that some projector known here reads.
    fn parts(&self) -> BTreeSet<Part> {
        let registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        registered.values().flat_map(|registered| registered.parts.iter().cloned()).collect()
    }
}

/// The projector's name, without what follows it in an identity.
fn plain(identity: &str) -> &str {
    identity.split('@').next().unwrap_or(identity)
}

impl Status {
    /// Its name in metrics. Each rebuild has another number; metrics have one name for all of them.
    fn label(&self) -> String {
        if self.is_live { self.name.clone() } else { generation::next_label(plain(&self.name)) }
    }

    fn parked(&self) -> parking::Counts {
        let (redriving, dead) = (self.redriving_keys, self.dead_keys);
        parking::Counts { retrying: self.retrying_keys - redriving, redriving, dead }
    }

    /// Whether it has dealt with all up to `ends`, and no key waits for a retry.
    fn has_reached(&self, ends: &BTreeMap<Part, Offset>) -> bool {
        let has_reached =
            |part: &PartStatus| part.lag_events == 0 || ends.get(&part.part).is_none_or(|end| part.position >= *end);
        self.retrying_keys == 0 && self.parts.iter().all(has_reached)
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_what_is_built_is_not_that_of_what_is_read() {
        let (tasks, part) = (Tasks::default(), Part::outbox());
        assert_eq!(tasks.states(), (State::Waiting, None));
        tasks.set_live("p");
        tasks.of("p").set(&part, Live { state: State::Running, detail: None });
        assert_eq!(tasks.states(), (State::Running, None));
        tasks.of("p@2").set(&part, Live { state: State::Stopped, detail: None });
        assert_eq!(tasks.states(), (State::Running, Some(State::Stopped)));
        tasks.set_live("p@2");
        tasks.of("p").remove(&part);
        assert_eq!(tasks.states(), (State::Stopped, Some(State::Waiting)));
    }
}
