//! The follow graph in its plainest form: a map. What the product answers must be what it answers.

use std::collections::{BTreeSet, HashMap};

/// A user's id.
pub type User = u64;

/// A directed pair: who follows, and whom.
pub type Pair = (User, User);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// That the follow holds.
    Follow,
    /// That it does not.
    Unfollow,
}

/// What a change must be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether something changed.
    pub changed: bool,
    /// Whether the follow holds now.
    pub following: bool,
    /// How often the pair has changed: its version, unless it was stated anew.
    pub version: u64,
}

/// Every pair that ever changed. An ended follow stays, for its version.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pairs: HashMap<Pair, Outcome>,
}

impl Graph {
    /// Changes a pair.
    pub fn change(&mut self, change: Change, (from, to): Pair) -> Outcome {
        assert_ne!(from, to, "nobody follows himself");
        let before = self.state((from, to));
        let following = change == Change::Follow;
        let changed = before.following != following;
        let after = Outcome { changed, following, version: before.version + u64::from(changed) };
        if changed {
            self.pairs.insert((from, to), after);
        }
        after
    }

    /// The state of a pair; `changed` has no meaning here and is false.
    pub fn state(&self, pair: Pair) -> Outcome {
        let unknown = Outcome { changed: false, following: false, version: 0 };
        self.pairs.get(&pair).map_or(unknown, |known| Outcome { changed: false, ..*known })
    }

    /// Whom `user` follows.
    pub fn followings(&self, user: User) -> BTreeSet<User> {
        self.active().filter(|(from, _)| *from == user).map(|(_, to)| to).collect()
    }

    /// Who follows `user`.
    pub fn followers(&self, user: User) -> BTreeSet<User> {
        self.active().filter(|(_, to)| *to == user).map(|(from, _)| from).collect()
    }

    /// Every pair that ever changed, with its version: as many events as that must be in the log.
    pub fn versions(&self) -> HashMap<Pair, u64> {
        self.pairs.iter().map(|(pair, state)| (*pair, state.version)).collect()
    }

    fn active(&self) -> impl Iterator<Item = Pair> {
        self.pairs.iter().filter(|(_, state)| state.following).map(|(pair, _)| *pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_change_raises_the_version() {
        let mut graph = Graph::default();
        let mut change = |what| graph.change(what, (1, 2));
        assert_eq!(change(Change::Unfollow), Outcome { changed: false, following: false, version: 0 });
        assert_eq!(change(Change::Follow), Outcome { changed: true, following: true, version: 1 });
        assert_eq!(change(Change::Follow), Outcome { changed: false, following: true, version: 1 });
        assert_eq!(change(Change::Unfollow), Outcome { changed: true, following: false, version: 2 });
        assert!(graph.followers(2).is_empty());
        assert_eq!(graph.versions()[&(1, 2)], 2);
    }
}
