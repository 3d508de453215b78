//! Reconciliation of the follow graph by the product as a whole: in one process, and in several with relay and log.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tidings_testkit::{Kind, Options, World, graph, on_every_world};

use crate::database::Hand;

on_every_world!(thousands_of_damaged_rows_are_found_exactly_and_repaired_while_clients_write);

/// Compares; answers what the command prints, a run a line.
async fn reconcile(world: &World, flags: &[&str]) -> Vec<Value> {
    let output = world.output(&[&["reconcile", "--projector", "relation", "--json"], flags].concat()).await;
    let told = String::from_utf8_lossy(&output.stderr);
    let runs = String::from_utf8(output.stdout).unwrap();
    let runs: Vec<Value> = runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!runs.is_empty() && runs.iter().all(|run| run["state"] == "done"), "{runs:?} {told}");
    runs
}

fn kinds(run: &Value, check: &str) -> Value {
    let checks = run["checks"].as_array().unwrap();
    checks.iter().find(|found| found["check"] == check).unwrap_or_else(|| panic!("no {check}: {run}"))["kinds"].clone()
}

/// Deletes, adds and changes a thousand rows of the mirror, and of the counters.
async fn damage(hand: &mut Hand) {
    let mirror = "to_user_id BETWEEN 6001 AND 6050 AND from_user_id BETWEEN";
    assert_eq!(hand.run(format!("DELETE FROM follower WHERE {mirror} 3001 AND 4000")).await, 1_000);
    let set = "rel_status = 0, version = version + 1";
    assert_eq!(hand.run(format!("UPDATE follower SET {set} WHERE {mirror} 4001 AND 5000")).await, 1_000);
    let rows: Vec<String> =
        (0..1_000).map(|at| format!("(1, {}, {}, {}, 1, 5, 5)", 6_001 + at % 50, 5_001 + at, at % 2)).collect();
    assert_eq!(hand.run(format!("INSERT INTO follower VALUES {}", rows.join(", "))).await, 1_000);

    assert_eq!(hand.run("DELETE FROM user_counter WHERE user_id <= 1000").await, 1_000);
    let (change, insert) = match hand {
        Hand::Sqlite(_) => ("checksum = checksum + 1", "x'00', 1, 1"),
        Hand::Mysql(_) => ("followings = -1", "-1, 2, 0, 0, 0, 1"),
    };
    let sql = format!("UPDATE user_counter SET {change} WHERE user_id BETWEEN 1001 AND 2000");
    assert_eq!(hand.run(sql).await, 1_000);
    let rows: Vec<String> = (2_001..=3_000).map(|id| format!("(1, {id}, {insert})")).collect();
    assert_eq!(hand.run(format!("INSERT INTO user_counter VALUES {}", rows.join(", "))).await, 1_000);
}

async fn thousands_of_damaged_rows_are_found_exactly_and_repaired_while_clients_write(kind: Kind) {
    let world = World::start_with(Options::new(crate::BINARY).on(kind).with("rate.follow_capacity", 1_000_000)).await;
    let of_counters = (1..=2_000).map(|from| (from, 7_000 + from % 50));
    let of_mirror = (3_001..=5_000).map(|from| (from, 6_001 + from % 50));
    let file = graph::write_csv(world.scratch_folder(), &of_counters.chain(of_mirror).collect::<Vec<_>>());
    world.run(&["import", "follows", file.to_str().unwrap()]).await;
    world.register(8_001..=8_010).await;
    world.drain().await;

    let world = Arc::new(world);
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (8_001..=8_010_u64)
        .map(|id| {
            let (world, is_over) = (Arc::clone(&world), Arc::clone(&is_over));
            tokio::spawn(async move {
                let user = world.user(id).await;
                let mut round = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    // Among themselves, and whom the damaged pairs concern.
                    let to = if round % 4 < 2 { 6_001 + (id + round / 4) % 50 } else { 8_001 + (id + 1) % 10 };
                    if round.is_multiple_of(2) {
                        user.follow(to).await
                    } else {
                        user.unfollow(to).await
                    };
                    round += 1;
                }
                round
            })
        })
        .collect();
    for _ in 0..2 {
        let run = reconcile(&world, &[]).await.remove(0);
        assert_eq!(run["differences"], 0, "no false alarm: {run}");
    }
    let mut hand = Hand::in_database_of(&world).await;
    damage(&mut hand).await;
    let run = reconcile(&world, &[]).await.remove(0);
    let of_mirror = json!({ "mirror row missing": 1_000, "mirror status": 1_000, "mirror row without fact": 1_000 });
    assert_eq!(kinds(&run, "relation.mirror"), of_mirror, "{run}");
    let of_counters = json!({ "counters missing": 1_000, "counters malformed": 2_000 });
    assert_eq!(kinds(&run, "relation.counters"), of_counters, "{run}");

    let runs = reconcile(&world, &["--repair"]).await;
    assert_eq!((&runs[0]["differences"], &runs[0]["repair"]["events"]), (&json!(6_000), &json!(6_000)), "{}", runs[0]);
    assert_eq!(runs[1]["differences"], 0, "{}", runs[1]);
    let run = reconcile(&world, &[]).await.remove(0);
    assert_eq!(run["differences"], 0, "no false alarm: {run}");
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.await.unwrap() > 10, "clients wrote all the time");
    }
    world.drain().await;
    assert_eq!(world.verify().await["differences"], 0);
    let run = reconcile(&world, &[]).await.remove(0);
    assert_eq!((&run["differences"], &run["lagging"]), (&json!(0), &json!(0)), "{run}");
}
