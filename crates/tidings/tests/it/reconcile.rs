//! The reconciliation as an operator meets it: by commands and by requests, on schedule never while a test looks.

use reqwest::Method;
use serde_json::{Value, json};
use tidings_testkit::{Kind, World, caller::sent, on_every_world};

use crate::{parked::with_poison, until_metric, world_on};

on_every_world!(
    an_operator_reconciles_by_command_line_and_api_and_sees_the_same_runs,
    what_waits_is_told_as_lagging_and_what_was_repaired_and_redriven_is_counted,
);

async fn done(world: &World, id: &Value) -> Value {
    let path = format!("/v1/admin/reconciliations/{}", id.as_str().unwrap());
    let waiting = async {
        loop {
            let run = world.admin().await.read(&path).await;
            if run["state"] != "running" {
                return run;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), waiting).await.expect("it should come to an end")
}

async fn an_operator_reconciles_by_command_line_and_api_and_sees_the_same_runs(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=10).await;
    for user in 2..=10 {
        world.user(user).await.follow(1).await;
    }
    world.drain().await;
    let admin = world.admin().await;
    let list = "/v1/admin/reconciliations";
    assert_eq!(admin.read(list).await["items"], json!([]));
    admin.get(&format!("{list}/none")).await.is_problem(404, "not-found");
    admin.post(&format!("{list}?projector=nobody"), &json!({})).await.is_problem(404, "not-found");

    let printed = world.run(&["reconcile", "--json"]).await;
    let by_command: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&by_command["state"], &by_command["differences"]), (&json!("done"), &json!(0)), "{by_command}");
    assert!(by_command["actor"].as_str().unwrap().starts_with("cli:"), "{by_command}");
    let checks: Vec<&str> =
        by_command["checks"].as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap()).collect();
    assert!(checks.contains(&"log") && checks.contains(&"relay") == (kind != Kind::Embedded), "{checks:?}");

    let post = || admin.request(Method::POST, list).header("idempotency-key", "once");
    let asked = sent(post()).await.json(202);
    assert_eq!(sent(post()).await.json(202)["id"], asked["id"], "the same request once more");
    let by_request = done(&world, &asked["id"]).await;
    assert_eq!((&by_request["state"], &by_request["trigger"]), (&json!("done"), &json!("operator")), "{by_request}");
    assert_eq!(by_request["repair"], json!({"state": "none", "events": 0, "repaired_at": null, "error": null}));
    let refused = admin.post(&format!("{list}/{}/repair", asked["id"].as_str().unwrap()), &json!({})).await;
    refused.is_problem(409, "reconciliation-refused");
    // Nobody is asked whether he means what would be refused.
    let refused = world.output(&["reconcile", "repair", asked["id"].as_str().unwrap()]).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(
        (refused.status.code(), said.contains("there is nothing to repair of this run")),
        (Some(2), true),
        "{said}"
    );

    let pages = admin.pages(list, 1).await;
    let ids: Vec<&Value> = pages.iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, [&asked["id"], &by_command["id"]]);
    assert!(pages[0]["checks"][0].get("examples").is_none(), "{}", pages[0]);
    let shown = world.run(&["reconcile", "show", by_command["id"].as_str().unwrap(), "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), by_command);
    let table = world.run(&["reconcile", "list"]).await;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(world.run(&["reconcile"]).await.contains("0 differences"));
    let unknown = world.output(&["reconcile", "show", "none"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(world.metric("tidings_reconciliation_age_seconds").await < 90.0);
    let runs = "tidings_reconciliation_runs_total{outcome=\"done\"} 3";
    for (part, page) in world.metrics().await {
        assert!(page.contains(runs), "{part:?} tells those of commands as well: {page}");
    }
}

/// Every process tells these lines.
async fn is_told(world: &World, lines: &[&str]) {
    for (part, page) in world.metrics().await {
        for line in lines {
            assert!(page.lines().any(|told| told == *line), "{part:?} tells {line}: {page}");
        }
    }
}

async fn what_waits_is_told_as_lagging_and_what_was_repaired_and_redriven_is_counted(kind: Kind) {
    // What user 4 does waits in the parking lot, three events.
    let (world, mut hand) = with_poison(kind, &[]).await;
    world.run(&["reconcile"]).await;
    let lagging = "tidings_reconciliation_lagging{check=\"relation.mirror\"} 3";
    let differences = "tidings_reconciliation_differences{check=\"relation.mirror\"} 0";
    is_told(&world, &[lagging, differences, "tidings_reconciliation_repaired_events_total 0"]).await;

    assert_eq!(hand.run("DELETE FROM follower WHERE from_user_id = 5").await, 1);
    assert_eq!(world.output(&["reconcile"]).await.status.code(), Some(1));
    is_told(&world, &[lagging, "tidings_reconciliation_differences{check=\"relation.mirror\"} 1"]).await;
    world.run(&["reconcile", "--repair"]).await;
    is_told(&world, &[lagging, differences, "tidings_reconciliation_repaired_events_total 1"]).await;

    assert_eq!(world.metric("tidings_redriven_events_total").await, 0.0);
    hand.admit().await;
    world.run(&["parked", "redrive", "--key", "4", "--yes"]).await;
    until_metric(&world, "tidings_redriven_events_total", |events| events == 3.0).await;
    world.drain().await;
    world.run(&["reconcile"]).await;
    let none = "tidings_reconciliation_lagging{check=\"relation.mirror\"} 0";
    is_told(&world, &[none, differences, "tidings_reconciliation_repaired_events_total 1"]).await;
    world.verify().await;
}
