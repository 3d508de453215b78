//! The mirror of the follow graph is damaged and built anew while clients write and readers read, and whoever
//! builds it is killed on the way, twice and once more.
//!
//! By default the graph is generated; `TIDINGS_GRAPH=FILE` imports a real one in both directions, as in
//! `under_load.rs`, and `TIDINGS_TEST_BINARY=FILE` does so with another build of the program. How long it took is
//! printed.

use std::cell::Cell;

use futures::future::join;
use reqwest::Method;
use serde_json::Value;
use tidings_backbone::clock::Stopwatch;
use tidings_testkit::{Kind, Options, Part, World, caller::try_send, model::User, on_every_world, random};
use tokio::sync::Notify;

use super::{Togglers, progress, under_load::Import};
use crate::database::Hand;

const CLIENTS: u64 = 4;
/// Whose lists and counters are read: in any graph those that clients and damage change least.
const MOST_FOLLOWED: [&str; 3] = [
    "SELECT to_user_id FROM following GROUP BY to_user_id ORDER BY COUNT(*) DESC, to_user_id LIMIT 1",
    "SELECT to_user_id FROM following GROUP BY to_user_id ORDER BY COUNT(*) DESC, to_user_id LIMIT 1 OFFSET 1",
    "SELECT to_user_id FROM following GROUP BY to_user_id ORDER BY COUNT(*) DESC, to_user_id LIMIT 1 OFFSET 2",
];
/// Users of clients begin here, above those of any graph.
const FIRST_CLIENT: User = 10_000_001;

on_every_world!(a_rebuild_killed_twice_under_load_is_exact_and_no_read_fails);

async fn a_rebuild_killed_twice_under_load_is_exact_and_no_read_fails(kind: Kind) {
    let mut rng = random::generator("rebuild");
    let binary = std::env::var("TIDINGS_TEST_BINARY").unwrap_or_else(|_| crate::BINARY.to_owned());
    let options = Options::new(binary).on(kind);
    let options = if kind == Kind::Embedded { options } else { options.apart() };
    let options = options.with("rate.follow_capacity", 1_000_000).with("auth.access_token_minutes", 600);
    let world = World::start_with(options).await;
    let import = Import::chosen(world.scratch_folder(), &mut rng);
    let celebrities: Vec<User> = (1..=20).collect();
    world.register(1..=20).await;
    let mut togglers = Togglers::new(&world, FIRST_CLIENT..=FIRST_CLIENT + CLIENTS - 1, &celebrities, &mut rng).await;
    assert_eq!(import.run(&world, &Notify::new()).await, 0);
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    let follows = hand.number("SELECT COUNT(*) FROM following").await;
    let mut most_followed = Vec::new();
    for sql in MOST_FOLLOWED {
        most_followed.push(hand.number(sql).await.unsigned_abs());
    }

    // From the log, with damage that the check would find in the end; then once more from facts.
    for (damage, from) in [
        ("DELETE FROM follower WHERE from_user_id < 10000001 AND (from_user_id + to_user_id) % 7 = 3", "beginning"),
        ("DELETE FROM follower WHERE from_user_id < 10000001 AND (from_user_id + to_user_id) % 5 = 1", "facts"),
    ] {
        let lost = hand.run(damage).await;
        assert!(lost > 100, "{lost} rows of the mirror are lost");
        let begun = Stopwatch::start();
        let reads = Cell::new(0_u64);
        let storm = async |acknowledged: &_| {
            let ended = Cell::new(false);
            let building = async {
                build_and_kill(&world, kind, from, follows, acknowledged).await;
                ended.set(true);
            };
            join(building, read_all_the_while(&world, kind, &most_followed, &ended, &reads)).await;
        };
        togglers.toggle_during(storm).await;
        let (seconds, acknowledged, reads) = (begun.seconds(), *togglers.acknowledged.borrow(), reads.get());
        eprintln!("{kind:?}, from {from}: {follows} follows in {seconds:.1} s, {acknowledged} changes, {reads} reads");
        world.drain().await;
        togglers.everything_acknowledged_holds().await;
        assert_eq!(world.verify().await["differences"], 0);
        assert_eq!(world.parked().await.len(), 0);
    }
    assert_eq!(hand.number("SELECT COUNT(*) FROM follower WHERE generation < 3").await, 0);
    assert_eq!(hand.number("SELECT COUNT(*) FROM user_counter WHERE generation < 3").await, 0);
}

/// Kills what builds, all of it at once, and starts it anew.
async fn kill_builders(world: &World, kind: Kind) {
    if kind == Kind::Embedded {
        world.kill().await;
        world.start().await;
        return;
    }
    for part in [Part::Project(1), Part::Project(2), Part::Project(3)] {
        world.kill_part(part).await;
    }
    for part in [Part::Project(1), Part::Project(2), Part::Project(3)] {
        world.start_part(part, &[]).await;
    }
}

async fn status(world: &World) -> Value {
    let mut items = world.admin().await.read("/v1/admin/rebuilds").await["items"].take();
    items[0].take()
}

/// Waits until the rebuild is as wanted; it must not fail.
pub(super) async fn until(world: &World, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let status = status(world).await;
            assert_ne!(status["state"], "failed", "{status}");
            if wanted(&status) {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(300), waiting).await;
    match waited {
        Ok(status) => status,
        Err(_) => panic!("never {what}: {}", status(world).await),
    }
}

async fn build_and_kill(
    world: &World,
    kind: Kind,
    from: &str,
    follows: i64,
    acknowledged: &tokio::sync::watch::Sender<u64>,
) {
    progress(acknowledged, 20).await;
    // Some seconds long, so that it can be killed on its way.
    let limit = (follows / 4).to_string();
    let start = ["rebuild", "start", "relation", "--from", from, "--events-per-second", &limit];
    world.run(&start).await;
    for done in [0.1, 0.5] {
        let is_on_its_way = |status: &Value| {
            let is_seeded = from == "facts" && status["state"] != "wished" && status["state"] != "seeding";
            is_seeded || (status["state"] != "wished" && status["progress"].as_f64().unwrap() >= done)
        };
        until(world, "on its way", is_on_its_way).await;
        kill_builders(world, kind).await;
        progress(acknowledged, 20).await;
    }
    world.run(&["rebuild", "resume", "relation", "--events-per-second", "0"]).await;
    // Whoever is killed just after the switch removes what is old when he is back.
    until(world, "given to readers", |status| status["state"] == "removing" || status["state"] == "done").await;
    kill_builders(world, kind).await;
    let done = until(world, "done", |status| status["state"] == "done").await;
    assert_eq!(done["source"], if from == "facts" { "facts" } else { "log" }, "{done}");
    progress(acknowledged, 20).await;
}

/// Reads lists and counters until it is over. Where the API is another process than what is killed, no read fails;
/// and nobody ever sees a list of half a generation: a celebrity of the graph keeps nearly all his followers.
async fn read_all_the_while(world: &World, kind: Kind, users: &[User], ended: &Cell<bool>, reads: &Cell<u64>) {
    let reader = world.admin().await;
    let count = async |user: User| world.counters(user).await.1;
    let mut least = std::collections::BTreeMap::new();
    for &user in users {
        least.insert(user, count(user).await / 2);
    }
    while !ended.get() {
        for (user, least) in &least {
            for path in [format!("/v1/users/{user}/followers?limit=20"), format!("/v1/users/{user}/counters")] {
                let answer = match try_send(reader.request(Method::GET, &path)).await {
                    Ok(answer) if answer.status == 503 && kind == Kind::Embedded => continue,
                    Ok(answer) => answer.json(200),
                    Err(_gone) if kind == Kind::Embedded => {
                        world.is_up().await;
                        continue;
                    }
                    Err(error) => panic!("{path}: {error}"),
                };
                reads.set(reads.get() + 1);
                let found = match answer["followers"].as_u64() {
                    Some(followers) => followers,
                    None => answer["items"].as_array().unwrap().len() as u64,
                };
                assert!(found >= (*least).min(20), "{path}: {answer}");
            }
        }
    }
}
