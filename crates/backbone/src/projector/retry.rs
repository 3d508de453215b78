//! Trying parked keys again, each at its own pace and in the order of its events.

use std::time::Duration;

use rand::RngExt;

use super::apply::{Applier, later};
use crate::{
    Conn, Db, Durability, Error, Result,
    clock::Stopwatch,
    limits::{PARKING_ROUND_EVENTS_MAX, PARKING_ROUND_KEYS_MAX, PARKING_ROUND_TIME_MAX},
    log::Recorded,
    parking::{self, Waiting},
    telemetry,
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

/// Tries parked keys that are due, one transaction a key, for a limited time.
pub(super) async fn retry_due(applier: &Applier<'_>, db: &Db) -> Result<()> {
    let due = {
        let mut tx = db.read().await?;
        parking::due(&mut tx.conn(), applier.owner(), applier.due(), PARKING_ROUND_KEYS_MAX).await?
    };
    let stopwatch = Stopwatch::start();
    for key in due {
        retry_key(applier, db, &key).await?;
        if stopwatch.seconds() > PARKING_ROUND_TIME_MAX.as_secs_f64() {
            break;
        }
    }
    Ok(())
}

/// Applies as many of a key's waiting events as possible, in their order.
async fn retry_key(applier: &Applier<'_>, db: &Db, key: &str) -> Result<()> {
    let name = applier.projector.name();
    let now = applier.clock.now();
    let mut tx = db.write(Durability::Rebuildable).await?;
    let mut conn = tx.conn();
    let waiting =
        parking::waiting_if_due(&mut conn, applier.owner(), key, applier.due(), PARKING_ROUND_EVENTS_MAX).await?;
    let Some(Waiting { attempts, events, unreadable }) = waiting else { return Ok(()) };
    let mut tried = apply_in_order(applier, &mut conn, &events).await;
    if events.len() > 1 && matches!(tried, Err(Error::ApplyTimedOut { .. })) {
        // Whichever it was: the head goes alone, so that it answers for its own time only.
        tx.rollback().await?;
        tx = db.write(Durability::Rebuildable).await?;
        conn = tx.conn();
        tried = apply_in_order(applier, &mut conn, &events[..1]).await;
    }
    let (applied, failure) = match tried {
        Err(error @ Error::ApplyTimedOut { .. }) => {
            // The transaction is given up, since the late call may still be writing on it.
            tx.rollback().await?;
            tx = db.write(Durability::Rebuildable).await?;
            conn = tx.conn();
            (0, Some(Error::chain(&error)))
        }
        tried => tried?,
    };
    let unreadable = unreadable.filter(|_| applied == events.len());
    let failure = failure.or(unreadable.map(|error| Error::chain(&error)));
    if applied > 0 || failure.is_none() {
        let last = applied.checked_sub(1).map(|index| events[index].offset).unwrap_or_default();
        parking::remove_applied(&mut conn, applier.owner(), key, last, now).await?;
    }
    if let Some(error) = failure {
        // A later event that fails becomes the head with its first failure; the head itself adds to its own.
        let failed = if applied > 0 { 1 } else { attempts + 1 };
        let next = applier.gaps.after(failed).map(|gap| later(now, gap));
        parking::note_failure(&mut conn, applier.owner(), key, failed, &error, next).await?;
        if next.is_none() {
            telemetry::key_dead(name);
            tracing::error!(projector = name, key, attempts = failed, error, "a key is dead: its attempts are spent");
        }
    }
    tx.commit().await?;
    applier.committed(&events[..applied]).await;
    Ok(())
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
