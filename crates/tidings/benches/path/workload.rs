//! A community with users, and follows to make.

use std::{process::Command as Program, sync::Arc, time::Instant};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;
use tidings::{config, ledgers::Ledgers, store::Store};
use tidings_community::{
    UserId,
    relation::facts::{Change, Command},
    user::facts::Register,
};
use tidings_event::Metadata;
use tidings_testkit::{process::Process, world::Services};

use crate::place::Place;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_tidings");
pub(crate) const USERS: i64 = 20_000;
/// What is measured as a product has it, and not as a test of few rows.
const DEFAULTS_OF_TESTS: [&str; 3] = ["kafka.partitions", "database.writers_max", "database.readers_max"];

/// An empty community of [`USERS`] users: in a folder of its own, or in a database, topics and keys of its own.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) ledgers: Ledgers,
    pub(crate) folder: Arc<TempDir>,
    /// Where the services are, as the environment of a process says it.
    variables: Vec<(String, String)>,
    services: Option<Services>,
}

impl Bench {
    pub(crate) async fn new(place: Place) -> Self {
        // Beside the build, not in /tmp, which may be memory: a commit must meet a real disk.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let services = match place {
            Place::Embedded => None,
            Place::Distributed(engine) => Some(Services::new(engine, None).await),
        };
        let settings = services.iter().flat_map(Services::settings);
        let settings = settings.filter(|(key, _)| !DEFAULTS_OF_TESTS.contains(&key.as_str()));
        let mut variables: Vec<(String, String)> = settings
            .map(|(key, value)| (format!("TIDINGS__{}", key.to_uppercase().replace('.', "__")), value))
            .collect();
        variables.push(("TIDINGS__DATA__DIR".to_owned(), folder.path().to_str().unwrap().to_owned()));
        let store = Store::open(&config::load(None, variables.clone()).unwrap()).await.unwrap();
        let (ledgers, running) = Ledgers::start(&store);
        // The ledgers live as long as the process.
        std::mem::forget(running);
        let bench = Self { store, ledgers, folder: Arc::new(folder), variables, services };
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

    /// Starts a relay of this community, where there is something to relay: a process of its own, as in a product.
    pub(crate) fn relay(&self) -> Option<Process> {
        self.services.as_ref()?;
        let mut command = Program::new(BINARY);
        command.arg("relay").envs(self.variables.iter().cloned());
        let relay = Process::start(command, "there is no `tidings`");
        relay.line_containing("Tidings relay");
        Some(relay)
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
