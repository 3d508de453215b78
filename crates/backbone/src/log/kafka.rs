//! The log in Kafka, as its readers see it.

mod relayed;

pub(crate) use relayed::Noted;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidings_event::Timestamp;

use super::{Behind, Offset, Part};
use crate::{
    Db, Error, Result,
    kafka::{
        self,
        find::{Finder, Found, Wanted},
        peek::Peek,
        progress::Progress,
    },
    limits::{JOURNEY_TURN_TIME_MAX, OTHER_PROCESS_POLL_GAP},
    outbox,
    relay::{self, Checkpoint, Left},
    telemetry,
};

/// Topics of Kafka that hold what was committed to the outbox of a database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KafkaLog {
    db: Db,
    options: Arc<kafka::Options>,
    peek: Arc<Peek>,
    finder: Arc<Finder>,
    /// Held by whoever looks for an event.
    turn: Arc<tokio::sync::Mutex<()>>,
    progress: Arc<Progress>,
    known: Arc<Known>,
    /// Polling relays fill it: what is pending tells how far they are, and not a checkpoint.
    is_polled: bool,
}

/// What was last read of the relay's checkpoints.
#[derive(Debug, Default)]
struct Known {
    /// Nothing before the first answer of Kafka, and in it nothing before the first checkpoint.
    latest: Mutex<Option<Option<Checkpoint>>>,
    /// Whether somebody who measures is waiting for Kafka: those who come meanwhile do not.
    is_asked: AtomicBool,
    /// How many events were not relayed at the last look, and when the oldest of them occurred.
    unrelayed: Mutex<Option<(i64, Option<Timestamp>)>>,
}

/// How far the relay is, measured at the outbox and at its checkpoint: true also while it is dead.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relayed {
    /// Number of the last event of the outbox that is in the log; 0 before the first.
    pub published: Offset,
    /// Events committed and not yet in the log. More than some thousands are an estimate.
    pub behind: i64,
    /// When the oldest of them occurred. One that commits late, between numbers of which the relay knows in
    /// bulk that they have come ([`relay::Known`]), is not looked for here.
    pub oldest: Option<Timestamp>,
    /// The relay's checkpoint; `None` before its first one.
    pub checkpoint: Option<Checkpoint>,
}

impl KafkaLog {
    /// The log of the outbox in `db`, filled by the relay whose group is called like the topics'
    /// prefix. Nothing is connected yet.
    pub fn new(db: Db, options: kafka::Options) -> Self {
        let options = Arc::new(options);
        let peek = Arc::new(Peek::new(Arc::clone(&options)));
        let finder = Arc::new(Finder::new(Arc::clone(&options)));
        let progress = Arc::new(Progress::new(options.prefix.clone()));
        let turn = Arc::default();
        Self { db, options, peek, finder, turn, progress, known: Arc::default(), is_polled: false }
    }

    /// The same log, filled by the relay of this group.
    #[must_use]
    pub fn relayed_by(self, group: &str) -> Self {
        Self { progress: Arc::new(Progress::new(group.to_owned())), known: Arc::default(), ..self }
    }

    /// The same log, filled by polling relays.
    #[must_use]
    pub fn polled(self) -> Self {
        Self { is_polled: true, ..self }
    }

    /// Where Kafka is.
    pub fn options(&self) -> &kafka::Options {
        &self.options
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The topics in which events of these types are.
    pub(crate) fn topics(&self, event_types: &[&str]) -> BTreeSet<String> {
        let family = |event_type: &&str| event_type.split('.').next().unwrap_or_default().to_owned();
        event_types.iter().map(family).map(|family| self.options.topic(&family)).collect()
    }

    pub(crate) fn parts(&self, event_types: &[&str]) -> Vec<Part> {
        let topics = self.topics(event_types).into_iter().map(Arc::<str>::from);
        topics
            .flat_map(|topic| (0..self.options.partitions).map(move |number| Part { topic: topic.clone(), number }))
            .collect()
    }

    /// The part that events of a key come into, by where the relay sends them.
    pub(crate) fn part_of(&self, event_type: &str, key: &str) -> Part {
        let family = event_type.split('.').next().unwrap_or_default();
        let topic = self.options.topic(family).into();
        Part { topic, number: kafka::partition_of(key.as_bytes(), self.options.partitions) }
    }

    /// Looks for an event in the log, through a consumer of its own: who measures is not held up. Those who ask
    /// meanwhile wait for their turn and for no longer than [`JOURNEY_TURN_TIME_MAX`], and not on a thread.
    ///
    /// # Errors
    /// [`Error::SearchBusy`] when it is not their turn by then.
    pub(crate) async fn find(&self, wanted: Wanted) -> Result<Found> {
        let turn = Arc::clone(&self.turn).lock_owned();
        let turn = tokio::time::timeout(JOURNEY_TURN_TIME_MAX, turn).await.map_err(|_elapsed| Error::SearchBusy)?;
        let finder = Arc::clone(&self.finder);
        blocking(move || {
            let found = finder.find(&wanted);
            drop(turn);
            found
        })
        .await
    }

    /// Whether a part of the log still holds all that was appended to it at `at` or later.
    pub(crate) async fn reaches_back(&self, part: Part, at: Timestamp) -> Result<bool> {
        let peek = Arc::clone(&self.peek);
        blocking(move || peek.reaches_back(&part, at)).await
    }

    /// Whether the relay sets the rows of a key aside, because an earlier one is a dead letter.
    pub(crate) async fn is_set_aside(&self, key: &str) -> Result<bool> {
        Ok(self.checkpoints().await?.iter().any(|checkpoint| checkpoint.parked.contains(key)))
    }

    /// The keys whose rows the relay sets aside.
    pub(crate) async fn keys_set_aside(&self) -> Result<BTreeSet<String>> {
        let checkpoints = self.checkpoints().await?;
        Ok(checkpoints.iter().flat_map(|checkpoint| checkpoint.parked.iter()).map(str::to_owned).collect())
    }

    /// Whether the event with this number of the outbox is in the log; nothing where that is not known. It may
    /// say no of one that is, where the relay knows in bulk alone what has come ([`relay::Known`]).
    pub(crate) async fn has_published(&self, seq: Offset) -> Result<Option<bool>> {
        if self.is_polled {
            let left = self.left().await?;
            return Ok(left.filter(|(published, _)| *published >= seq).map(|_| true));
        }
        let checkpoint = self.checkpoint().await?;
        let number = u64::try_from(seq.0).unwrap_or_default();
        Ok(checkpoint.as_ref().and_then(relayed::seen).map(|seen| seen.contains(number)))
    }

    /// Waits until all that was committed before the call is in the log.
    pub(super) async fn wait_relayed(&self) -> Result<()> {
        let (head, executed) = {
            let mut tx = self.db.read().await?;
            let head = super::extent(&mut tx.conn()).await?.head;
            (head, relayed::executed(&mut tx.conn()).await?)
        };
        loop {
            if self.is_polled {
                let left = match self.left().await {
                    // The relay has made its table or its trigger meanwhile.
                    Err(error) if error.is_transient() => None,
                    left => left?,
                };
                if left.is_some_and(|(published, _)| published >= head) {
                    return Ok(());
                }
                tokio::time::sleep(OTHER_PROCESS_POLL_GAP).await;
                continue;
            }
            let checkpoint = self.checkpoint().await?;
            let mut tx = self.db.read().await?;
            if relayed::is_whole(&mut tx.conn(), checkpoint.as_ref(), head, &executed).await? {
                return Ok(());
            }
            drop(tx);
            tokio::time::sleep(OTHER_PROCESS_POLL_GAP).await;
        }
    }

    /// How far the relay is.
    pub async fn relayed(&self) -> Result<Relayed> {
        if let Some((published, left)) = self.left().await? {
            let oldest = left.first.map(|(_, at)| at);
            return Ok(Relayed { published, behind: left.rows, oldest, checkpoint: None });
        }
        // The checkpoint first: what is committed after it is behind it at most for this one look.
        let checkpoint = self.checkpoint().await?;
        self.relayed_to(checkpoint).await
    }

    async fn relayed_to(&self, checkpoint: Option<Checkpoint>) -> Result<Relayed> {
        let mut tx = self.db.read().await?;
        let head = super::extent(&mut tx.conn()).await?.head;
        let oldest = relayed::missing(&mut tx.conn(), checkpoint.as_ref(), head).await?;
        let published = checkpoint.as_ref().and_then(relayed::seen).map_or(0, |seen| seen.max);
        let published = Offset(i64::try_from(published).unwrap_or(i64::MAX));
        let behind = match oldest {
            Some(_) => relayed::behind(&mut tx.conn(), published, head).await?.max(1),
            None => 0,
        };
        Ok(Relayed { published, behind, oldest, checkpoint })
    }

    /// Publishes how much of the outbox is not in the log, and since when; called when metrics are scraped.
    /// Kafka has `time_max` to tell how far the relay is. What it told last is as good while it is away:
    /// nothing comes into the log then. Nothing is published before its first answer. Answers whether what is
    /// published is of now.
    pub async fn publish_gauges(&self, now: Timestamp, time_max: Duration) -> Result<bool> {
        let (relayed, is_of_now) = if self.is_polled {
            (self.relayed().await?, true)
        } else {
            let (latest, is_of_now) = self.latest_known(time_max).await;
            let Some(checkpoint) = latest else { return Ok(false) };
            (self.relayed_to(checkpoint).await?, is_of_now)
        };
        *self.unrelayed() = Some((relayed.behind, relayed.oldest));
        self.publish_told(now);
        Ok(is_of_now)
    }

    /// Publishes what was seen at the last look: while nobody can look, its age goes on growing.
    pub fn publish_told(&self, now: Timestamp) {
        let Some((behind, oldest)) = *self.unrelayed() else { return };
        telemetry::outbox_unrelayed(behind, oldest.map_or(0, |at| (now.0 - at.0).max(0)) as f64 / 1000.0);
    }

    fn unrelayed(&self) -> MutexGuard<'_, Option<(i64, Option<Timestamp>)>> {
        self.known.unrelayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the oldest event occurred that was not relayed at the last look of [`KafkaLog::publish_gauges`].
    pub(super) fn unrelayed_since(&self) -> Option<Timestamp> {
        self.unrelayed().and_then(|(_, oldest)| oldest)
    }

    /// The newest checkpoint that Kafka has told of, asked once more within `time_max`; and whether it answered.
    async fn latest_known(&self, time_max: Duration) -> (Option<Option<Checkpoint>>, bool) {
        let mut has_answered = false;
        if !self.known.is_asked.swap(true, Ordering::SeqCst) {
            let log = self.clone();
            let asking = tokio::spawn(async move {
                let answer = log.checkpoint().await.inspect_err(|error| {
                    tracing::debug!(error = Error::chain(error), "how far the relay is cannot be told");
                });
                log.known.is_asked.store(false, Ordering::SeqCst);
                answer.is_ok()
            });
            // Whoever comes later finds what it brings.
            has_answered = matches!(tokio::time::timeout(time_max, asking).await, Ok(Ok(true)));
        }
        (self.known.latest.lock().unwrap_or_else(PoisonError::into_inner).clone(), has_answered)
    }

    /// The number up to which every event is in the log, whatever was committed when: what retention
    /// must not pass. `None` while that is not known.
    pub async fn published(&self) -> Result<Option<Offset>> {
        if self.is_polled {
            return Ok(self.left().await?.map(|(published, _)| published));
        }
        let checkpoint = self.checkpoint().await?;
        Ok(checkpoint.as_ref().and_then(relayed::seen).map(|seen| Offset(relayed::whole(seen))))
    }

    /// Which numbers of the outbox are in the log for certain, as relays have noted it.
    pub(crate) async fn noted(&self) -> Result<Noted> {
        if !self.is_polled {
            return Ok(Noted::by(self.checkpoint().await?.as_ref()));
        }
        // What is committed late below the head is not pending yet.
        let steady = super::Log::Kafka(self.clone()).steady_head().await?;
        let mut tx = self.db.read().await?;
        let pending = relay::pending_up_to(&mut tx.conn(), steady).await?;
        Ok(pending.map_or_else(Noted::default, |(up_to, pending)| Noted::all_but(up_to, pending)))
    }

    /// Events that are not in the log and occurred before `late`, where all up to `published` are.
    pub(crate) async fn left_before(&self, published: Offset, late: Timestamp) -> Result<outbox::Old> {
        let mut tx = self.db.read().await?;
        match self.is_polled {
            true => relay::left_before(&mut tx.conn(), late).await,
            false => outbox::old_after(&mut tx.conn(), published, late).await,
        }
    }

    /// The number up to which polling relays have published everything, and what they have not; nothing
    /// before the first of them has run.
    async fn left(&self) -> Result<Option<(Offset, Left)>> {
        if !self.is_polled {
            return Ok(None);
        }
        let mut tx = self.db.read().await?;
        let left = relay::left(&mut tx.conn()).await?;
        // Of the same snapshot, so that what is committed meanwhile does not count as published.
        let head = super::extent(&mut tx.conn()).await?.head;
        Ok(left.map(|left| (left.first.map_or(head, |(first, _)| Offset(first - 1)), left)))
    }

    async fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        let (progress, options) = (Arc::clone(&self.progress), Arc::clone(&self.options));
        let latest = blocking(move || progress.latest(&options)).await?;
        *self.known.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(latest.clone());
        Ok(latest)
    }

    /// The last checkpoints of the relays: of the one that reads the binlog, or of each shard of those that poll.
    async fn checkpoints(&self) -> Result<Vec<Checkpoint>> {
        let (progress, options, is_polled) = (Arc::clone(&self.progress), Arc::clone(&self.options), self.is_polled);
        blocking(move || progress.active(&options, is_polled)).await
    }

    /// The last offset of each part, once all that stands there now is to be seen.
    pub(super) async fn ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        let wanted = parts.clone();
        let heads = self.look(move |peek| peek.uncommitted_ends(wanted)).await?;
        // Behind a transaction that has not ended nobody sees what others have committed since.
        loop {
            let parts = parts.clone();
            let ends = self.look(move |peek| peek.ends(parts)).await?;
            if heads.iter().all(|(part, head)| ends.get(part).is_some_and(|end| end >= head)) {
                return Ok(ends);
            }
            tokio::time::sleep(OTHER_PROCESS_POLL_GAP).await;
        }
    }

    pub(super) async fn earliest(&self, parts: Vec<Part>) -> Result<BTreeMap<Part, Offset>> {
        self.look(move |peek| peek.earliest(parts)).await
    }

    pub(super) async fn before(&self, parts: Vec<Part>, at: Timestamp) -> Result<BTreeMap<Part, Offset>> {
        self.look(move |peek| peek.before(parts, at)).await
    }

    /// Up to where each part holds no event behind these offsets, where that is further than they are.
    pub(crate) async fn clear(&self, reached: Vec<(Part, Offset)>) -> Result<BTreeMap<Part, Offset>> {
        self.look(move |peek| peek.clear(reached)).await
    }

    pub(super) async fn behind(&self, positions: Vec<(Part, Offset)>) -> Result<Vec<Behind>> {
        self.look(move |peek| peek.behind(positions)).await
    }

    async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Peek) -> Result<T> + Send + 'static) -> Result<T> {
        let peek = Arc::clone(&self.peek);
        blocking(move || look(&peek)).await
    }
}

async fn blocking<T: Send + 'static>(ask: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(ask)
        .await
        .unwrap_or_else(|error| Err(Error::Invariant { message: format!("looking at Kafka ended: {error}") }))
}
