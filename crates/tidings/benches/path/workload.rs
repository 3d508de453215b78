//! A database with users, and follows to make.

use std::{sync::Arc, time::Instant};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;
use tidings::{ledgers::Ledgers, store::Store};
use tidings_community::{
    UserId,
    relation::facts::{Change, Command},
    user::facts::Register,
};
use tidings_event::Metadata;

pub(crate) const USERS: i64 = 20_000;

/// An empty community of [`USERS`] users on a disk of its own folder.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) ledgers: Ledgers,
    pub(crate) folder: Arc<TempDir>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        // Beside the build, not in /tmp, which may be memory: a commit must meet a real disk.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let store = Store::open_embedded(folder.path()).await.unwrap();
        let (ledgers, running) = Ledgers::start(&store);
        // The ledgers live as long as the process.
        std::mem::forget(running);
        let bench = Self { store, ledgers, folder: Arc::new(folder) };
        let registers = (0..USERS).map(|id| Register {
            id: Some(user(id)),
            handle: format!("user-{id}").parse().unwrap(),
            metadata: Metadata::default(),
        });
        for answer in bench.ledgers.users.submit_all(registers).await {
            answer.unwrap().unwrap();
        }
        bench
    }
}

pub(crate) fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

/// Distinct follows, with celebrities: the followed are skewed towards low ids.
pub(crate) fn follows(count: usize, seed: u64) -> Vec<Command> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut seen = std::collections::HashSet::with_capacity(count);
    let mut commands = Vec::with_capacity(count);
    while commands.len() < count {
        let from = random.random_range(0..USERS);
        let skewed: f64 = random.random::<f64>().powi(3);
        let to = (skewed * USERS as f64) as i64;
        if from != to && seen.insert((from, to)) {
            let metadata = Metadata {
                request_id: Some(format!("bench-{}", commands.len())),
                user_agent: Some("tidings-bench/1".to_owned()),
                source_ip: Some("127.0.0.1".to_owned()),
                ..Metadata::default()
            };
            commands.push(Command { change: Change::Follow, from: user(from), to: user(to), metadata });
        }
    }
    commands
}

/// Units per second since `start`.
pub(crate) fn rate(units: usize, start: Instant) -> f64 {
    units as f64 / start.elapsed().as_secs_f64()
}
