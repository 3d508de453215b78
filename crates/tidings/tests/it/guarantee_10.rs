//! Guarantee 10: the admin surface denies by default. Who is admitted to which route is walked in
//! `routes`; here are the ways in.

use reqwest::Method;
use serde_json::json;
use tidings_testkit::{Answer, Process, World, caller::sent, process::Signal};

use crate::{BINARY, world};

const FLOW: &str = "/v1/admin/flow";
const SESSION: &str = "/console/session";

#[tokio::test]
async fn no_guessed_or_foreign_credential_opens_the_admin_surface() {
    let (world, other) = (world(&[]).await, world(&[]).await);
    world.register(1..=1).await;
    let nobody = world.nobody();
    let foreign = format!("Bearer {}", other.admin_token().await);
    for credential in [
        "Basic YWRtaW46YWRtaW4=",
        "Basic YWRtaW46",
        "Bearer admin",
        "Bearer null",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInJvbGVzIjpbImFkbWluIl19.",
        &foreign,
    ] {
        let answer = sent(nobody.request(Method::GET, FLOW).header("authorization", credential)).await;
        answer.is_problem(401, "unauthenticated");
    }
    for cookie in ["tidings_session=", "tidings_session=admin", "tidings_session=../keys", "session=1"] {
        sent(nobody.request(Method::GET, FLOW).header("cookie", cookie)).await.is_problem(401, "unauthenticated");
    }
    for body in
        [json!({ "link": "" }), json!({ "link": "admin" }), json!({ "token": "admin" }), json!({ "link": ".." })]
    {
        nobody.post(SESSION, &body).await.is_problem(401, "unauthenticated");
    }
    let user = world.token(1).await;
    nobody.post(SESSION, &json!({ "token": user })).await.is_problem(403, "forbidden");
    // A token changed in its middle, and one with its signature cut off.
    let token = world.admin_token().await;
    let (head, signature) = token.rsplit_once('.').unwrap();
    for broken in [format!("{head}."), format!("{head}.{}", signature.to_lowercase()), head.to_owned()] {
        world.bearer(&broken).get(FLOW).await.is_problem(401, "unauthenticated");
    }
    assert_eq!(world.bearer(&token).get(FLOW).await.status, 200);
}

fn session_cookie(answer: &Answer) -> String {
    assert_eq!(answer.status, 204, "{}", answer.text);
    let cookie = answer.header("set-cookie");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

async fn log_in(world: &World) -> String {
    let token = world.admin_token().await;
    session_cookie(&world.nobody().post(SESSION, &json!({ "token": token })).await)
}

#[tokio::test]
async fn a_login_link_works_once_and_a_login_ends_when_it_is_ended() {
    let world = world(&[]).await;
    let nobody = world.nobody();
    let printed = world.run(&["login-link"]).await;
    let (_, secret) = printed.trim().split_once("/login?link=").unwrap();
    let link = json!({ "link": secret });
    let cookie = session_cookie(&nobody.post(SESSION, &link).await);
    nobody.post(SESSION, &link).await.is_problem(401, "unauthenticated");
    let with_cookie = |method, path| nobody.request(method, path).header("cookie", &cookie);
    assert_eq!(sent(with_cookie(Method::GET, FLOW)).await.status, 200);
    let subject = sent(with_cookie(Method::GET, SESSION)).await.json(200)["subject"].clone();
    assert!(subject.as_str().unwrap().starts_with("link:"), "whoever had it printed: {subject}");
    let asked = with_cookie(Method::POST, "/v1/admin/rebuilds").header("x-tidings-console", "1");
    sent(asked.json(&json!({ "projector": "relation", "hold": true }))).await.json(200);
    let audit = world.admin().await.read("/v1/admin/audit").await;
    assert_eq!(audit["items"][0]["actor"], subject, "the audit names him");
    world.restart().await;
    assert_eq!(sent(with_cookie(Method::GET, FLOW)).await.status, 200, "a login outlives the process");
    let log_out = with_cookie(Method::DELETE, SESSION).header("x-tidings-console", "1");
    assert_eq!(sent(log_out).await.status, 204);
    sent(with_cookie(Method::GET, FLOW)).await.is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_change_by_cookie_comes_from_the_console_or_not_at_all() {
    let world = world(&[]).await;
    let (nobody, cookie) = (world.nobody(), log_in(&world).await);
    let origin = world.url();
    let register = |headers: &[(&str, &str)]| {
        let request = nobody.request(Method::POST, "/v1/admin/users").header("cookie", &cookie);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        sent(request.json(&json!({ "user_id": "1", "handle": "ada" })))
    };
    for headers in [
        &[][..],
        &[("x-tidings-console", "0")],
        &[("x-tidings-console", "1"), ("origin", "http://evil.example")],
        &[("x-tidings-console", "1"), ("origin", "null")],
        &[("x-tidings-console", "1"), ("sec-fetch-site", "cross-site")],
        &[("x-tidings-console", "1"), ("sec-fetch-site", "same-site")],
    ] {
        register(headers).await.is_problem(403, "forbidden");
    }
    assert_eq!(world.head().await, 0);
    register(&[("x-tidings-console", "1"), ("origin", &origin)]).await.json(201);
    // What a user does for himself takes his own token.
    let me = nobody.request(Method::GET, "/v1/me/relations?ids=1").header("cookie", &cookie);
    sent(me).await.is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn metrics_are_closed_unless_configured_open() {
    let closed = world(&[]).await;
    closed.nobody().get("/metrics").await.is_problem(401, "unauthenticated");
    let open = world(&[("http.metrics_public", "true")]).await;
    let answer = open.nobody().get("/metrics").await;
    assert_eq!(answer.status, 200);
    open.nobody().get(FLOW).await.is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn the_first_start_prints_one_link_and_later_ones_print_none() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let serve = || {
        let mut command = std::process::Command::new(BINARY);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        Process::start(command, "the binary should be there")
    };
    let mut first = serve();
    let line = first.line_containing("/login?link=");
    let link = line.split_whitespace().last().unwrap();
    let (address, secret) = link.split_once("/login?link=").unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let posted = client.post(format!("{address}{SESSION}")).json(&json!({ "link": secret })).send().await.unwrap();
    assert_eq!(posted.status(), 204);
    assert!(!first.said().contains(secret), "the log may be read by others");
    first.signal(Signal::TERM);
    assert!(first.wait().success());

    let mut second = serve();
    second.line_containing("Tidings is at ");
    second.signal(Signal::TERM);
    assert_eq!(second.find_line("/login?link="), None);
    assert!(second.wait().success());
}

#[cfg(unix)]
#[tokio::test]
async fn the_data_folder_and_its_key_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world(&[]).await;
    world.admin_token().await;
    let data = world.data_folder();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    let keys: Vec<_> = std::fs::read_dir(data.join("keys")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!keys.is_empty());
    for key in keys {
        assert_eq!(mode(&key), 0o600, "{}", key.display());
    }
}
