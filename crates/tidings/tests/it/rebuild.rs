//! Rebuilds as an operator asks for them and sees them: the command line and the admin API alike.

use reqwest::Method;
use serde_json::{Value, json};
use tidings_testkit::{Kind, Options, World, caller::sent, on_every_world};

use crate::database::Hand;

on_every_world!(
    an_operator_rebuilds_by_command_line_and_api_and_the_audit_says_who,
    a_replay_in_place_is_told_as_one_and_only_what_can_be_done_with_it_is_asked_about,
);

const EARLIER: &str = "2020-01-01T00:00:00Z";
const LATER: &str = "2020-01-02T00:00:00Z";

async fn world(kind: Kind) -> World {
    let world = World::start_with(Options::new(crate::BINARY).on(kind)).await;
    world.register(1..=30).await;
    for user in 2..=30 {
        world.user(user).await.follow(1).await;
    }
    world.drain().await;
    world
}

/// Runs a command that does nothing and says this; answers all that it says.
async fn is_refused(world: &World, arguments: &[&str], why: &str) -> String {
    let refused = world.output(arguments).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains(why), "{arguments:?}: {said}");
    said
}

async fn until(world: &World, state: &str) -> Value {
    let waiting = async {
        loop {
            let printed = world.run(&["rebuild", "status", "--json"]).await;
            let status: Value = serde_json::from_str(&printed).unwrap();
            if status["rebuilds"][0]["state"] == state {
                return status["rebuilds"][0].clone();
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), waiting).await.expect("it should come to that")
}

async fn what_cannot_be_done_is_refused_before_anybody_is_asked(world: &World) {
    // A place that the log has not come to is none to begin at.
    let late = "2100-01-01T00:00:00Z";
    is_refused(world, &["rebuild", "start", "relation", "--from", late, "--in-place"], "yet to come").await;
    // The follow graph needs all of its history, and its check would find that out when all was built.
    let half = ["rebuild", "start", "relation", "--from", "2026-01-01T00:00:00Z", "--dry-run"];
    is_refused(world, &half, "lacks what was before").await;
    let half = json!({ "projector": "relation", "from": "2026-01-01T00:00:00Z" });
    world.admin().await.post("/v1/admin/rebuilds", &half).await.is_problem(409, "rebuild-refused");
    // No rate is no limit; a rate of nothing is none.
    is_refused(world, &["rebuild", "start", "relation", "--events-per-second", "0"], "--events-per-second").await;
    // What would be said to be done at once, with nothing applied, and a switch that never comes.
    let in_place = ["rebuild", "start", "relation", "--in-place"];
    let reversed = [&in_place[..], &["--from", LATER, "--until", EARLIER]].concat();
    is_refused(world, &reversed, "`--until` must not be before the place where it begins").await;
    is_refused(world, &[&in_place[..], &["--hold", "--dry-run"]].concat(), "`--hold` has no meaning in place").await;
    // Where there is none, nobody is asked whether it is meant.
    for asks in [&["rebuild", "cancel", "relation"][..], &["rebuild", "switch", "relation", "--force"]] {
        is_refused(world, asks, "no rebuild of it is under way").await;
    }
}

async fn an_operator_rebuilds_by_command_line_and_api_and_the_audit_says_who(kind: Kind) {
    let world = world(kind).await;
    let admin = world.admin().await;
    assert_eq!(admin.read("/v1/admin/rebuilds").await["items"], json!([]));
    let none = admin.post("/v1/admin/rebuilds/relation/pause", &json!({})).await;
    none.is_problem(409, "rebuild-refused");
    admin.post("/v1/admin/rebuilds", &json!({ "projector": "nobody" })).await.is_problem(404, "not-found");
    for (field, body) in [
        ("from", json!({ "projector": "relation", "from": "yesterday" })),
        ("fast", json!({ "projector": "relation", "fast": true })),
        ("events_per_second", json!({ "projector": "relation", "events_per_second": 0 })),
        ("hold", json!({ "projector": "relation", "in_place": true, "hold": true })),
        ("until", json!({ "projector": "relation", "in_place": true, "from": LATER, "until": EARLIER })),
    ] {
        admin.post("/v1/admin/rebuilds", &body).await.is_bad(field);
    }
    let would = admin.post("/v1/admin/rebuilds", &json!({ "projector": "relation", "dry_run": true })).await.json(200);
    assert_eq!((&would["generation"], &would["state"]), (&json!(2), &json!("wished")));
    assert_eq!(admin.read("/v1/admin/rebuilds").await["items"], json!([]), "it was only said");

    what_cannot_be_done_is_refused_before_anybody_is_asked(&world).await;
    // What was given up is not done.
    world.run(&["rebuild", "start", "relation", "--hold"]).await;
    until(&world, "ready").await;
    world.run(&["rebuild", "cancel", "relation", "--yes"]).await;
    let cancelled = until(&world, "cancelled").await;
    assert_eq!((&cancelled["progress"], &cancelled["forced"]), (&Value::Null, &json!(false)));

    world.run(&["rebuild", "start", "relation", "--hold", "--events-per-second", "100000"]).await;
    is_refused(&world, &["rebuild", "start", "relation"], "is under way").await;
    let ready = until(&world, "ready").await;
    assert_eq!((&ready["source"], &ready["held"]), (&json!("log"), &json!(true)));
    assert!(ready["report"].as_str().unwrap().ends_with("0 differences"), "{ready}");
    assert_eq!((&ready["progress"], &ready["events_done"]), (&json!(1.0), &ready["events_to_do"]), "{ready}");
    let lag: Value = serde_json::from_str(&world.run(&["lag", "--json"]).await).unwrap();
    let projectors = lag["projectors"].as_array().unwrap();
    let names: Vec<_> = projectors.iter().map(|projector| projector["projector"].as_str().unwrap()).collect();
    assert_eq!(names, ["relation", "relation@3"]);
    world.drain().await;

    // Nobody is there to be asked here.
    for asks in [&["rebuild", "cancel", "relation"][..], &["rebuild", "switch", "relation", "--force"]] {
        let said = is_refused(&world, asks, "needs `--yes`").await;
        assert!(said.contains("ready"), "{said}");
    }
    let switch = async |path: &str| {
        let request = admin.request(Method::POST, path).header("idempotency-key", "switch-1");
        sent(request).await
    };
    let switched = switch("/v1/admin/rebuilds/relation/switch").await.json(200);
    let done = until(&world, "done").await;
    let again = switch("/v1/admin/rebuilds/relation/switch").await.json(200);
    assert_eq!((&again["state"], &again["generation"]), (&switched["state"], &switched["generation"]), "as at first");
    switch("/v1/admin/rebuilds/relation/switch?force=true").await.is_problem(422, "idempotency-key-reused");
    assert_eq!(done["progress"], 1.0);
    assert!(world.run(&["rebuild", "status"]).await.contains("done"));
    assert_eq!(world.followers(1).await.len(), 29);
    world.user(1).await.follow(2).await;
    world.drain().await;
    assert_eq!(world.counters(1).await, (1, 29));
    assert_eq!(world.verify().await["differences"], 0);

    let items = admin.read("/v1/admin/audit").await["items"].take();
    let told: Vec<_> = items.as_array().unwrap().iter().map(|item| item["action"].as_str().unwrap()).collect();
    assert_eq!(told, ["rebuild.switch", "rebuild.start", "rebuild.cancel", "rebuild.start"]);
    assert!(items[1]["actor"].as_str().unwrap().starts_with("cli:"), "{items}");
}

async fn a_replay_in_place_is_told_as_one_and_only_what_can_be_done_with_it_is_asked_about(kind: Kind) {
    let world = world(kind).await;
    let said = world.run(&["rebuild", "start", "relation", "--in-place"]).await;
    assert!(said.starts_with("the rebuild of `relation`, generation 1, in place, begins"), "{said}");
    assert_eq!(until(&world, "done").await["in_place"], true);
    let status = world.run(&["rebuild", "status"]).await;
    assert!(status.contains("done, in place"), "{status}");

    world.run(&["rebuild", "start", "relation", "--in-place", "--events-per-second", "1"]).await;
    until(&world, "applying").await;
    // It has no switch: so nobody is asked whether to force it.
    is_refused(&world, &["rebuild", "switch", "relation", "--force"], "cannot be done while it is applying").await;
    let said = is_refused(&world, &["rebuild", "cancel", "relation"], "needs `--yes`").await;
    assert!(said.contains("applying, in place"), "what would be given up is shown: {said}");
    world.run(&["rebuild", "cancel", "relation", "--yes"]).await;
    until(&world, "cancelled").await;

    // What readers have cannot be taken from them.
    world.kill().await;
    let removing = "UPDATE rebuild SET state = 'removing' WHERE projector = 'relation'";
    assert_eq!(Hand::in_database_of(&world).await.run(removing).await, 1);
    is_refused(&world, &["rebuild", "cancel", "relation"], "cannot be done while it is removing").await;
}
