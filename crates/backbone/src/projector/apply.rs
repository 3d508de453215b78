//! Applying a batch on a transaction, and finding the event at fault when it fails.

use std::{borrow::Cow, collections::HashSet, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;

use super::{ApplyError, Projector, generation::Lineage, retry::Gaps};
use crate::{
    Clock, Conn, Error, Result,
    error::panic_text,
    limits::{PROJECTOR_COMMITTED_TIME_MAX, REDRIVE_TIME_MAX},
    log::{Part, Recorded},
    parking::{self, Owner},
    telemetry, trace,
};

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The events that were applied.
    pub(super) events: Vec<Recorded>,
    /// The keys behind which others were appended, since they were parked already.
    pub(super) behind: HashSet<String>,
    /// What was parked, to be told once that is committed.
    pub(super) parked: Vec<Parked>,
}

/// An event that could not be applied, whose key is parked.
#[derive(Debug)]
pub(super) struct Parked {
    failed: Recorded,
    error: String,
    is_dead: bool,
}

/// Longer than any time for which a redriven key is made to wait.
pub(super) const REDRIVE_BEYOND: Duration = REDRIVE_TIME_MAX.saturating_mul(2);

/// What one projector needs to apply events.
pub(super) struct Applier<'a> {
    pub(super) projector: &'a dyn Projector,
    pub(super) lineage: &'a Lineage,
    pub(super) part: &'a Part,
    pub(super) gaps: &'a Gaps,
    pub(super) apply_time_max: Duration,
    pub(super) keeps_trail: bool,
    pub(super) clock: &'a Clock,
}

impl Applier<'_> {
    /// Whose parking lot it works with.
    pub(super) fn owner(&self) -> Owner<'_> {
        Owner { projector: &self.lineage.identity, part: self.part }
    }

    /// Which keys are due now.
    pub(super) fn due(&self) -> parking::Due {
        let now = self.clock.now();
        let redrive_horizon = later(now, REDRIVE_BEYOND);
        parking::Due { now, horizon: later(now, self.gaps.beyond()), redrive_horizon }
    }

    /// Applies a batch on `conn`: events of parked keys are appended behind them, and an event at
    /// fault parks its key. An error is never an event's own; the transaction must not commit.
    pub(super) async fn apply(&self, conn: &mut Conn<'_>, events: &[Recorded]) -> Result<Applied> {
        let keys = events.iter().map(|recorded| recorded.event.key.as_str());
        let behind = parking::parked_among(conn, self.owner(), keys).await?;
        let mut parked = behind.clone();
        let mut left = vec![Cow::Borrowed(events)];
        let (mut applied, mut failures) = (Vec::with_capacity(events.len()), Vec::new());
        while let Some(part) = left.pop() {
            let ready = if parked.is_empty() { part } else { self.append_parked(conn, &part, &parked).await?.into() };
            if ready.is_empty() {
                continue;
            }
            let Err(error) = self.attempt(conn, &ready).await? else {
                applied.extend_from_slice(&ready);
                continue;
            };
            if let [failed] = &*ready {
                failures.push(self.park(conn, failed, error).await?);
                parked.insert(failed.event.key.clone());
            } else {
                let (first, second) = ready.split_at(ready.len() / 2);
                left.push(second.to_vec().into());
                left.push(first.to_vec().into());
            }
        }
        Ok(Applied { events: applied, behind, parked: failures })
    }

    /// Tries a batch inside a savepoint. The inner error is an event's own, and nothing of the
    /// batch remains; the outer one says that the whole transaction must be tried again.
    pub(super) async fn attempt(&self, conn: &mut Conn<'_>, events: &[Recorded]) -> Result<Result<(), String>> {
        conn.savepoint().await?;
        let tried = self.call(conn, events).await?;
        match tried {
            Ok(()) => conn.release_savepoint().await?,
            Err(_) => conn.rollback_to_savepoint().await?,
        }
        Ok(tried)
    }

    /// Calls the projector. After an inner error something of the batch may remain.
    pub(super) async fn call(&self, conn: &mut Conn<'_>, events: &[Recorded]) -> Result<Result<(), String>> {
        let applied =
            AssertUnwindSafe(self.projector.apply(events, self.lineage.target(), conn.reborrow())).catch_unwind();
        match tokio::time::timeout(self.apply_time_max, applied).await {
            Ok(Ok(Ok(()))) => Ok(Ok(())),
            Ok(Ok(Err(ApplyError::Dependency(error)))) => Err(error),
            Ok(Ok(Err(ApplyError::Event(error)))) => Ok(Err(Error::chain(&*error))),
            Ok(Err(panic)) => Ok(Err(format!("the projector panicked: {}", panic_text(&*panic)))),
            // Which event it was is not found out while holding the write lock: the runtime tries fewer.
            Err(_) => Err(Error::ApplyTimedOut { events: events.len(), time: self.apply_time_max }),
        }
    }

    /// Appends the events of parked keys behind them; answers the others.
    async fn append_parked(
        &self,
        conn: &mut Conn<'_>,
        events: &[Recorded],
        parked: &HashSet<String>,
    ) -> Result<Vec<Recorded>> {
        let (behind, ready): (Vec<_>, Vec<_>) =
            events.iter().cloned().partition(|recorded| parked.contains(&recorded.event.key));
        parking::append(conn, self.owner(), &behind).await?;
        Ok(ready)
    }

    /// Parks the key of an event that was given its time alone and used it up.
    pub(super) async fn park_timed_out(
        &self,
        conn: &mut Conn<'_>,
        failed: &Recorded,
        error: &Error,
    ) -> Result<Applied> {
        let keys = std::iter::once(failed.event.key.as_str());
        let behind = parking::parked_among(conn, self.owner(), keys).await?;
        let mut parked = Vec::new();
        if behind.is_empty() {
            parked.push(self.park(conn, failed, Error::chain(error)).await?);
        } else {
            parking::append(conn, self.owner(), std::slice::from_ref(failed)).await?;
        }
        Ok(Applied { events: Vec::new(), behind, parked })
    }

    /// Tells the projector of a committed batch. Whatever it does then, the batch is committed.
    pub(super) async fn committed(&self, events: &[Recorded]) {
        if events.is_empty() || !self.lineage.is_live() {
            return;
        }
        let telling = AssertUnwindSafe(self.projector.committed(events)).catch_unwind();
        let failed = match tokio::time::timeout(PROJECTOR_COMMITTED_TIME_MAX, telling).await {
            Ok(Ok(())) => return,
            Ok(Err(panic)) => panic_text(&*panic),
            Err(_) => format!("no end within {} s", PROJECTOR_COMMITTED_TIME_MAX.as_secs()),
        };
        tracing::error!(projector = &*self.lineage.identity, error = failed, "a projector failed after its commit");
    }

    async fn park(&self, conn: &mut Conn<'_>, failed: &Recorded, error: String) -> Result<Parked> {
        let now = self.clock.now();
        let next = self.gaps.after(1).map(|gap| later(now, gap));
        parking::park(conn, self.owner(), failed, &error, now, next).await?;
        Ok(Parked { failed: failed.clone(), error, is_dead: next.is_none() })
    }

    /// Tells what was parked, after the commit: while commits fail the same is parked again and again.
    pub(super) fn tell_parked(&self, parked: &[Parked]) {
        for Parked { failed, error, is_dead } in parked {
            tracing::warn!(
                projector = &*self.lineage.identity,
                key = failed.event.key,
                event_id = %failed.event.id,
                event_type = failed.event.event_type,
                request_id = failed.event.metadata.request_id,
                traceparent = failed.event.metadata.traceparent,
                error,
                "an event could not be applied; its key is parked"
            );
            if self.lineage.is_live() {
                trace::failed(self.projector.name(), self.part, failed, error);
            }
            telemetry::key_parked(self.lineage.label());
            if *is_dead {
                telemetry::key_dead(self.lineage.label());
            }
        }
    }
}

pub(super) fn later(at: tidings_event::Timestamp, gap: Duration) -> tidings_event::Timestamp {
    tidings_event::Timestamp(at.0.saturating_add(i64::try_from(gap.as_millis()).unwrap_or(i64::MAX)))
}
