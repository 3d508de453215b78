//! The big one: the server is killed thirty times at random moments while a graph is imported and
//! fifty clients toggle follows.
//!
//! By default the graph is generated. `TIDINGS_GRAPH=FILE` imports a real one in both directions
//! (CSV of two columns, gzipped or plain).

use std::{
    cell::Cell,
    collections::HashMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use futures::future::join;
use rand::{RngExt, rngs::StdRng};
use tidings_testkit::{
    World, graph,
    model::{Pair, User},
    random,
};
use tokio::{
    process::{Child, Command},
    sync::{Notify, watch},
};

use super::{Togglers, nothing_is_lost_or_doubled, progress};
use crate::world;

const KILLS: u32 = 30;
const CLIENTS: u64 = 50;
/// Users of the generated graph, and its follows.
const USERS: u64 = 2_000;
const FOLLOWS: usize = 20_000;
/// Users of clients begin here, above those of any graph.
const FIRST_CLIENT: User = 10_000_001;

/// What is imported.
pub(super) struct Import {
    file: PathBuf,
    mutual: bool,
    /// Its follows, where they are known.
    pub(super) follows: Option<Vec<Pair>>,
    /// Acknowledged changes between two kills.
    gap: std::ops::RangeInclusive<u64>,
    /// Every so many kills of the server the import is killed as well.
    kills_per_import_kill: u32,
}

impl Import {
    /// The graph that the environment names, or else a generated one.
    pub(super) fn chosen(folder: &Path, rng: &mut StdRng) -> Self {
        if let Some(file) = std::env::var_os("TIDINGS_GRAPH") {
            return Self { file: file.into(), mutual: true, follows: None, gap: 500..=4_000, kills_per_import_kill: 6 };
        }
        let follows = graph::with_celebrities(USERS, FOLLOWS, rng);
        let file = graph::write_csv(folder, &follows);
        Self { file, mutual: false, follows: Some(follows), gap: 5..=200, kills_per_import_kill: 2 }
    }

    fn start(&self, world: &World) -> Child {
        let mut arguments = vec!["import", "follows", self.file.to_str().unwrap(), "--batch", "100"];
        if self.mutual {
            arguments.push("--mutual");
        }
        let log = std::fs::File::options().create(true).append(true).open(self.log(world)).unwrap();
        let mut command = Command::from(world.command(&arguments));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn().unwrap()
    }

    fn log(&self, world: &World) -> PathBuf {
        world.scratch_folder().join("import.log")
    }

    /// Imports to the end, beginning again whenever it is told to die. Answers how often it was killed.
    pub(super) async fn run(&self, world: &World, die: &Notify) -> u32 {
        let mut killed = 0;
        loop {
            let mut import = self.start(world);
            tokio::select! {
                status = import.wait() => {
                    let said = || std::fs::read_to_string(self.log(world)).unwrap_or_default();
                    let status = status.unwrap();
                    assert!(status.success(), "import: {status}: {}", said());
                    return killed;
                }
                () = die.notified() => {
                    import.kill().await.unwrap();
                    killed += 1;
                }
            }
        }
    }
}

async fn kill_again_and_again(
    world: &World,
    acknowledged: &watch::Sender<u64>,
    import: &Import,
    rng: &mut StdRng,
    import_dies: &Notify,
) {
    for kill in 1..=KILLS {
        progress(acknowledged, rng.random_range(import.gap.clone())).await;
        if kill % import.kills_per_import_kill == 1 {
            import_dies.notify_one();
            progress(acknowledged, rng.random_range(import.gap.clone())).await;
        }
        world.kill().await;
        world.start().await;
    }
    progress(acknowledged, 50).await;
}

#[tokio::test]
async fn killed_thirty_times_while_a_graph_is_imported_and_fifty_clients_toggle_nothing_is_lost_or_doubled() {
    let mut rng = random::generator("crash under load");
    let world = world(&[("rate.follow_capacity", "1000000"), ("auth.access_token_minutes", "600")]).await;
    let import = Import::chosen(world.scratch_folder(), &mut rng);
    // The celebrities of the graph are known to be registered once they are registered here.
    let celebrities: Vec<User> = (1..=20).collect();
    world.register(1..=20).await;
    let clients = FIRST_CLIENT..=FIRST_CLIENT + CLIENTS - 1;
    let mut togglers = Togglers::new(&world, clients.clone(), &celebrities, &mut rng).await;

    let import_dies = Notify::new();
    let imported = Cell::new(0);
    let storm = async |acknowledged: &_| {
        let importing = async { imported.set(import.run(&world, &import_dies).await) };
        join(importing, kill_again_and_again(&world, acknowledged, &import, &mut rng, &import_dies)).await;
    };
    togglers.toggle_during(storm).await;
    eprintln!("{} changes acknowledged, the import killed {} times", *togglers.acknowledged.borrow(), imported.get());
    assert!(imported.get() > 0, "the import was killed on its way");

    togglers.everything_acknowledged_holds().await;
    let looked_at: Vec<User> = celebrities.into_iter().chain(clients).collect();
    let mut expected: HashMap<Pair, u64> = togglers.versions();
    match &import.follows {
        Some(follows) => expected.extend(follows.iter().map(|pair| (*pair, 1))),
        None => expected.extend(imported_follows(&world).await),
    }
    nothing_is_lost_or_doubled(&world, &expected, &looked_at).await;
    a_second_import_changes_nothing(&world, &import).await;
}

/// The follows of a real graph, as its users list them; each was made once.
async fn imported_follows(world: &World) -> HashMap<Pair, u64> {
    let events = world.events(0).await;
    let relations = events.iter().filter(|event| event["aggregatetype"] == "relation");
    let pair = |event: &serde_json::Value| {
        let (from, to) = event["subject"].as_str().unwrap().split_once(':').unwrap();
        (from.parse().unwrap(), to.parse().unwrap())
    };
    relations.map(pair).filter(|(from, _): &Pair| *from < FIRST_CLIENT).map(|pair| (pair, 1)).collect()
}

async fn a_second_import_changes_nothing(world: &World, import: &Import) {
    let head = world.head().await;
    assert_eq!(import.run(world, &Notify::new()).await, 0);
    assert_eq!(world.head().await, head, "a second import of the same file is no event");
}
