//! Trying parked keys again, each at its own pace and in the order of its events.

use std::time::Duration;

use rand::RngExt;

use super::apply::{Applier, later};
use crate::{
    Db, Durability, Result,
    limits::{PARKING_ROUND_EVENTS_MAX, PARKING_ROUND_KEYS_MAX},
    parking, telemetry,
};

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
    /// The gap after this many failed tries, or nothing when they are spent. Up to a quarter is
    /// added at random, so that keys that failed together do not come back together.
    pub(super) fn after(&self, failed: u32) -> Option<Duration> {
        if failed >= self.attempts_max {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << (failed - 1).min(20)).min(self.longest);
        #[expect(clippy::disallowed_methods, reason = "jitter decides nothing that a test or a replay must repeat")]
        let jitter = rand::rng().random_range(0.0..0.25);
        Some(doubled.mul_f64(1.0 + jitter))
    }
}

/// Tries every parked key that is due, one transaction a key.
pub(super) async fn retry_due(applier: &Applier<'_>, db: &Db) -> Result<()> {
    let name = applier.projector.name();
    let due = {
        let mut tx = db.read().await?;
        parking::due(&mut tx.conn(), name, applier.clock.now(), PARKING_ROUND_KEYS_MAX).await?
    };
    for key in due {
        retry_key(applier, db, &key).await?;
    }
    Ok(())
}

/// Applies as many of a key's waiting events as possible. When a run of them fails it is halved
/// towards its head, so that what precedes the culprit is applied and order is kept.
async fn retry_key(applier: &Applier<'_>, db: &Db, key: &str) -> Result<()> {
    let name = applier.projector.name();
    let mut tx = db.write(Durability::Rebuildable).await?;
    let mut conn = tx.conn();
    let now = applier.clock.now();
    let waiting = parking::waiting_if_due(&mut conn, name, key, now, PARKING_ROUND_EVENTS_MAX).await?;
    let Some((attempts, events)) = waiting else { return Ok(()) };

    // The head goes first and alone: it is the one whose attempts are counted.
    let mut run = events.len().min(1);
    let mut applied = 0;
    let mut failure = None;
    while run > 0 {
        match applier.attempt(&mut conn, &events[applied..applied + run]).await? {
            Ok(()) => {
                applied += run;
                run = events.len() - applied;
            }
            Err(_) if run > 1 => run /= 2,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    if applied > 0 || events.is_empty() {
        let last = applied.checked_sub(1).map(|index| events[index].offset).unwrap_or_default();
        parking::remove_applied(&mut conn, name, key, last, now).await?;
    }
    if let Some(error) = failure {
        // A later event that fails becomes the head with its first failure; the head itself adds to its own.
        let failed = if applied > 0 { 1 } else { attempts + 1 };
        let next = applier.gaps.after(failed).map(|gap| later(now, gap));
        parking::note_failure(&mut conn, name, key, failed, &error, next).await?;
        if next.is_none() {
            telemetry::key_dead(name);
            tracing::error!(projector = name, key, attempts = failed, error, "a key is dead: its attempts are spent");
        }
    }
    tx.commit().await?;
    applier.projector.committed(&events[..applied]).await;
    Ok(())
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
