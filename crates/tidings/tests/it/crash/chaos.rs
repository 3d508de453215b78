//! Everything fails, one thing or several at a time, while clients follow and unfollow through two `api`: each
//! process of Tidings is killed and frozen, the database, Kafka and Redis are killed, frozen and restarted, their
//! connections are cut, and Redis forgets all. The servers are a set of the test's own.
//!
//! It is as long as it has faults, and unless it is told how many, they come one at a time:
//! `TIDINGS_CHAOS_FAULTS=200` makes it several minutes, with up to three at once. `TIDINGS_TEST_SEED` lets the
//! same faults come again, and `TIDINGS_TEST_WORLD=mysql` runs it on MySQL instead of MariaDB. What befell whom is
//! printed:
//!
//!     TIDINGS_CHAOS_FAULTS=200 cargo test -p tidings --test it -- --nocapture whatever_fails

mod fault;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use rand::{Rng as _, RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;
use tidings_backbone::clock::Stopwatch;
use tidings_testkit::{Kind, Options, World, model::Pair, random, servers::Servers};
use tokio::{sync::watch, time::timeout};

use self::fault::{AT_ONCE_MAX, Deck, Fault};
use super::{Published, Togglers, nothing_is_lost_or_doubled, progress};

/// Faults, unless the environment says how many.
const FAULTS: usize = 16;
const FAULTS_VARIABLE: &str = "TIDINGS_CHAOS_FAULTS";
const CLIENTS: u64 = 20;
/// Acknowledged changes between faults.
const GAP: std::ops::RangeInclusive<u64> = 5..=120;
/// However much is broken, the clients come on in this time once all runs again.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn whatever_fails_while_clients_write_nothing_is_lost_or_doubled() {
    let kind = Kind::distributed();
    let mut rng = random::generator("chaos");
    let servers = Servers::up("chaos", kind).await;
    let options = Options::new(crate::BINARY).on(kind).apart().on_servers(servers.addresses());
    let options = options.with("rate.follow_capacity", 1_000_000).with("auth.access_token_minutes", 600);
    let world = World::start_with(options).await;
    let mut togglers = Togglers::new(&world, 1..=CLIENTS, &[], &mut rng).await.half_with_keys();

    togglers.toggle_during(async |acknowledged: &_| storm(&world, &servers, acknowledged, &mut rng).await).await;
    eprintln!("chaos: {} changes acknowledged", *togglers.acknowledged.borrow());
    togglers.everything_acknowledged_holds().await;
    let users: Vec<u64> = (1..=CLIENTS).collect();
    nothing_is_lost_or_doubled(&world, &togglers.versions(), &users).await;
    each_event_is_in_the_log_once_and_in_order(&world, &togglers.versions()).await;
    eprintln!("chaos: verify: {} differences", world.verify().await["differences"]);
    drop(togglers);
    drop(world);
    servers.wipe().await;
}

/// Lets faults happen, some acknowledged changes apart.
async fn storm(world: &World, servers: &Servers, acknowledged: &watch::Sender<u64>, rng: &mut StdRng) {
    let given = std::env::var(FAULTS_VARIABLE).ok();
    let at_once_max = if given.is_some() { AT_ONCE_MAX } else { 1 };
    let mut left = given.map_or(FAULTS, |text| text.parse().expect("TIDINGS_CHAOS_FAULTS is a number"));
    let mut deck = Deck::new(world.capabilities().parts, at_once_max, StdRng::seed_from_u64(rng.next_u64()));
    let begun = Stopwatch::start();
    while left > 0 {
        comes_on(acknowledged, rng.random_range(GAP)).await;
        let faults = deck.deal(left);
        eprintln!("chaos: {:5.1} s, {} changes: {faults:?}", begun.seconds(), *acknowledged.borrow());
        Fault::all(&faults, world, servers).await;
        left -= faults.len();
    }
    comes_on(acknowledged, 100).await;
    eprintln!("chaos: {:5.1} s: everything runs again", begun.seconds());
}

async fn comes_on(acknowledged: &watch::Sender<u64>, more: u64) {
    let came = timeout(PATIENCE, progress(acknowledged, more)).await;
    came.unwrap_or_else(|_| panic!("{more} changes were not acknowledged in {PATIENCE:?}"));
}

/// The topic has the events of the outbox, each once, those of one key in one partition and in their order there.
pub(super) async fn each_event_is_in_the_log_once_and_in_order(world: &World, versions: &HashMap<Pair, u64>) {
    let id = |event: &Value| event["id"].as_str().unwrap().to_owned();
    let mut committed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in world.events(0).await.iter().filter(|event| event["aggregatetype"] == "relation") {
        let key = event["partitionkey"].as_str().unwrap().to_owned();
        committed.entry(key).or_default().push(id(event));
    }
    let seen = Arc::new(Mutex::new(Published::default()));
    let collected = Arc::clone(&seen);
    world.published("relation", move |record| collected.lock().unwrap().take(&record)).await;
    let Published { versions: published, keys, .. } = &*seen.lock().unwrap();
    assert!(*keys == committed, "{:?}", keys.iter().find(|(key, ids)| committed.get(*key) != Some(*ids)));
    assert!(published == versions, "the log has every acknowledged change");
    eprintln!("chaos: {} events in the log, each once", keys.values().map(Vec::len).sum::<usize>());
}
