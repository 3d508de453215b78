//! Generated graphs, and graphs as files for the import.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use rand::{Rng, RngExt};

use crate::model::{Pair, User};

/// Follows among `users` users, numbered from 1: distinct, in random order, with a few celebrities
/// and a long tail, as graphs of people are.
pub fn with_celebrities(users: u64, follows: usize, rng: &mut impl Rng) -> Vec<Pair> {
    let mut seen = BTreeSet::new();
    let mut pairs = Vec::with_capacity(follows);
    while pairs.len() < follows {
        let from = rng.random_range(1..=users);
        // The cube crowds the low numbers: the first hundredth of the users has a fifth of the followers.
        let share = rng.random::<f64>().powi(3);
        let to = 1 + (share * users as f64) as u64;
        if from != to && to <= users && seen.insert((from, to)) {
            pairs.push((from, to));
        }
    }
    pairs
}

/// Everybody from `first` on, `count` of them, follows `center`.
pub fn star(center: User, first: User, count: u64) -> Vec<Pair> {
    (first..first + count).map(|from| (from, center)).collect()
}

/// Writes `follows` as `from,to` into `folder`, and answers the file.
pub fn write_csv(folder: &Path, follows: &[Pair]) -> PathBuf {
    let mut text = String::from("from,to\n");
    for (from, to) in follows {
        writeln!(text, "{from},{to}").unwrap();
    }
    let file = folder.join("follows.csv");
    std::fs::write(&file, text).unwrap();
    file
}
