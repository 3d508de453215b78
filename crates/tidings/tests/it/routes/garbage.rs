//! Random text wherever a request takes text.

use std::{fmt::Write as _, sync::Arc};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use reqwest::Method;
use tidings_testkit::{Kind, World, caller::sent, on_every_world};
use tokio::runtime::Handle;

use super::refuses_helpfully;
use crate::world_on;

on_every_world!(no_text_in_any_place_is_answered_with_anything_but_success_or_a_4xx_problem);

/// Where the text goes: `{}` in the path or query, or a body.
const PLACES: &[(&str, &str)] = &[
    ("GET", "/{}"),
    ("GET", "/v1/users/{}"),
    ("GET", "/v1/users?handle={}"),
    ("GET", "/v1/users?{}"),
    ("GET", "/v1/users/{}/following"),
    ("GET", "/v1/users/1/followers?limit={}"),
    ("GET", "/v1/users/1/followers?offset={}"),
    ("GET", "/v1/users/1/followers?cursor={}"),
    ("GET", "/v1/users/1/following?{}=1"),
    ("GET", "/v1/users/1/following/common?with={}"),
    ("GET", "/v1/users/{}/counters"),
    ("GET", "/v1/me/relations?ids={}"),
    ("GET", "/v1/admin/events?cursor={}"),
    ("GET", "/v1/admin/events/{}"),
    ("GET", "/v1/admin/flow?settle_ms=0&{}"),
    ("GET", "/v1/admin/parked?key={}"),
    ("GET", "/v1/admin/parked?error={}"),
    ("GET", "/v1/admin/parked?cursor={}"),
    ("GET", "/v1/admin/parked?parked_from={}"),
    ("GET", "/v1/admin/parked/events?projector={}&key={}"),
    ("GET", "/v1/admin/audit?cursor={}"),
    ("POST", "/v1/admin/rebuilds"),
    ("POST", "/v1/admin/rebuilds/{}/pause"),
    ("POST", "/v1/admin/rebuilds/relation/resume?events_per_second={}"),
    ("POST", "/v1/admin/rebuilds/relation/switch?{}=true"),
    ("POST", "/v1/admin/rebuilds/{}/cancel"),
    ("GET", "/v1/admin/reconciliations?limit={}"),
    ("GET", "/v1/admin/reconciliations?cursor={}"),
    ("POST", "/v1/admin/reconciliations?projector={}"),
    ("GET", "/v1/admin/reconciliations/{}"),
    ("POST", "/v1/admin/reconciliations/{}/repair"),
    ("POST", "/v1/admin/parked/redrive"),
    ("POST", "/v1/admin/parked/discard"),
    ("GET", "/problems/{}"),
    ("GET", "/console/{}"),
    ("GET", "/v1/docs/{}"),
    ("PUT", "/v1/me/following/{}"),
    ("DELETE", "/v1/me/following/{}"),
    ("POST", "/v1/admin/users"),
    ("POST", "/console/session"),
];

/// Text as strangers send it: numbers that are almost right, JSON that is almost right, anything.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        any::<String>(),
        "-?[0-9]{1,25}(\\.[0-9]+)?",
        "[A-Za-z0-9_-]{1,80}",
        "[0-9,]{1,60}",
        "(\\.\\./|%2e|/|\\\\|;|'|\"|--|\\x00){1,8}",
        "\\{\"(handle|user_id|link|token|key|all)\": ?(\"[a-zA-Z0-9]{0,40}\"|[0-9]{1,30}|null|\\[\\]|\\{\\})\\}?",
    ]
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02X}").unwrap();
        encoded
    })
}

async fn send(world: &World, (method, place): (&str, &str), text: &str) {
    let caller = if place.starts_with("/v1/me") { world.user(1).await } else { world.admin().await };
    let path = place.replace("{}", &percent_encoded(text));
    let mut request = caller.request(Method::from_bytes(method.as_bytes()).unwrap(), &path);
    if method == "POST" {
        request = request.header("content-type", "application/json").body(text.to_owned());
    }
    let answer = sent(request).await;
    if answer.status >= 400 {
        refuses_helpfully(world, &format!("{method} {place} with {text:?}"), &answer).await;
    }
}

async fn no_text_in_any_place_is_answered_with_anything_but_success_or_a_4xx_problem(kind: Kind) {
    let world = Arc::new(world_on(kind, &[("rate.follow_capacity", "1000000")]).await);
    world.register(1..=2).await;
    let (runtime, asked) = (Handle::current(), Arc::clone(&world));
    let run = move || {
        let config = Config { cases: 720, failure_persistence: None, ..Config::default() };
        let cases = (proptest::sample::select(PLACES), text());
        let one = |(place, text): ((&str, &str), String)| {
            runtime.block_on(send(&asked, place, &text));
            Ok(())
        };
        TestRunner::new(config).run(&cases, one).unwrap();
    };
    tokio::task::spawn_blocking(run).await.unwrap();
    world.drain().await;
    world.verify().await;
}
