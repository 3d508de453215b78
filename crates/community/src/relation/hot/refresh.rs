//! Bringing what is kept up to date after a commit of the projector.

use std::collections::BTreeMap;

use tidings_backbone::Result;

use super::{
    Hot, ListName,
    counters::encode,
    list::{member, score},
};
use crate::{
    Pair, UserId, limits,
    relation::{counters::Counters, mirror::Mirrored},
    telemetry,
};

/// What one commit changed for one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) user: UserId,
    /// The number of his changes that the commit found.
    pub(super) before: i64,
    /// The number it left.
    pub(super) after: i64,
    /// The counters it left.
    pub(super) counters: Counters,
    /// His followers who came, anew or for the first time, and who went.
    pub(super) followers: Vec<(UserId, Mirrored)>,
}

/// The rows that changed, by who is followed.
pub(super) fn by_followed(rows: &BTreeMap<Pair, Mirrored>) -> BTreeMap<UserId, Vec<(UserId, Mirrored)>> {
    let mut followers: BTreeMap<UserId, Vec<_>> = BTreeMap::new();
    for (pair, row) in rows {
        followers.entry(pair.to).or_default().push((pair.from, *row));
    }
    followers
}

impl Change {
    /// The edits of the follower list as `refresh.lua` wants them; `None` when a score cannot have
    /// some moment.
    fn edits(&self) -> Option<Vec<u8>> {
        let mut edits = Vec::with_capacity(17 * self.followers.len());
        for (follower, row) in &self.followers {
            edits.push(if row.active { b'+' } else { b'-' });
            edits.extend(score(row.updated_at)?);
            edits.extend(member(*follower));
        }
        Some(edits)
    }
}

impl Hot {
    /// Those of `users` of whom anything is kept. Of the others there is nothing to bring up to date, and what is
    /// loaded of them from now on has its number from the database. Nobody, where Redis does not answer.
    pub(in crate::relation) async fn kept_of(&self, users: &[UserId]) -> Vec<UserId> {
        let mut kept = Vec::new();
        for users in users.chunks(limits::HOT_KEPT_USERS_MAX) {
            match self.try_kept_of(users).await {
                Ok(places) => kept.extend(places.into_iter().filter_map(|place| users.get(place).copied())),
                Err(error) => {
                    tracing::debug!(error = tidings_backbone::Error::chain(&error), "hot state was not looked for");
                    break;
                }
            }
        }
        kept
    }

    async fn try_kept_of(&self, users: &[UserId]) -> Result<Vec<usize>> {
        let mut call = self.0.kept.call();
        for user in users {
            call = call
                .key(self.list_key(ListName::Followers, *user))
                .key(self.list_key(ListName::Followings, *user))
                .key(self.counters_key(*user));
        }
        self.0.redis.call("looking for hot state", &call).await
    }

    /// Makes the changes where something is kept. What cannot be told here is not served later, since
    /// its number is old.
    pub(super) async fn refresh(&self, changes: &[Change]) {
        for changes in changes.chunks(limits::HOT_CALL_USERS_MAX) {
            if let Err(error) = self.try_refresh(changes).await {
                telemetry::hot_refresh("missed", changes.len());
                tracing::debug!(error = tidings_backbone::Error::chain(&error), "hot state was not brought up to date");
            } else {
                telemetry::hot_refresh("told", changes.len());
            }
        }
    }

    async fn try_refresh(&self, changes: &[Change]) -> Result<()> {
        let mut call = self.0.refresh.call();
        for change in changes {
            let Some(edits) = change.edits() else { continue };
            call = call
                .key(self.list_key(ListName::Followers, change.user))
                .key(self.list_key(ListName::Followings, change.user))
                .key(self.counters_key(change.user))
                .arg(change.before)
                .arg(change.after)
                .arg(&encode(change.counters, change.after))
                .arg(edits);
        }
        let call = call.arg(self.0.options.list_entries_max);
        self.0.redis.call("bringing hot state up to date", &call).await
    }
}
