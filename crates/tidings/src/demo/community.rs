//! A community that grows like real ones: whoever has followers gets more.

use std::collections::HashSet;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tidings_community::{Pair, UserId};

/// Follows that a user begins with, at most; half of it on average.
const FIRST_FOLLOWS_MAX: u32 = 28;
/// Percent of follows that go to somebody whom others follow already, each the likelier the more do.
const POPULAR_PERCENT: u32 = 94;
/// Percent of follows that are answered with a follow.
const ANSWERED_PERCENT: u32 = 8;

/// Users and who follows whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Community {
    /// Users 1, 2, 3 and so on.
    pub users: Vec<UserId>,
    /// Each pair once, in the order in which they came about.
    pub follows: Vec<Pair>,
}

impl Community {
    /// Generates a community; the same for the same `users` and `seed`.
    pub fn generate(users: u32, seed: u64) -> Self {
        let users: Vec<UserId> = (1..=i64::from(users)).filter_map(|id| UserId::try_from(id).ok()).collect();
        let mut growth = Growth { random: StdRng::seed_from_u64(seed), follows: Vec::new(), seen: HashSet::new() };
        for count in 1..users.len() {
            growth.join(&users[..count], users[count]);
        }
        Self { users, follows: growth.follows }
    }
}

struct Growth {
    random: StdRng,
    follows: Vec<Pair>,
    seen: HashSet<Pair>,
}

impl Growth {
    /// `user` joins those who are there, and follows some of them.
    fn join(&mut self, there: &[UserId], user: UserId) {
        for _ in 0..self.random.random_range(1..=FIRST_FOLLOWS_MAX) {
            let is_to_popular = self.random.random_range(0..100) < POPULAR_PERCENT && !self.follows.is_empty();
            let to = if is_to_popular {
                // Somebody is the target of as many follows as he has followers.
                self.follows[self.random.random_range(0..self.follows.len())].to
            } else {
                there[self.random.random_range(0..there.len())]
            };
            self.add(Pair { from: user, to });
            if self.random.random_range(0..100) < ANSWERED_PERCENT {
                self.add(Pair { from: to, to: user });
            }
        }
    }

    fn add(&mut self, pair: Pair) {
        if pair.from != pair.to && self.seen.insert(pair) {
            self.follows.push(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_community() {
        assert_eq!(Community::generate(300, 7), Community::generate(300, 7));
        assert_ne!(Community::generate(300, 7), Community::generate(300, 8));
    }

    #[test]
    fn it_has_celebrities_and_a_long_tail() {
        let Community { users, follows } = Community::generate(super::super::USERS, super::super::SEED);
        let mut followers: HashMap<UserId, usize> = HashMap::new();
        for pair in &follows {
            *followers.entry(pair.to).or_default() += 1;
        }
        let mut counts: Vec<usize> = users.iter().map(|user| followers.get(user).copied().unwrap_or(0)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        println!("{} follows, {:?}", follows.len(), &counts[..12]);
        assert!((20_000..40_000).contains(&follows.len()), "{}", follows.len());
        assert!(counts[1] > 1_000, "{:?}", &counts[..10]);
        assert!(counts[users.len() / 2] < 30, "{}", counts[users.len() / 2]);
    }

    #[test]
    fn nobody_follows_himself_and_no_pair_comes_twice() {
        let follows = Community::generate(500, 3).follows;
        let distinct: HashSet<&Pair> = follows.iter().collect();
        assert_eq!(distinct.len(), follows.len());
        assert!(follows.iter().all(|pair| pair.from != pair.to));
    }

    #[test]
    fn small_communities_are_possible() {
        assert!(Community::generate(0, 1).users.is_empty());
        assert!(Community::generate(1, 1).follows.is_empty());
    }
}
