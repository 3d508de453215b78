//! What the follow graph must do, in the plainest form: a map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidings_community::{
    Pair,
    relation::facts::{Change, Command, Outcome, Refusal},
};
use tidings_event::Timestamp;

use crate::world::{RowState, command, user};

/// Users of a generated graph are 1 to this; the next one is not registered.
pub(crate) const USERS: i64 = 5;

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) pairs: BTreeMap<Pair, RowState>,
    /// Type, pair, version and moment of each event.
    pub(crate) events: Vec<(&'static str, Pair, u64, i64)>,
}

impl Model {
    pub(crate) fn decide(&mut self, command: &Command, at: Timestamp) -> Result<Outcome, Refusal> {
        let pair = Pair { from: command.from, to: command.to };
        if pair.from == pair.to {
            return Err(Refusal::Yourself);
        }
        if let Some(unknown) = [pair.from, pair.to].into_iter().find(|id| id.get() > USERS) {
            return Err(Refusal::UnknownUser(unknown));
        }
        let (active, version, created, updated) = self.pairs.get(&pair).copied().unwrap_or((false, 0, at.0, 0));
        let wanted = command.change == Change::Follow;
        let changed = active != wanted;
        if changed {
            self.pairs.insert(pair, (wanted, version + 1, created, at.0));
            let event_type = if wanted { "relation.followed" } else { "relation.unfollowed" };
            self.events.push((event_type, pair, version as u64 + 1, at.0));
        }
        let since = if changed { at.0 } else { updated };
        Ok(Outcome {
            changed,
            following: wanted,
            version: (version + i64::from(changed)) as u64,
            followed_at: wanted.then_some(Timestamp(since)),
        })
    }

    pub(crate) fn decide_all(&mut self, commands: &[Command], at: Timestamp) -> Vec<Result<Outcome, Refusal>> {
        commands.iter().map(|command| self.decide(command, at)).collect()
    }

    /// How many `id` follows and how many follow him.
    pub(crate) fn counts(&self, id: i64) -> (u32, u32) {
        let active =
            |of: fn(&Pair) -> _| self.pairs.iter().filter(|(pair, row)| row.0 && of(pair) == user(id)).count() as u32;
        (active(|pair| pair.from), active(|pair| pair.to))
    }
}

/// Commands among few users, so that the same pairs come again and again.
pub(crate) fn commands(max: usize) -> impl Strategy<Value = Vec<Command>> {
    let one = (any::<bool>(), 1..=USERS + 1, 1..=USERS + 1)
        .prop_map(|(follows, from, to)| command(if follows { Change::Follow } else { Change::Unfollow }, from, to));
    proptest::collection::vec(one, 1..max)
}

/// Commands cut into batches at random.
pub(crate) fn batches() -> impl Strategy<Value = Vec<Vec<Command>>> {
    proptest::collection::vec(commands(12), 1..10)
}
