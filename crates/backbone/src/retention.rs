//! Old events and answers go, in small transactions, but never an event that a projector still needs.

use std::time::Duration;

use tidings_event::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Db, Durability, Error, Result, limits::RETENTION_BATCH_ROWS_MAX, log::Offset, projector::positions,
};

/// What is kept, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long events stay readable; `None` keeps them for good.
    pub keep_events: Option<Duration>,
    /// How long a repeated `Idempotency-Key` is recognised.
    pub keep_answers: Duration,
    /// Pause between rounds.
    pub round_gap: Duration,
    /// Projectors that must have a position before anything is removed.
    pub projectors: Vec<&'static str>,
}

/// The part that runs the retention.
#[derive(Debug)]
pub struct Retention {
    db: Db,
    clock: Clock,
    options: Options,
}

impl Retention {
    /// A retention that has not begun.
    pub fn new(db: Db, clock: Clock, options: Options) -> Self {
        Self { db, clock, options }
    }

    /// Runs until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(error = Error::chain(&error), "the retention will try again");
            }
            tokio::select! {
                () = tokio::time::sleep(self.options.round_gap) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Removes all that may go now; answers how many events went.
    pub async fn round(&self) -> Result<u64> {
        while self.remove_answers().await? == RETENTION_BATCH_ROWS_MAX as u64 {}
        let mut removed = 0;
        loop {
            let batch = self.remove_events().await?;
            removed += batch;
            if batch < RETENTION_BATCH_ROWS_MAX as u64 {
                return Ok(removed);
            }
        }
    }

    async fn remove_answers(&self) -> Result<u64> {
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let sql = "DELETE FROM idempotency_key WHERE (scope, idem_key) IN \
                   (SELECT scope, idem_key FROM idempotency_key WHERE created_at < ? LIMIT ?)";
        let args = vec![self.before(self.options.keep_answers).0.into(), (RETENTION_BATCH_ROWS_MAX as i64).into()];
        let removed = tx.conn().execute("removing old answers", sql, args).await?;
        tx.commit().await?;
        Ok(removed)
    }

    /// Removes the oldest events as far as they are old and every projector has passed them.
    async fn remove_events(&self) -> Result<u64> {
        let Some(keep) = self.options.keep_events else { return Ok(0) };
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let positions = positions(tx.conn()).await?;
        let all_known = self.options.projectors.iter().all(|name| positions.iter().any(|row| row.projector == *name));
        let passed = positions.iter().map(|position| position.offset).min();
        let (true, Some(passed)) = (all_known, passed) else { return tx.rollback().await.map(|()| 0) };

        let doing = "removing old events";
        let sql = "SELECT seq, occurred_at FROM outbox WHERE seq <= ? ORDER BY seq LIMIT ?";
        let args = vec![passed.0.into(), (RETENTION_BATCH_ROWS_MAX as i64).into()];
        let rows = tx.conn().fetch(doing, sql, args).await?;
        // The last old one of the batch: what was committed before it is as old, whatever time it claims.
        let before = self.before(keep);
        let mut last = None;
        for row in &rows {
            if Timestamp(row.int(1)?) < before {
                last = Some(Offset(row.int(0)?));
            }
        }
        let Some(last) = last else { return tx.rollback().await.map(|()| 0) };
        let removed = tx.conn().execute(doing, "DELETE FROM outbox WHERE seq <= ?", vec![last.0.into()]).await?;
        tx.commit().await?;
        Ok(removed)
    }

    fn before(&self, keep: Duration) -> Timestamp {
        let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.clock.now().0.saturating_sub(keep))
    }
}
