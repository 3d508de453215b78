//! A graph is imported beside processes of every role, one of each of which is killed on the way.
//!
//! By default the graph is generated; `TIDINGS_GRAPH=FILE` imports a real one in both directions, as in
//! `under_load.rs`, and `TIDINGS_TEST_BINARY=FILE` does so with another build of the program, such as a release. How
//! long it took, and how far what follows from it was behind, is printed.

use std::{
    cell::Cell,
    sync::{Arc, Mutex},
};

use futures::future::join;
use serde_json::Value;
use tidings_backbone::clock::Stopwatch;
use tidings_testkit::{Kind, Options, Part, World, random};
use tokio::sync::Notify;

use super::{Togglers, under_load::Import};
use crate::database::Hand;

const CLIENTS: u64 = 4;
/// Users of clients begin here, above those of any graph.
const FIRST_CLIENT: u64 = 10_000_001;

#[tokio::test]
async fn an_import_beside_which_one_process_of_each_role_is_killed_is_applied_whole_and_once() {
    let mut rng = random::generator("import apart");
    let binary = std::env::var("TIDINGS_TEST_BINARY").unwrap_or_else(|_| crate::BINARY.to_owned());
    let options = Options::new(binary).on(Kind::distributed()).apart();
    let options = options.with("rate.follow_capacity", 1_000_000).with("auth.access_token_minutes", 600);
    let world = World::start_with(options).await;
    let import = Import::chosen(world.scratch_folder(), &mut rng);
    let clients = FIRST_CLIENT..=FIRST_CLIENT + CLIENTS - 1;
    let mut togglers = Togglers::new(&world, clients, &[], &mut rng).await.half_with_keys();
    world.drain().await;

    let before = world.head().await;
    let begun = Stopwatch::start();
    let imported = Cell::new(false);
    let importing = async {
        assert_eq!(import.run(&world, &Notify::new()).await, 0);
        imported.set(true);
    };
    let storm = async |_: &_| join(importing, kill_one_of_each_role(&world, before, &begun, &imported)).await;
    togglers.toggle_during(storm).await;
    let seconds = begun.seconds();
    let events = world.head().await - before;
    eprintln!("import: {events} events in {seconds:.1} s, {:.0}/s, applied too", events as f64 / seconds);

    world.drain().await;
    togglers.everything_acknowledged_holds().await;
    let verified = world.verify().await;
    eprintln!("import: verify: {} facts, {} differences", verified["facts"], verified["differences"]);
    assert_eq!(world.parked().await.len(), 0);
    let mut hand = Hand::in_database_of(&world).await;
    assert_eq!(hand.uneven_pairs().await, 0);
    let committed = hand.number("SELECT COUNT(*) FROM outbox WHERE aggregate_type = 'relation'").await;
    assert_eq!(published_each_once(&world).await as i64, committed);
    if let Some(follows) = &import.follows {
        let facts = hand.number("SELECT COUNT(*) FROM following WHERE from_user_id < 10000001").await;
        assert_eq!(facts as usize, follows.len());
    }
}

/// Kills the first process of each role, the relay's being the one that works, each a step further on the way.
async fn kill_one_of_each_role(world: &World, before: u64, begun: &Stopwatch, imported: &Cell<bool>) {
    let steps: u64 = if std::env::var_os("TIDINGS_GRAPH").is_some() { 100_000 } else { 4_000 };
    let mut left = [Part::Project(1), Part::Relay(1), Part::Api(1)].into_iter().zip(1..);
    let mut next = left.next();
    let mut told = 0;
    while !imported.get() {
        let flow = world.admin().await.read("/v1/admin/flow").await;
        let head = flow["log"]["head"].as_u64().unwrap() - before;
        if head / steps > told {
            told = head / steps;
            let lag = |kind| stage(&flow, kind)["lag"].to_string();
            let seconds = begun.seconds();
            let (relay, projector) = (lag("relay"), lag("projector"));
            eprintln!("import: {seconds:5.1} s: {head} events, the relay {relay} behind, the projector {projector}");
        }
        if let Some((part, _)) = next.filter(|(_, step)| head > steps * step) {
            eprintln!("import: {:5.1} s: kill {part:?}", begun.seconds());
            world.kill_part(part).await;
            world.start_part(part, &[]).await;
            next = left.next();
        }
    }
    assert_eq!(next, None, "each was killed while the import ran");
}

fn stage<'f>(flow: &'f Value, kind: &str) -> &'f Value {
    flow["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == kind).unwrap()
}

/// How many events the topic has; each pair's versions in order, without a gap or a repeat.
async fn published_each_once(world: &World) -> u64 {
    let seen = Arc::new(Mutex::new(super::Published::default()));
    let collected = Arc::clone(&seen);
    world.published("relation", move |record| collected.lock().unwrap().take(&record)).await;
    let seen = seen.lock().unwrap();
    seen.versions.values().sum()
}
