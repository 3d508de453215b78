//! Reading counters, with repair.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tidings_backbone::{Conn, Db, Durability, Result, db::Engine, projector::generation::keep_live};

use super::{
    Counters, Stored, first_changes_now, in_place, read_stored, recount,
    store::{self},
};
use crate::{
    UserId,
    limits::COUNTER_CHECK_EVERY_READS,
    relation::{
        generation::Of,
        hot::{Hot, KeptCounters},
        projection,
    },
    telemetry,
    user::read::exists,
};

/// Reads counters. A value that is missing, malformed or, in one read of some, found to differ
/// from its facts is recounted and stored before it is answered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CounterReader {
    db: Db,
    check_every: NonZeroU32,
    reads: Arc<AtomicU32>,
    hot: Option<Hot>,
}

/// What one snapshot says about a counter.
enum Look {
    Unknown,
    /// With the number of the user's changes, if there is one.
    Fine(Counters, Option<i64>),
    Wrong(Option<i64>),
}

impl CounterReader {
    /// A reader that checks every [`COUNTER_CHECK_EVERY_READS`]th read.
    pub fn new(db: Db) -> Self {
        Self::checking_every(db, NonZeroU32::new(COUNTER_CHECK_EVERY_READS).unwrap_or(NonZeroU32::MIN))
    }

    /// A reader that checks one read in `check_every`.
    pub fn checking_every(db: Db, check_every: NonZeroU32) -> Self {
        Self { db, check_every, reads: Arc::default(), hot: None }
    }

    /// The same, with counters kept in Redis. A read that checks goes past them.
    #[must_use]
    pub fn with_cache(self, hot: Hot) -> Self {
        Self { hot: Some(hot), ..self }
    }

    /// The counters of `user`; `None` for an unknown user.
    pub async fn read(&self, user: UserId) -> Result<Option<Counters>> {
        let checks = self.is_to_be_checked();
        let kept = match &self.hot {
            Some(hot) => Some((hot, hot.read_counters(user).await)),
            None => None,
        };
        if let Some((_, KeptCounters::Fresh { counters, .. })) = kept
            && !checks
        {
            return Ok(Some(counters));
        }
        let (counters, changes) = match self.look(user, checks).await? {
            Look::Unknown => return Ok(None),
            Look::Fine(counters, changes) => (counters, changes),
            Look::Wrong(changes) => (self.repair(user).await?, changes),
        };
        if let (Some((hot, kept)), Some(changes)) = (kept, changes)
            && let Some(at_ms) = kept.asked_at_ms()
        {
            hot.store_counters(user, counters, changes, at_ms).await;
        }
        Ok(Some(counters))
    }

    /// Reads the value and, if it is to be checked, its facts, in one snapshot: an event applied
    /// between two of them would look like drift.
    async fn look(&self, user: UserId, checks: bool) -> Result<Look> {
        let mut tx = self.db.read().await?;
        let mut conn = tx.conn();
        match stored(&mut conn, user).await? {
            None => {
                if !exists(&mut conn, user).await? {
                    return Ok(Look::Unknown);
                }
                // Nobody has followed or been followed yet, or else the row was lost.
                let counters = counted(&mut conn, user).await?;
                Ok(if counters == Counters::default() { Look::Fine(counters, None) } else { Look::Wrong(None) })
            }
            Some(Stored { counters: None, changes }) => {
                telemetry::counter_malformed(1);
                tracing::warn!(%user, "a counter's value is malformed; recounting");
                Ok(Look::Wrong(changes))
            }
            Some(Stored { counters: Some(counters), changes }) => {
                if checks && self.differs(&mut conn, user, counters).await? {
                    return Ok(Look::Wrong(changes));
                }
                Ok(Look::Fine(counters, changes))
            }
        }
    }

    fn is_to_be_checked(&self) -> bool {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        read % self.check_every == self.check_every.get() - 1
    }

    async fn differs(&self, conn: &mut Conn<'_>, user: UserId, stored: Counters) -> Result<bool> {
        let counted = counted(conn, user).await?;
        if counted == stored {
            return Ok(false);
        }
        telemetry::counter_drift(1);
        tracing::error!(%user, ?stored, ?counted, "a counter differs from its facts; repairing");
        Ok(true)
    }

    /// Recounts and stores, in one transaction. The number of the user's changes stays: lists that are kept at it are
    /// as right as before, and counters that are kept are believed for a second at most ([`super::super::hot`]).
    async fn repair(&self, user: UserId) -> Result<Counters> {
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let mut conn = tx.conn();
        let counters = match conn.engine() {
            Engine::Sqlite => {
                let counters = counted(&mut conn, user).await?;
                let changes = stored(&mut conn, user).await?.and_then(|stored| stored.changes);
                let live = keep_live(&mut conn, projection::NAME).await?;
                let changes = match changes {
                    Some(changes) => changes,
                    None => first_changes_now(&mut conn, live).await?,
                };
                store::write(&mut conn, live, std::iter::once((user, counters, Some(changes)))).await?;
                counters
            }
            Engine::Mysql | Engine::Mariadb => in_place::repair(&mut conn, user).await?,
        };
        tx.commit().await?;
        Ok(counters)
    }
}

async fn stored(conn: &mut Conn<'_>, user: UserId) -> Result<Option<Stored>> {
    Ok(read_stored(conn, Of::Live, &[user]).await?.remove(&user))
}

async fn counted(conn: &mut Conn<'_>, user: UserId) -> Result<Counters> {
    Ok(recount(conn, Of::Live, &[user]).await?.remove(&user).unwrap_or_default())
}
