//! Shapes that are wrong in a known way, and the field that each answer names.

use reqwest::Method;
use serde_json::{Value, json};
use tidings_testkit::{World, caller::sent};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::refuses_helpfully;
use crate::world;

const BAD_NUMBERS: [&str; 14] = [
    "",
    "x",
    "-1",
    "+1",
    "1.5",
    "1e3",
    "0x10",
    "%20",
    "1%20",
    "%00",
    "%F0%9F%92%A5",
    "18446744073709551616",
    "99999999999999999999999999999999999999999999",
    "%D9%A1",
];

#[tokio::test]
async fn a_wrong_id_number_or_cursor_is_refused_and_named() {
    let world = world(&[]).await;
    world.register(1..=2).await;
    let (user, admin) = (world.user(1).await, world.admin().await);
    let head = world.head().await;
    for bad in BAD_NUMBERS {
        if !bad.is_empty() {
            for path in ["", "/following", "/followers", "/counters", "/following/common?with=2"] {
                let (before, after) = path.split_once('?').unwrap_or((path, ""));
                user.get(&format!("/v1/users/{bad}{before}?{after}")).await.is_bad("user_id");
            }
            for method in [Method::PUT, Method::DELETE] {
                sent(user.request(method, &format!("/v1/me/following/{bad}"))).await.is_bad("user_id");
            }
        }
        user.get(&format!("/v1/users/1/following/common?with={bad}")).await.is_bad("with");
        user.get(&format!("/v1/me/relations?ids={bad}")).await.is_bad("ids");
        user.get(&format!("/v1/me/relations?ids=1,{bad}")).await.is_bad("ids");
        for list in ["/v1/users/1/following?", "/v1/users/1/followers?", "/v1/users/1/following/common?with=2&"] {
            user.get(&format!("{list}limit={bad}")).await.is_bad("limit");
            user.get(&format!("{list}cursor={bad}")).await.is_bad("cursor");
            user.get(&format!("{list}offset={bad}")).await.is_bad("offset");
        }
        for field in ["limit", "latest", "cursor", "before"] {
            admin.get(&format!("/v1/admin/events?{field}={bad}")).await.is_bad(field);
        }
        admin.get(&format!("/v1/admin/flow?settle_ms={bad}")).await.is_bad("settle_ms");
        if !bad.is_empty() {
            admin.get(&format!("/v1/admin/events/{bad}")).await.is_bad("event_id");
            admin.get(&format!("/v1/admin/events/{bad}/journey")).await.is_bad("event_id");
        }
    }
    assert_eq!(world.head().await, head);
}

#[tokio::test]
async fn a_number_out_of_range_a_doubled_and_an_unknown_parameter_are_refused_and_named() {
    let world = world(&[]).await;
    world.register(1..=2).await;
    let (user, admin) = (world.user(1).await, world.admin().await);
    for (path, field) in [
        ("/v1/users/1/followers?limit=0", "limit"),
        ("/v1/users/1/followers?limit=101", "limit"),
        ("/v1/users/1/followers?offset=10001", "offset"),
        ("/v1/users/1/followers?limit=1&limit=1", "limit"),
        ("/v1/users/1/followers?limt=1", "limt"),
        ("/v1/users/1/followers?cursor=a&cursor=b", "cursor"),
        ("/v1/users/1/counters?limit=1", "limit"),
        ("/v1/users/1?x", "x"),
        ("/v1/users", "handle"),
        ("/v1/users?handle=", "handle"),
        ("/v1/users?handle=Ada", "handle"),
        ("/v1/users?handle=a%2Fb", "handle"),
        ("/v1/users/1/following/common", "with"),
        ("/v1/me/relations", "ids"),
        ("/v1/me/relations?ids=1,,2", "ids"),
        ("/v1/me/relations?ids=1&ids=2", "ids"),
    ] {
        user.get(path).await.is_bad(field);
    }
    for (path, field) in [
        ("/v1/admin/events?latest=0", "latest"),
        ("/v1/admin/events?latest=101", "latest"),
        ("/v1/admin/events?latest=1&limit=1", "limit"),
        ("/v1/admin/flow?settle_ms=60001", "settle_ms"),
        ("/v1/admin/parked?limit=0", "limit"),
        ("/v1/admin/parked?limit=1001", "limit"),
        ("/v1/admin/parked?projector=", "projector"),
        ("/v1/admin/parked?state=alive", "state"),
        ("/v1/admin/parked?parked_from=yesterday", "parked_from"),
        ("/v1/admin/parked?parked_before=2026-11-29", "parked_before"),
        ("/v1/admin/parked?cursor=x", "cursor"),
        ("/v1/admin/parked?type=a", "type"),
        ("/v1/admin/parked/events", "projector"),
        ("/v1/admin/parked/events?projector=relation", "key"),
        ("/v1/admin/parked/events?projector=relation&key=1&limit=101", "limit"),
        ("/v1/admin/audit?limit=0", "limit"),
        ("/v1/admin/audit?cursor=x", "cursor"),
    ] {
        admin.get(path).await.is_bad(field);
    }
}

#[tokio::test]
async fn a_request_of_the_right_shape_that_cannot_be_is_refused_and_its_field_named() {
    let world = world(&[]).await;
    world.register(1..=2).await;
    let (user, admin) = (world.user(1).await, world.admin().await);
    let head = world.head().await;
    let register = |body: Value| sent(admin.request(Method::POST, "/v1/admin/users").json(&body));
    let follow = |method: Method, id: &str| sent(user.request(method, &format!("/v1/me/following/{id}")));
    for (answer, status, problem, field) in [
        (follow(Method::PUT, "1").await, 422, "yourself", "user_id"),
        (follow(Method::DELETE, "1").await, 422, "yourself", "user_id"),
        (follow(Method::PUT, "99").await, 404, "unknown-user", "user_id"),
        (register(json!({ "user_id": "1", "handle": "ada" })).await, 409, "user-exists", "user_id"),
        (register(json!({ "user_id": "3", "handle": "u1" })).await, 409, "handle-taken", "handle"),
        (register(json!({ "handle": "u1" })).await, 409, "handle-taken", "handle"),
        (user.get("/v1/users/99").await, 404, "unknown-user", "user_id"),
        (user.get("/v1/users?handle=ada").await, 404, "unknown-user", "handle"),
    ] {
        answer.is_problem(status, problem);
        let errors = answer.json(status)["errors"].clone();
        assert_eq!(errors[0]["field"], field, "{}", answer.text);
    }
    assert_eq!(world.head().await, head);
}

#[tokio::test]
async fn a_body_of_a_wrong_shape_is_refused_and_registers_nobody() {
    let world = world(IMPATIENT).await;
    let admin = world.admin().await;
    let users = || admin.request(Method::POST, "/v1/admin/users");
    for (body, field) in [
        (json!({}), "handle"),
        (json!({ "handle": null }), "handle"),
        (json!({ "handle": 7 }), "handle"),
        (json!({ "handle": "" }), "handle"),
        (json!({ "handle": "A" }), "handle"),
        (json!({ "handle": "-a" }), "handle"),
        (json!({ "handle": "a b" }), "handle"),
        (json!({ "handle": "\u{1f4a5}" }), "handle"),
        (json!({ "handle": "a".repeat(33) }), "handle"),
        (json!({ "handle": ["ada"] }), "handle"),
        (json!({ "handle": "ada", "user_id": "x" }), "user_id"),
        (json!({ "handle": "ada", "user_id": "-1" }), "user_id"),
        (json!({ "handle": "ada", "user_id": "01" }), "user_id"),
        (json!({ "handle": "ada", "user_id": "9223372036854775808" }), "user_id"),
        (json!({ "handle": "ada", "user_id": 1.5 }), "user_id"),
        (json!({ "handle": "ada", "admin": true }), "admin"),
        (json!([]), "body"),
        (json!("ada"), "body"),
        (json!(null), "body"),
    ] {
        let answer = sent(users().json(&body)).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text);
        answer.is_bad(field);
    }
    let deep = "[".repeat(30_000);
    for text in ["", "{", "{\"handle\":\"ada\"", "{\"handle\":\"ada\"} x", "\u{0}", "{\"handle\":\"\\ud800\"}", &deep] {
        let request = users().header("content-type", "application/json").body(text.to_owned());
        refuses_helpfully(&world, text.get(..20).unwrap_or(text), &sent(request).await).await;
    }
    let latin1 = users().header("content-type", "application/json").body(vec![b'"', 0xff, 0xfe, b'"']);
    sent(latin1).await.is_bad("body");
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", ""] {
        let request = users().header("content-type", media_type).body("{\"handle\":\"ada\"}");
        sent(request).await.is_problem(415, "unsupported-media-type");
    }
    let large = json!({ "handle": "a".repeat(70_000) });
    sent(users().json(&large)).await.is_problem(413, "body-too-large");
    // One that does not say beforehand how large it is.
    let token = world.admin_token().await;
    let chunks = format!("2000\r\n{}\r\n", " ".repeat(0x2000)).repeat(20);
    let request = format!(
        "POST /v1/admin/users HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    );
    let answer = raw(&world, &request).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(world.head().await, 0, "nobody was registered");
}

#[tokio::test]
async fn an_action_on_the_parking_lot_of_a_wrong_shape_is_refused_and_named_and_leaves_no_audit() {
    let world = world(&[]).await;
    let admin = world.admin().await;
    let discard = |more: Value| {
        let mut body = json!({ "projector": "relation", "key": "1", "reason": "poison" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let id = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c";
    for (path, body, field) in [
        ("redrive", json!({}), "all"),
        ("redrive", json!({ "all": false }), "all"),
        ("redrive", json!({ "all": true, "key": "1" }), "all"),
        ("redrive", json!({ "event_type": "" }), "event_type"),
        ("redrive", json!({ "projector": "p".repeat(256) }), "projector"),
        ("redrive", json!({ "state": "Dead" }), "state"),
        ("redrive", json!({ "parked_from": "now" }), "parked_from"),
        ("redrive", json!({ "all": true, "events_per_second": 0 }), "events_per_second"),
        ("redrive", json!({ "all": true, "events_per_second": "5" }), "events_per_second"),
        ("redrive", json!({ "all": true, "reason": "  " }), "reason"),
        ("redrive", json!({ "all": true, "dryrun": true }), "dryrun"),
        ("discard", json!({ "key": "1", "event_id": id, "reason": "poison" }), "projector"),
        ("discard", json!({ "projector": "relation", "key": "1", "event_id": id }), "reason"),
        ("discard", discard(json!({})), "event_id"),
        ("discard", discard(json!({ "event_id": "7" })), "event_id"),
        ("discard", discard(json!({ "event_id": id, "offset": 1 })), "offset"),
        ("discard", discard(json!({ "event_id": id, "part": "outbox/0" })), "part"),
        ("discard", discard(json!({ "offset": 1, "part": "outbox" })), "part"),
        ("discard", discard(json!({ "offset": "1" })), "offset"),
        ("discard", discard(json!({ "offset": 1, "reason": "x".repeat(2_001) })), "reason"),
    ] {
        let answer = sent(admin.request(Method::POST, &format!("/v1/admin/parked/{path}")).json(&body)).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text);
        answer.is_bad(field);
    }
    assert_eq!(admin.read("/v1/admin/audit").await["items"], json!([]));
}

#[tokio::test]
async fn a_header_of_a_wrong_shape_is_refused_or_ignored_and_never_a_500() {
    let world = world(&[]).await;
    world.register(1..=2).await;
    let head = world.head().await;
    let user = world.user(1).await;
    let put = || user.request(Method::PUT, "/v1/me/following/2");
    let bytes = |raw: &[u8]| reqwest::header::HeaderValue::from_bytes(raw).unwrap();
    for raw in [&b"\xff\xfe"[..], b"a b", b"a\tb", b"", &[b'k'; 256]] {
        sent(put().header("idempotency-key", bytes(raw))).await.is_bad("idempotency-key");
    }
    let twice = put().header("idempotency-key", "a").header("idempotency-key", "b");
    sent(twice).await.is_bad("idempotency-key");
    let admin = world.admin().await;
    for (action, body) in [
        ("redrive", json!({ "key": "1" })),
        ("discard", json!({ "projector": "relation", "key": "1", "offset": 1, "reason": "poison" })),
    ] {
        let request = admin.request(Method::POST, &format!("/v1/admin/parked/{action}")).json(&body);
        sent(request.header("idempotency-key", "a b")).await.is_bad("idempotency-key");
    }
    for raw in [&b"\xff"[..], b"", b"Bearer", b"Bearer ", b"Bearer \xff", b"Basic YWRtaW46YWRtaW4=", b"Bearer a.b.c"] {
        let request = world.nobody().request(Method::PUT, "/v1/me/following/2").header("authorization", bytes(raw));
        sent(request).await.is_problem(401, "unauthenticated");
    }
    sent(put().header("x-filler", "f".repeat(17_000))).await.is_problem(431, "headers-too-large");
    let many = (0..200).fold(put(), |put, number| put.header(format!("x-filler-{number}"), "f".repeat(80)));
    sent(many).await.is_problem(431, "headers-too-large");
    user.get(&format!("/v1/users?handle={}", "a".repeat(9_000))).await.is_problem(414, "uri-too-long");
    assert_eq!(world.head().await, head);

    // What only describes the request is replaced or left out, and serves it all the same.
    for (name, raw) in
        [("x-request-id", &b"\xff\"<>"[..]), ("traceparent", b"00-zz"), ("user-agent", b"\xff"), ("cookie", b"\xff;;=")]
    {
        let answer = sent(put().header(name, bytes(raw))).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
        assert!(!answer.header("x-request-id").is_empty());
    }
    let events = world.events(head).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["traceparent"], Value::Null);
}

#[tokio::test]
async fn what_is_not_even_http_ends_its_connection_and_nothing_else() {
    let world = world(IMPATIENT).await;
    for text in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "GET /health/live HTTP/9.9\r\n\r\n",
        "GET /health/live HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        "POST /v1/admin/users HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        "POST /v1/admin/users HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST /v1/admin/users HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "\u{16}\u{3}\u{1}",
    ] {
        let answer = raw(&world, text).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{text:?}: {answer}");
        world.nobody().get("/health/live").await.json(200);
    }
}

#[tokio::test]
async fn a_head_that_is_far_too_large_is_refused_before_it_ends_so_that_many_take_little_memory() {
    let world = world(&[("http.header_read_timeout_ms", "600000")]).await;
    let answer = raw(&world, &format!("GET /health/live HTTP/1.1\r\nx-filler: {}", "f".repeat(40_000))).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn no_path_leads_out_of_the_files_that_are_served() {
    let world = world(IMPATIENT).await;
    // As they are, since a client would resolve them before it asks.
    for path in [
        "/console/../Cargo.toml",
        "/console/..%2f..%2fCargo.toml",
        "/console/%2e%2e/src/lib.rs",
        "/console//etc/passwd",
        "/console/%00",
        "/v1/docs/../../../../etc/passwd",
        "/v1/docs/..%2f..%2f..%2fetc%2fpasswd",
        "/problems/..%2f..%2fREADME",
    ] {
        let answer = raw(&world, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("/problems/not-found"), "{path}: {answer}");
    }
}

/// Whoever sends half a request is not waited for longer than this.
const IMPATIENT: &[(&str, &str)] = &[("http.header_read_timeout_ms", "300")];

/// Sends bytes as they are, and answers what came back before the connection ended.
async fn raw(world: &World, text: &str) -> String {
    let mut connection = TcpStream::connect(world.url().trim_start_matches("http://")).await.unwrap();
    let mut answer = Vec::new();
    // A server that has heard enough may close before all is sent; what it said is still to be read.
    drop(connection.write_all(text.as_bytes()).await);
    drop(connection.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}
