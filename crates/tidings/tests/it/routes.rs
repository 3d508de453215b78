//! A walk through the router: every route there is has an expectation here, and a route that has
//! none fails the walk.

mod garbage;
mod health;
mod operator;
mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tidings::http::{Access, routes};
use tidings_testkit::{Answer, Caller, Kind, World, caller::sent, on_every_world};

use crate::{world, world_on};

/// Who may call each route. Whoever adds a route says here who may.
const EXPECTED: &[(&str, &str, Access)] = &[
    ("PUT", "/v1/me/following/{user_id}", Access::Me),
    ("DELETE", "/v1/me/following/{user_id}", Access::Me),
    ("GET", "/v1/me/relations", Access::Me),
    ("GET", "/v1/users/{user_id}/following", Access::Member),
    ("GET", "/v1/users/{user_id}/followers", Access::Member),
    ("GET", "/v1/users/{user_id}/following/common", Access::Member),
    ("GET", "/v1/users/{user_id}/counters", Access::Member),
    ("GET", "/v1/users/{user_id}", Access::Member),
    ("GET", "/v1/users", Access::Member),
    ("POST", "/v1/admin/users", Access::Admin),
    ("GET", "/v1/admin/flow", Access::Admin),
    ("GET", "/v1/admin/events", Access::Admin),
    ("GET", "/v1/admin/events/{event_id}", Access::Admin),
    ("GET", "/v1/admin/events/{event_id}/journey", Access::Admin),
    ("GET", "/v1/admin/parked", Access::Admin),
    ("GET", "/v1/admin/parked/events", Access::Admin),
    ("POST", "/v1/admin/parked/redrive", Access::Admin),
    ("POST", "/v1/admin/parked/discard", Access::Admin),
    ("GET", "/v1/admin/audit", Access::Admin),
    ("GET", "/v1/admin/rebuilds", Access::Admin),
    ("POST", "/v1/admin/rebuilds", Access::Admin),
    ("POST", "/v1/admin/rebuilds/{projector}/pause", Access::Admin),
    ("POST", "/v1/admin/rebuilds/{projector}/resume", Access::Admin),
    ("POST", "/v1/admin/rebuilds/{projector}/switch", Access::Admin),
    ("POST", "/v1/admin/rebuilds/{projector}/cancel", Access::Admin),
    ("GET", "/v1/admin/reconciliations", Access::Admin),
    ("POST", "/v1/admin/reconciliations", Access::Admin),
    ("GET", "/v1/admin/reconciliations/{run_id}", Access::Admin),
    ("POST", "/v1/admin/reconciliations/{run_id}/repair", Access::Admin),
    ("GET", "/metrics", Access::Admin),
    ("GET", "/health/live", Access::Open),
    ("GET", "/health/ready", Access::Open),
    ("GET", "/v1/openapi.json", Access::Open),
    ("GET", "/problems/{name}", Access::Open),
    ("GET", "/.well-known/jwks.json", Access::Open),
    ("POST", "/console/session", Access::Open),
    ("DELETE", "/console/session", Access::Open),
    ("GET", "/console/session", Access::Open),
    ("GET", "/", Access::Open),
    ("GET", "/login", Access::Open),
    ("GET", "/console/{*path}", Access::Open),
    ("GET", "/v1/docs", Access::Open),
    ("GET", "/v1/docs/", Access::Open),
    ("GET", "/v1/docs/{*path}", Access::Open),
];

/// What each state-changing route does to the log.
const EFFECTS: &[(&str, &str, Effect)] = &[
    ("PUT", "/v1/me/following/{user_id}", Effect::OneEvent("relation.followed")),
    ("DELETE", "/v1/me/following/{user_id}", Effect::OneEvent("relation.unfollowed")),
    ("POST", "/v1/admin/users", Effect::OneEvent("account.registered")),
    // What an operator does with events makes none.
    ("POST", "/v1/admin/parked/redrive", Effect::NoEvent),
    ("POST", "/v1/admin/parked/discard", Effect::NoEvent),
    ("POST", "/v1/admin/rebuilds", Effect::NoEvent),
    ("POST", "/v1/admin/rebuilds/{projector}/pause", Effect::NoEvent),
    ("POST", "/v1/admin/rebuilds/{projector}/resume", Effect::NoEvent),
    ("POST", "/v1/admin/rebuilds/{projector}/switch", Effect::NoEvent),
    ("POST", "/v1/admin/rebuilds/{projector}/cancel", Effect::NoEvent),
    // Events are written by whoever does what was asked for, where something differs.
    ("POST", "/v1/admin/reconciliations", Effect::NoEvent),
    ("POST", "/v1/admin/reconciliations/{run_id}/repair", Effect::NoEvent),
    // A login is no fact of the community.
    ("POST", "/console/session", Effect::NoEvent),
    ("DELETE", "/console/session", Effect::NoEvent),
];

#[derive(Clone, Copy)]
enum Effect {
    OneEvent(&'static str),
    NoEvent,
}

/// The path of a template, for a world in which users 1 and 2 are registered.
fn filled(template: &str) -> String {
    let query = match template {
        "/v1/me/relations" => "?ids=1,2",
        "/v1/users" => "?handle=u1",
        "/v1/admin/parked/events" => "?projector=relation&key=1",
        "/v1/users/{user_id}/following/common" => "?with=2",
        _ => "",
    };
    let path = template
        .replace("{user_id}", "2")
        .replace("{event_id}", "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c")
        .replace("{run_id}", "no-such-run")
        .replace("{name}", "not-found")
        .replace("{projector}", "relation")
        .replace("/console/{*path}", "/console/icon.svg")
        .replace("{*path}", "swagger-ui.css");
    assert!(!path.contains('{'), "{template}: say here what its parameters are filled with");
    path + query
}

/// The request that a route's own caller makes, with a query behind the path.
fn request(caller: &Caller<'_>, method: &str, template: &str, query: &str) -> RequestBuilder {
    let path = filled(template) + query;
    let request = caller.request(Method::from_bytes(method.as_bytes()).unwrap(), &path);
    match (method, template) {
        ("POST", "/v1/admin/users") => request.json(&json!({ "user_id": "3", "handle": "u3" })),
        ("POST", "/v1/admin/rebuilds") => request.json(&json!({ "projector": "relation", "dry_run": true })),
        ("POST", "/v1/admin/parked/redrive") => request.json(&json!({ "all": true })),
        ("POST", "/v1/admin/parked/discard") => {
            request.json(&json!({ "projector": "relation", "key": "1", "offset": 1, "reason": "poison" }))
        }
        ("POST", "/console/session") => request.json(&json!({ "link": "no-such-link" })),
        _ => request,
    }
}

async fn call(caller: &Caller<'_>, method: &str, template: &str) -> Answer {
    sent(request(caller, method, template, "")).await
}

#[tokio::test]
async fn every_route_has_an_expectation_and_every_expectation_a_route() {
    let named = |access| format!("{access:?}");
    let declared: BTreeSet<(String, String, String)> =
        routes().into_iter().map(|route| (route.method.to_owned(), route.path, named(route.access))).collect();
    let expected: BTreeSet<(String, String, String)> = EXPECTED
        .iter()
        .map(|(method, path, access)| ((*method).to_owned(), (*path).to_owned(), named(*access)))
        .collect();
    assert_eq!(declared, expected);

    let changing: BTreeSet<(&str, &str)> =
        EXPECTED.iter().filter(|route| route.0 != "GET").map(|route| (route.0, route.1)).collect();
    let with_effect: BTreeSet<(&str, &str)> = EFFECTS.iter().map(|effect| (effect.0, effect.1)).collect();
    assert_eq!(changing, with_effect, "every state-changing route says what event it leaves");
}

async fn every_route_admits_those_it_is_for_and_nobody_else(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=2).await;
    let (nobody, user, admin) = (world.nobody(), world.user(1).await, world.admin().await);
    let forged = world.bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInJvbGVzIjpbImFkbWluIl19.");
    for (method, path, access) in EXPECTED {
        let place = format!("{method} {path}");
        if *access == Access::Open {
            let answer = call(&nobody, method, path).await;
            let login_asks = path == &"/console/session" && answer.status == 401;
            assert!(answer.status < 400 || login_asks, "{place}: {} {}", answer.status, answer.text);
            continue;
        }
        for caller in [&nobody, &forged] {
            let answer = call(caller, method, path).await;
            answer.is_problem(401, "unauthenticated");
            assert!(answer.header("www-authenticate").starts_with("Bearer "), "{place}");
        }
        let (user_status, admin_status) = (call(&user, method, path).await, call(&admin, method, path).await);
        let refused = |answer: &Answer| answer.is_problem(403, "forbidden");
        // Where the one event asked for is not there, or no rebuild, the caller was admitted all the same.
        let admitted =
            |answer: &Answer| assert!([200, 201, 202, 404, 409].contains(&answer.status), "{place}: {answer:?}");
        match access {
            Access::Me => (admitted(&user_status), refused(&admin_status)),
            Access::Member => (admitted(&user_status), admitted(&admin_status)),
            Access::Admin => (refused(&user_status), admitted(&admin_status)),
            Access::Open => unreachable!("answered above"),
        };
    }
}

on_every_world!(
    every_route_admits_those_it_is_for_and_nobody_else,
    every_state_changing_route_leaves_one_event_if_something_changed_and_none_if_not,
);

async fn every_state_changing_route_leaves_one_event_if_something_changed_and_none_if_not(kind: Kind) {
    let world = world_on(kind, &[]).await;
    world.register(1..=2).await;
    let (user, admin) = (world.user(1).await, world.admin().await);
    for (method, path, effect) in EFFECTS {
        let caller = if path.starts_with("/v1/me/") { &user } else { &admin };
        for expected in [true, false] {
            let head = world.head().await;
            let answer = call(caller, method, path).await;
            let events = world.events(head).await;
            let types: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
            match effect {
                Effect::OneEvent(event_type) if expected => {
                    assert_eq!(
                        (answer.json(answer.status)["changed"].clone(), types),
                        (json!(true), vec![&json!(event_type)])
                    );
                }
                Effect::OneEvent(_) => {
                    assert_eq!(
                        (answer.json(200)["changed"].clone(), types.len()),
                        (json!(false), 0),
                        "{method} {path}"
                    );
                }
                Effect::NoEvent => assert_eq!(types.len(), 0, "{method} {path}"),
            }
        }
    }
}

#[tokio::test]
async fn a_misspelt_parameter_keeps_every_state_changing_route_from_changing_anything() {
    let world = world(&[]).await;
    world.register(1..=2).await;
    let (user, admin) = (world.user(1).await, world.admin().await);
    let head = world.head().await;
    for (method, path, _) in EFFECTS {
        let caller = if path.starts_with("/v1/me/") { &user } else { &admin };
        sent(request(caller, method, path, "?dry_run=true")).await.is_bad("dry_run");
    }
    assert_eq!(world.head().await, head);
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_answered_405_with_those_it_has() {
    let world = world(&[]).await;
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (method, path, _) in EXPECTED {
        methods.entry(path).or_default().insert(method);
    }
    let nobody = world.nobody();
    for (path, allowed) in methods {
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            if allowed.contains(method) || (path == "/console/{*path}" && method == "GET") {
                continue;
            }
            let answer = sent(nobody.request(Method::from_bytes(method.as_bytes()).unwrap(), &filled(path))).await;
            answer.is_problem(405, "method-not-allowed");
            let allow: BTreeSet<&str> = answer.header("allow").split(',').map(str::trim).collect();
            assert!(allow.is_superset(&allowed), "{method} {path}: allow is {allow:?}");
        }
        if allowed.contains("GET") {
            let head = sent(nobody.request(Method::HEAD, &filled(path))).await;
            let get = sent(nobody.request(Method::GET, &filled(path))).await;
            assert_eq!((head.status, head.text.as_str()), (get.status, ""), "HEAD {path}");
        }
    }
}

#[tokio::test]
async fn what_no_route_takes_is_a_problem_as_well() {
    let world = world(&[]).await;
    let nobody = world.nobody();
    for path in ["/nothing", "/v1", "/v1/", "/v2/users/1", "/v1/users/1/", "/v1/admin", "/console/", "/problems/"] {
        nobody.get(path).await.is_problem(404, "not-found");
    }
    nobody.get("/problems/no-such").await.is_problem(404, "not-found");
}

/// Asserts that an answer refuses the request in a way that helps: a 4xx problem with a page.
async fn refuses_helpfully(world: &World, what: &str, answer: &Answer) {
    assert!((400..500).contains(&answer.status), "{what}: {} {}", answer.status, answer.text);
    let name = answer.problem();
    let page = world.nobody().get(&format!("/problems/{name}")).await;
    assert_eq!(page.status, 200, "{what}: {name} has no page");
    for leak in ["panicked", ".rs:", "sqlx", "SQLITE", "src/"] {
        assert!(!answer.text.contains(leak), "{what}: {}", answer.text);
    }
}
