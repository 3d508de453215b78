//! Rebuilds and reconciliations that are asked for in a wrong way.

use reqwest::Method;
use serde_json::json;
use tidings_testkit::{Kind, caller::sent, on_every_world};

use crate::world_on;

on_every_world!(
    a_wrong_parameter_of_a_rebuild_or_a_reconciliation_is_refused_and_named_and_begins_nothing,
    a_rebuild_and_a_reconciliation_that_nobody_knows_are_not_found,
);

/// What asks for a reconciliation or changes a rebuild, without a body.
const ACTIONS: [&str; 6] = [
    "/v1/admin/reconciliations",
    "/v1/admin/reconciliations/none/repair",
    "/v1/admin/rebuilds/relation/pause",
    "/v1/admin/rebuilds/relation/resume",
    "/v1/admin/rebuilds/relation/switch",
    "/v1/admin/rebuilds/relation/cancel",
];

async fn a_wrong_parameter_of_a_rebuild_or_a_reconciliation_is_refused_and_named_and_begins_nothing(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=2).await;
    let admin = world.admin().await;
    let list = "/v1/admin/reconciliations";
    for bad in ["", "x", "0", "101", "-1", "1.5", "%00", "%F0%9F%92%A5", "18446744073709551616"] {
        admin.get(&format!("{list}?limit={bad}")).await.is_bad("limit");
        admin.get(&format!("{list}?cursor={bad}")).await.is_bad("cursor");
    }
    for (path, field) in [
        ("?limit=1&limit=1", "limit"),
        ("?cursor=a&cursor=b", "cursor"),
        ("?projector=relation", "projector"),
        ("/none?limit=1", "limit"),
    ] {
        admin.get(&format!("{list}{path}")).await.is_bad(field);
    }
    let foreign = admin.read("/v1/admin/events?limit=1").await["next_cursor"].as_str().unwrap().to_owned();
    admin.get(&format!("{list}?cursor={foreign}")).await.is_bad("cursor");

    let post = |path: &str| admin.request(Method::POST, path);
    for action in ACTIONS {
        sent(post(&format!("{action}?forced=true"))).await.is_bad("forced");
        sent(post(action).header("idempotency-key", "a b")).await.is_bad("idempotency-key");
    }
    sent(post(&format!("{list}?projector=relation&projector=relation"))).await.is_bad("projector");
    let rebuild = "/v1/admin/rebuilds/relation";
    for pace in ["", "x", "-1", "4294967296"] {
        sent(post(&format!("{rebuild}/resume?events_per_second={pace}"))).await.is_bad("events_per_second");
    }
    sent(post(&format!("{rebuild}/switch?force=perhaps"))).await.is_bad("force");
    for read in [list, "/v1/admin/rebuilds", "/v1/admin/audit"] {
        assert_eq!(admin.read(read).await["items"], json!([]), "{read}");
    }
}

async fn a_rebuild_and_a_reconciliation_that_nobody_knows_are_not_found(kind: Kind) {
    let world = world_on(kind, &[]).await;
    let admin = world.admin().await;
    let long = "x".repeat(2_000);
    for name in ["none", "0", "%00", "%20", "%F0%9F%92%A5", "relation%20", "RELATION", "'%20OR%20''='", &long] {
        admin.get(&format!("/v1/admin/reconciliations/{name}")).await.is_problem(404, "not-found");
        for action in ["pause", "resume", "switch", "cancel"] {
            let path = format!("/v1/admin/rebuilds/{name}/{action}");
            sent(admin.request(Method::POST, &path)).await.is_problem(404, "not-found");
        }
        for path in [format!("?projector={name}"), format!("/{name}/repair")] {
            let path = format!("/v1/admin/reconciliations{path}");
            sent(admin.request(Method::POST, &path)).await.is_problem(404, "not-found");
        }
    }
    assert_eq!(admin.read("/v1/admin/audit").await["items"], json!([]));
}
