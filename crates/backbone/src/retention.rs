//! Old events, answers, audit and trails go, in small transactions, but never an event that somebody still needs:
//! a projector, where the outbox is the log; the relay, where it is not.

use std::time::Duration;

use tidings_event::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Conn, Db, Durability, Error, Result,
    db::Engine,
    limits::{AUDIT_BATCH_ROWS_MAX, RETENTION_BATCH_ROWS_MAX},
    log::{Offset, Part},
    projector::{Generation, generation, positions},
    telemetry,
};

/// What is kept, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long events stay readable; `None` keeps them for good.
    pub keep_events: Option<Duration>,
    /// How long a repeated `Idempotency-Key` is recognised.
    pub keep_answers: Duration,
    /// How long the audit is kept; `None` keeps it for good.
    pub keep_audit: Option<Duration>,
    /// How long it is kept when projectors passed what; nothing is kept where it is zero.
    pub keep_trail: Duration,
    /// Pause between rounds.
    pub round_gap: Duration,
    /// Projectors that must have a position before anything is removed, where the outbox is the log.
    pub projectors: Vec<&'static str>,
}

/// The part that runs the retention.
#[derive(Debug)]
pub struct Retention {
    db: Db,
    clock: Clock,
    options: Options,
    published: Option<Published>,
}

/// The number in the outbox up to which every event, also of transactions that were open when a
/// later number was published, is in the log: told by the relay from its checkpoint. `None` while
/// that is not known.
pub type Published = watch::Receiver<Option<Offset>>;

impl Retention {
    /// A retention that has not begun. On MySQL and MariaDB, where the outbox is not the log, it
    /// removes answers alone until it is told what is [`Retention::published`].
    pub fn new(db: Db, clock: Clock, options: Options) -> Self {
        Self { db, clock, options, published: None }
    }

    /// Removes events as far as the relay has published them.
    pub fn published(self, published: Published) -> Self {
        Self { published: Some(published), ..self }
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
        loop {
            let answers = self.remove_answers().await?;
            telemetry::retention_removed("answers", answers);
            if answers < RETENTION_BATCH_ROWS_MAX as u64 {
                break;
            }
        }
        while self.remove_audit().await? == AUDIT_BATCH_ROWS_MAX as u64 {}
        self.remove_trail().await?;
        let mut removed = 0;
        loop {
            let batch = self.remove_events().await?;
            telemetry::retention_removed("events", batch);
            removed += batch;
            if batch < RETENTION_BATCH_ROWS_MAX as u64 {
                return Ok(removed);
            }
        }
    }

    async fn remove_answers(&self) -> Result<u64> {
        let sql = match self.db.engine() {
            Engine::Sqlite => {
                "DELETE FROM idempotency_key WHERE (scope, idem_key) IN \
                 (SELECT scope, idem_key FROM idempotency_key WHERE created_at < ? LIMIT ?)"
            }
            // They refuse a LIMIT in a subquery, and SQLite one in a DELETE.
            Engine::Mysql | Engine::Mariadb => {
                "DELETE FROM idempotency_key WHERE created_at < ? ORDER BY created_at LIMIT ?"
            }
        };
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let args = vec![self.before(self.options.keep_answers).0.into(), (RETENTION_BATCH_ROWS_MAX as i64).into()];
        let removed = tx.conn().execute("removing old answers", sql, args).await?;
        tx.commit().await?;
        Ok(removed)
    }

    async fn remove_audit(&self) -> Result<u64> {
        let Some(keep) = self.options.keep_audit else { return Ok(0) };
        let sql = match self.db.engine() {
            Engine::Sqlite => {
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE created_at < ? ORDER BY created_at LIMIT ?)"
            }
            Engine::Mysql | Engine::Mariadb => "DELETE FROM audit WHERE created_at < ? ORDER BY created_at LIMIT ?",
        };
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let args = vec![self.before(keep).0.into(), (AUDIT_BATCH_ROWS_MAX as i64).into()];
        let removed = tx.conn().execute("removing old audit", sql, args).await?;
        tx.commit().await?;
        Ok(removed)
    }

    /// The trail before what was applied late, up to the same moment: an event must not be told at the time of
    /// its parking because only the other row is left.
    async fn remove_trail(&self) -> Result<()> {
        let before = self.before(self.options.keep_trail);
        for (table, at) in [("projector_trail", "left_at"), ("applied_late", "applied_at")] {
            let oldest = format!("{at} < ? ORDER BY {at} LIMIT ?");
            let sql = match self.db.engine() {
                Engine::Sqlite => format!(
                    "DELETE FROM {table} WHERE (projector, part, log_offset) IN \
                     (SELECT projector, part, log_offset FROM {table} WHERE {oldest})"
                ),
                Engine::Mysql | Engine::Mariadb => format!("DELETE FROM {table} WHERE {oldest}"),
            };
            loop {
                let mut tx = self.db.write(Durability::Rebuildable).await?;
                let args = vec![before.0.into(), (RETENTION_BATCH_ROWS_MAX as i64).into()];
                let removed = tx.conn().execute("removing an old trail", sql.clone(), args).await?;
                tx.commit().await?;
                if removed < RETENTION_BATCH_ROWS_MAX as u64 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes the oldest events as far as they are old and nobody needs them any more.
    async fn remove_events(&self) -> Result<u64> {
        let Some(keep) = self.options.keep_events else { return Ok(0) };
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let Some(passed) = self.passed(tx.conn()).await? else { return tx.rollback().await.map(|()| 0) };

        let doing = "removing old events";
        let sql = "SELECT seq, occurred_at FROM outbox WHERE seq <= ? ORDER BY seq LIMIT ?";
        let args = vec![passed.0.into(), (RETENTION_BATCH_ROWS_MAX as i64).into()];
        let rows = tx.conn().fetch(doing, sql, args).await?;
        // Up to the last old one of the batch: what was committed before it is as old, whatever time it claims.
        let before = self.before(keep);
        let mut last = None;
        for (count, row) in (1_i64..).zip(&rows) {
            if Timestamp(row.int(1)?) < before {
                last = Some((row.int(0)?, count));
            }
        }
        let Some((last, count)) = last else { return tx.rollback().await.map(|()| 0) };
        let removed = match self.db.engine() {
            Engine::Sqlite => tx.conn().execute(doing, "DELETE FROM outbox WHERE seq <= ?", vec![last.into()]).await?,
            // No more rows than were looked at, in the order in which everybody locks them.
            Engine::Mysql | Engine::Mariadb => {
                let sql = "DELETE FROM outbox WHERE seq <= ? ORDER BY seq LIMIT ?";
                tx.conn().execute(doing, sql, vec![last.into(), count.into()]).await?
            }
        };
        tx.commit().await?;
        Ok(removed)
    }

    /// The last event that nobody needs any more; `None` while that is not known.
    async fn passed(&self, mut conn: Conn<'_>) -> Result<Option<Offset>> {
        let engine = conn.engine();
        let live = generation::all(&mut conn).await?;
        let mut positions = positions(conn).await?;
        // Offsets in other logs say nothing of the outbox.
        positions.retain(|position| position.part == Part::outbox());
        let passed = positions.iter().map(|position| position.offset).min();
        Ok(match engine {
            Engine::Sqlite => {
                let live = |name: &str| live.get(name).copied().unwrap_or(Generation::FIRST).identity(name);
                let is_known = |name: &&str| positions.iter().any(|position| position.projector == live(name));
                passed.filter(|_| self.options.projectors.iter().all(is_known))
            }
            Engine::Mysql | Engine::Mariadb => {
                let published = self.published.as_ref().and_then(|published| *published.borrow());
                published.map(|published| passed.map_or(published, |passed| passed.min(published)))
            }
        })
    }

    fn before(&self, keep: Duration) -> Timestamp {
        let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.clock.now().0.saturating_sub(keep))
    }
}
