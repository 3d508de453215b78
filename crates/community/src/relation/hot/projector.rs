//! The projector "relation" where something is kept in Redis: the same, and what is kept is brought
//! up to date after each commit.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use tidings_backbone::{
    Conn, Result,
    db::Engine,
    log::Recorded,
    projector::{ApplyError, Generation, Projector, Target, rebuild::Generations},
};
use tidings_event::EventId;

use super::{
    Hot,
    refresh::{Change, by_followed},
};
use crate::{
    UserId, limits,
    relation::{
        EVENT_TYPES, counters,
        generation::Of,
        projection::{self, RelationProjector, fold::Folded},
        rebuild::RelationGenerations,
    },
};

/// Keeps the mirror and the counters, and what is hot of them.
#[derive(Debug)]
pub struct RefreshingProjector {
    hot: Hot,
    /// What was applied and is not known to be committed.
    applied: Mutex<Vec<Applied>>,
}

/// One call of [`Projector::apply`]. Its transaction may still fail, and then its numbers mean nothing:
/// whoever applies one of its events again takes it away first.
#[derive(Debug)]
struct Applied {
    events: HashSet<EventId>,
    changes: Vec<Change>,
}

impl RefreshingProjector {
    pub(in crate::relation) fn new(hot: Hot) -> Self {
        Self { hot, applied: Mutex::default() }
    }

    /// Takes away what was applied of any of these events.
    fn take(&self, batch: &[Recorded]) -> Vec<Applied> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_batch = |applied: &Applied| batch.iter().any(|recorded| applied.events.contains(&recorded.event.id));
        applied.extract_if(.., |applied| is_of_batch(applied)).collect()
    }

    fn put(&self, entry: Applied) {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        if applied.len() >= limits::HOT_APPLIED_MAX {
            // Of transactions that failed and were not tried again here. Whatever it was: lists that are
            // not told of a change are not served.
            applied.remove(0);
        }
        applied.push(entry);
    }
}

#[async_trait]
impl Projector for RefreshingProjector {
    fn name(&self) -> &'static str {
        projection::NAME
    }

    fn event_types(&self) -> &'static [&'static str] {
        EVENT_TYPES
    }

    async fn apply(&self, batch: &[Recorded], target: Target, mut conn: Conn<'_>) -> Result<(), ApplyError> {
        if !target.is_live {
            // What is kept is of the generation that readers are given.
            return RelationProjector.apply(batch, target, conn).await;
        }
        drop(self.take(batch));
        let folded = projection::mirror_batch(batch, target.generation, &mut conn).await?;
        // Asked before the counters are locked, so that nobody waits for Redis.
        let users: Vec<UserId> = folded.deltas.keys().copied().collect();
        let kept = self.hot.kept_of(&users).await;
        let changes = count(&mut conn, target.generation, &folded, kept).await?;
        let events = batch.iter().map(|recorded| recorded.event.id).collect();
        self.put(Applied { events, changes });
        Ok(())
    }

    async fn committed(&self, batch: &[Recorded]) {
        for applied in self.take(batch) {
            self.hot.refresh(&applied.changes).await;
        }
    }

    fn generations(&self) -> Option<&dyn Generations> {
        Some(&RelationGenerations)
    }

    fn is_replayable(&self) -> bool {
        true
    }
}

/// Adds to the counters, and finds out which numbers that left of those `users` of whom something is kept.
async fn count(
    conn: &mut Conn<'_>,
    generation: Generation,
    folded: &Folded,
    users: Vec<UserId>,
) -> Result<Vec<Change>> {
    let of = Of::One(generation);
    let before = match conn.engine() {
        Engine::Sqlite => Some(counters::read_stored(conn, of, &users).await?),
        // Others may change a row until this transaction has; then it is one further than it was.
        Engine::Mysql | Engine::Mariadb => None,
    };
    counters::add(conn, generation, &folded.deltas, &folded.recounts).await?;
    let mut after = counters::read_stored(conn, of, &users).await?;
    let mut followers = by_followed(&folded.rows);
    let change = |user: UserId| {
        let stored = after.remove(&user)?;
        let after = stored.changes?;
        let before = match &before {
            Some(before) => before.get(&user)?.changes?,
            None => after.checked_sub(1)?,
        };
        let followers = followers.remove(&user).unwrap_or_default();
        Some(Change { user, before, after, counters: stored.counters?, followers })
    };
    Ok(users.into_iter().filter_map(change).collect())
}
