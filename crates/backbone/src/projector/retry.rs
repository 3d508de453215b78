//! Trying parked keys again, each at its own pace and in the order of its events.

use std::time::Duration;

use rand::RngExt;

use super::{
    apply::{Applier, later},
    position,
};
use crate::{
    Conn, Db, Durability, Error, Result, Tx,
    clock::Stopwatch,
    journey::trail,
    limits::{PARKING_ROUND_EVENTS_MAX, PARKING_ROUND_KEYS_MAX, PARKING_ROUND_TIME_MAX},
    log::{Offset, Recorded},
    parking::{self, State, Waiting},
    telemetry, trace,
};

/// Jitter is measured by no more than this, so that no gap overflows.
const LONGEST_JITTERED: Duration = Duration::from_hours(24);

/// The growing, jittered gaps between tries of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// Tries of an event before its key is dead, the first included.
    pub attempts_max: u32,
    /// Gap after the first failure; it doubles with each.
    pub first: Duration,
    /// No gap is longer.
    pub longest: Duration,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { attempts_max: 3, first: Duration::from_secs(1), longest: Duration::from_mins(5) }
    }
}

impl Gaps {
    /// Longer than any gap that is ever given.
    pub(super) fn beyond(&self) -> Duration {
        self.longest.saturating_mul(2)
    }

    /// The gap after this many failed tries, or nothing when they are spent. Up to a quarter is
    /// added at random, so that keys that failed together do not come back together.
    pub(super) fn after(&self, failed: u32) -> Option<Duration> {
        if failed >= self.attempts_max {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << (failed - 1).min(20)).min(self.longest);
        #[expect(clippy::disallowed_methods, reason = "jitter decides nothing that a test or a replay must repeat")]
        let jitter = rand::rng().random_range(0.0..0.25);
        Some(doubled.saturating_add(doubled.min(LONGEST_JITTERED).mul_f64(jitter)))
    }
}

/// Tries parked keys that are due, one transaction a key, for a limited time. Each ends with a look at the
/// position, which is to be at `at`: whoever has lost the part of the log to another process tries nothing there.
/// Answers how many keys were tried: none when others hold all of them.
pub(super) async fn retry_due(applier: &Applier<'_>, db: &Db, at: Offset) -> Result<usize> {
    let due = {
        let mut tx = db.read().await?;
        parking::due(&mut tx.conn(), applier.owner(), applier.due(), PARKING_ROUND_KEYS_MAX).await?
    };
    let stopwatch = Stopwatch::start();
    let mut tried = 0;
    for key in due {
        let retry = Retry { applier, db, at, key: &key };
        tried += usize::from(retry.run().await?);
        if stopwatch.seconds() > PARKING_ROUND_TIME_MAX.as_secs_f64() {
            break;
        }
    }
    Ok(tried)
}

/// One parked key that is due.
struct Retry<'a> {
    applier: &'a Applier<'a>,
    db: &'a Db,
    /// Where the position stands.
    at: Offset,
    key: &'a str,
}

/// What came of trying it.
enum Tried {
    /// It is not due any more, or somebody else holds it.
    Nothing,
    /// What could be applied was, and what failed was noted.
    Done,
    /// An event, or one of several, did not end in its time.
    TimedOut { head: Offset, error: Error },
}

impl Retry<'_> {
    /// Answers whether the key was tried.
    async fn run(&self) -> Result<bool> {
        match self.apply(PARKING_ROUND_EVENTS_MAX).await? {
            Tried::Nothing => return Ok(false),
            Tried::Done => return Ok(true),
            Tried::TimedOut { .. } => {}
        }
        // Whichever it was: the head goes alone, so that it answers for its own time only.
        if let Tried::TimedOut { head, error } = self.apply(1).await? {
            self.note_time_out(head, &error).await?;
        }
        Ok(true)
    }

    /// Applies as many of the key's waiting events as possible, in their order, at most `events_max`.
    async fn apply(&self, events_max: usize) -> Result<Tried> {
        let (applier, started) = (self.applier, self.applier.lineage.traced());
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let mut conn = tx.conn();
        let Some(waiting) = self.waiting(&mut conn, events_max).await? else { return Ok(Tried::Nothing) };
        let Waiting { attempts, events, unreadable, .. } = &waiting;
        let (applied, failure) = match apply_in_order(applier, &mut conn, events).await {
            // The transaction is given up, since the late call may still be writing on it.
            Err(error @ Error::ApplyTimedOut { .. }) => {
                tx.rollback().await?;
                let head = events.first().map(|head| head.offset).unwrap_or_default();
                return Ok(Tried::TimedOut { head, error });
            }
            tried => tried?,
        };
        let unreadable = unreadable.as_ref().filter(|_| applied == events.len());
        let failure = failure.or(unreadable.map(|error| Error::chain(error)));
        if applied > 0 || failure.is_none() {
            let last = applied.checked_sub(1).map(|index| events[index].offset).unwrap_or_default();
            let now = applier.clock.now();
            let next = later(now, after_events(applied, waiting.pace));
            parking::remove_applied(&mut conn, applier.owner(), self.key, last, next).await?;
            if applier.keeps_trail {
                trail::note_late(&mut conn, applier.owner(), &events[..applied], now).await?;
            }
        }
        let mut death = None;
        if let Some(error) = failure {
            // A later event that fails becomes the head with its first failure; the head itself adds to its own.
            let failed = if applied > 0 { 1 } else { attempts + 1 };
            death = self.note(&mut conn, waiting.state, failed, error).await?;
        }
        self.commit(tx, death).await?;
        trace::applied(applier.projector.name(), &[(applier.part, &events[..applied])], started);
        if waiting.state == State::Redriving {
            telemetry::events_redriven(applier.lineage.label(), applied);
        }
        applier.committed(&events[..applied]).await;
        Ok(Tried::Done)
    }

    async fn waiting(&self, conn: &mut Conn<'_>, events_max: usize) -> Result<Option<Waiting>> {
        parking::waiting_if_due(conn, self.applier.owner(), self.key, self.applier.due(), events_max).await
    }

    /// Notes that the head, alone, did not end in its time; unless somebody else has dealt with it meanwhile.
    async fn note_time_out(&self, head: Offset, error: &Error) -> Result<()> {
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let mut conn = tx.conn();
        let waiting = self.waiting(&mut conn, 1).await?;
        let Some(waiting) = waiting.filter(|waiting| waiting.events.first().is_some_and(|event| event.offset == head))
        else {
            return Ok(());
        };
        let death = self.note(&mut conn, waiting.state, waiting.attempts + 1, Error::chain(error)).await?;
        self.commit(tx, death).await
    }

    /// Notes a failed try of the head; answers whether it has killed the key. What an operator let be tried is dead
    /// at once.
    async fn note(&self, conn: &mut Conn<'_>, state: State, failed: u32, error: String) -> Result<Option<Death>> {
        let (key, now) = (self.key, self.applier.clock.now());
        let is_redriven = state == State::Redriving;
        let gap = if is_redriven { None } else { self.applier.gaps.after(failed) };
        let next = gap.map(|gap| later(now, gap));
        parking::note_failure(conn, self.applier.owner(), key, failed, &error, now, next).await?;
        let why = if is_redriven { "it was redriven and failed again" } else { "its attempts are spent" };
        Ok(next.is_none().then_some(Death { attempts: failed, error, why }))
    }

    /// Commits, and tells only then what it was that was committed.
    async fn commit(&self, mut tx: Tx, death: Option<Death>) -> Result<()> {
        position::hold_at(&mut tx.conn(), &self.applier.lineage.identity, self.applier.part, self.at).await?;
        tx.commit().await?;
        if let Some(Death { attempts, error, why }) = death {
            telemetry::key_dead(self.applier.lineage.label());
            let (projector, key) = (&*self.applier.lineage.identity, self.key);
            tracing::error!(projector, key, attempts, error, why, "a key is dead");
        }
        Ok(())
    }
}

/// A try has killed a key.
struct Death {
    attempts: u32,
    error: String,
    why: &'static str,
}

/// The time that so many events are to take.
fn after_events(count: usize, pace: Option<u32>) -> Duration {
    let millis = pace.map_or(0, |pace| (count as u64).saturating_mul(1_000) / u64::from(pace));
    Duration::from_millis(millis)
}

/// Applies events until one fails; answers how many were applied, and the failure. The head goes
/// first and alone: it is the one whose attempts are counted. A run that fails is halved towards
/// its head, so that what precedes the culprit is applied.
async fn apply_in_order(
    applier: &Applier<'_>,
    conn: &mut Conn<'_>,
    events: &[Recorded],
) -> Result<(usize, Option<String>)> {
    let mut run = events.len().min(1);
    let mut applied = 0;
    while run > 0 {
        match applier.attempt(conn, &events[applied..applied + run]).await? {
            Ok(()) => {
                applied += run;
                run = events.len() - applied;
            }
            Err(_) if run > 1 => run /= 2,
            Err(error) => return Ok((applied, Some(error))),
        }
    }
    Ok((applied, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_the_time_that_events_take() {
        assert_eq!(after_events(100, Some(50)), Duration::from_secs(2));
        assert_eq!(after_events(100, None), Duration::ZERO);
    }

    #[test]
    fn gaps_grow_to_their_limit_and_end_with_the_attempts() {
        let gaps = Gaps { attempts_max: 5, first: Duration::from_secs(1), longest: Duration::from_secs(3) };
        let within = |gap: Option<Duration>, seconds: f64| {
            let gap = gap.unwrap().as_secs_f64();
            assert!((seconds..seconds * 1.25).contains(&gap), "{gap} is not about {seconds}");
        };
        within(gaps.after(1), 1.0);
        within(gaps.after(2), 2.0);
        within(gaps.after(3), 3.0);
        within(gaps.after(4), 3.0);
        assert_eq!(gaps.after(5), None);
    }
}
