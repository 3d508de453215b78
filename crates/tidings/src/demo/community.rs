//! A community that grows like real ones: whoever has followers gets more.

use std::collections::{HashMap, HashSet};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tidings_community::{Pair, UserId};

/// Follows that a user begins with, at most; half of it on average.
const FIRST_FOLLOWS_MAX: u32 = 34;
/// Percent of follows that go to somebody whom others follow already, each the likelier the more do.
const POPULAR_PERCENT: u32 = 94;
/// Percent of those that go to the more popular of two; without, nobody would be a celebrity among so few.
const CELEBRITY_PERCENT: u32 = 40;
/// Percent of follows that are answered with a follow.
const ANSWERED_PERCENT: u32 = 8;

/// Users and who follows whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Community {
    /// Users 1, 2, 3 and so on. The first follows nobody.
    pub users: Vec<UserId>,
    /// Each pair once, in the order in which they came about.
    pub follows: Vec<Pair>,
}

impl Community {
    /// Generates a community; the same for the same `users` and `seed`.
    pub fn generate(users: u32, seed: u64) -> Self {
        let users: Vec<UserId> = (1..=i64::from(users)).filter_map(|id| UserId::try_from(id).ok()).collect();
        let mut growth = Growth {
            random: StdRng::seed_from_u64(seed),
            follows: Vec::new(),
            seen: HashSet::new(),
            followers: HashMap::new(),
        };
        for count in 1..users.len() {
            growth.join(&users[..count], users[count]);
        }
        Self { users, follows: growth.follows }
    }

    /// Whom most users follow.
    pub fn most_followed(&self) -> Option<UserId> {
        let mut followers = HashMap::<UserId, u32>::new();
        for pair in &self.follows {
            *followers.entry(pair.to).or_default() += 1;
        }
        followers.into_iter().max_by_key(|(user, count)| (*count, *user)).map(|(user, _)| user)
    }
}

struct Growth {
    random: StdRng,
    follows: Vec<Pair>,
    seen: HashSet<Pair>,
    followers: HashMap<UserId, u32>,
}

impl Growth {
    /// `user` joins those who are there, and follows some of them.
    fn join(&mut self, there: &[UserId], user: UserId) {
        for _ in 0..self.random.random_range(1..=FIRST_FOLLOWS_MAX) {
            let is_to_popular = !self.follows.is_empty() && self.happens(POPULAR_PERCENT);
            let to = if is_to_popular { self.popular() } else { there[self.random.random_range(0..there.len())] };
            self.add(Pair { from: user, to });
            // The first user is whoever tries the demo, and has yet to follow somebody.
            if self.happens(ANSWERED_PERCENT) && to != there[0] {
                self.add(Pair { from: to, to: user });
            }
        }
    }

    /// Somebody who has followers, each the likelier the more they are.
    fn popular(&mut self) -> UserId {
        let one = self.followed();
        if !self.happens(CELEBRITY_PERCENT) {
            return one;
        }
        let other = self.followed();
        if self.followers.get(&other) > self.followers.get(&one) { other } else { one }
    }

    /// The target of any follow: as many lead to a user as he has followers.
    fn followed(&mut self) -> UserId {
        self.follows[self.random.random_range(0..self.follows.len())].to
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn add(&mut self, pair: Pair) {
        if pair.from != pair.to && self.seen.insert(pair) {
            *self.followers.entry(pair.to).or_default() += 1;
            self.follows.push(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_community() {
        assert_eq!(Community::generate(300, 7), Community::generate(300, 7));
        assert_ne!(Community::generate(300, 7), Community::generate(300, 8));
    }

    #[test]
    fn it_has_celebrities_and_a_long_tail() {
        let community = Community::generate(super::super::USERS, super::super::SEED);
        let mut followers: HashMap<UserId, usize> = community.users.iter().map(|user| (*user, 0)).collect();
        for pair in &community.follows {
            *followers.entry(pair.to).or_default() += 1;
        }
        let celebrity = community.most_followed().unwrap();
        let mut counts: Vec<usize> = followers.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert!((28_000..33_000).contains(&community.follows.len()), "{}", community.follows.len());
        assert!(counts[2] > 1_000, "{:?}", &counts[..10]);
        assert!(counts[counts.len() / 2] < 10, "{}", counts[counts.len() / 2]);
        assert_eq!(followers[&celebrity], counts[0]);
    }

    #[test]
    fn nobody_follows_himself_and_no_pair_comes_twice() {
        let follows = Community::generate(500, 3).follows;
        let distinct: HashSet<&Pair> = follows.iter().collect();
        assert_eq!(distinct.len(), follows.len());
        assert!(follows.iter().all(|pair| pair.from != pair.to));
    }

    #[test]
    fn whoever_tries_the_demo_follows_nobody_yet() {
        let Community { users, follows } = Community::generate(500, 3);
        assert!(follows.iter().all(|pair| pair.from != users[0]));
    }

    #[test]
    fn small_communities_are_possible() {
        assert!(Community::generate(0, 1).users.is_empty());
        assert!(Community::generate(1, 1).follows.is_empty());
    }
}
