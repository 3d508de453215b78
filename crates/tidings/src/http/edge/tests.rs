use std::future::pending;

use axum::{
    Router,
    body::Body,
    body::to_bytes,
    http::StatusCode,
    middleware::from_fn_with_state,
    routing::{get, post},
};
use metrics_exporter_prometheus::PrometheusBuilder;
use tidings_backbone::{Clock, EventIds};
use tidings_event::Timestamp;
use tokio::sync::Notify;
use tower::ServiceExt as _;

use super::*;
use crate::{config::Http, serve::Server, store::Store};

/// A router of one's own behind the edge, and what keeps it alive.
struct Behind {
    router: Router,
    server: Server,
    _folder: tempfile::TempDir,
}

async fn behind_edge(routes: Router, change: impl FnOnce(&mut Http)) -> Behind {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp(1_795_965_977_000));
    let mut config = crate::config::load(None, []).unwrap();
    config.http.listen = "127.0.0.1:0".parse().unwrap();
    config.data.dir = folder.path().to_owned();
    change(&mut config.http);
    let store = Store::open_with(&config, clock, EventIds::from_seed(1)).await.unwrap();
    let metrics = PrometheusBuilder::new().build_recorder().handle();
    let server = Server::start_on(store, config, metrics).await.unwrap();
    let router = routes.layer(from_fn_with_state(Edge::new(server.app().clone()), serve));
    Behind { router, server, _folder: folder }
}

impl Behind {
    async fn get(&self, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }
}

async fn text(response: Response) -> String {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_panic_is_answered_without_its_text() {
    let routes = Router::new().route("/", get(async || -> StatusCode { panic!("the password is hunter2") }));
    let behind = behind_edge(routes, |_| {}).await;
    let response = behind.get("/").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let text = text(response).await;
    assert!(text.contains("/problems/internal") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered() {
    let routes = Router::new().route("/", get(async || -> StatusCode { pending().await }));
    let behind = behind_edge(routes, |http| http.request_timeout_ms = 1).await;
    let response = behind.get("/").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    assert!(text(response).await.contains("/problems/timeout"));
}

#[tokio::test]
async fn one_request_too_many_is_told_so_and_a_gone_client_frees_its_place() {
    let begun = Arc::new(Notify::new());
    let signal = Arc::clone(&begun);
    let slow = move || async move {
        signal.notify_one();
        pending::<StatusCode>().await
    };
    let routes = Router::new()
        .route("/slow", get(slow))
        .route("/fast", get(async || StatusCode::OK))
        .route("/health/live", get(async || StatusCode::OK));
    let behind = behind_edge(routes, |http| http.requests_in_flight_max = 1).await;

    let router = behind.router.clone();
    let slow = tokio::spawn(router.oneshot(Request::get("/slow").body(Body::empty()).unwrap()));
    begun.notified().await;
    let refused = behind.get("/fast").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    assert!(text(refused).await.contains("/problems/busy"));
    assert_eq!(behind.get("/health/live").await.status(), StatusCode::OK, "health is told all the same");

    slow.abort();
    assert!(slow.await.unwrap_err().is_cancelled());
    assert_eq!(behind.get("/fast").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_login_takes_no_place_before_its_body_is_there_and_its_body_is_small() {
    let log_in = async |body: String| (StatusCode::OK, body);
    let routes = Router::new().route(SESSION_PATH, post(log_in)).route("/fast", get(async || StatusCode::OK));
    let behind = behind_edge(routes, |http| http.requests_in_flight_max = 1).await;
    let sent = |body| behind.router.clone().oneshot(Request::post(SESSION_PATH).body(body).unwrap());

    let (sender, trickle) = futures::channel::mpsc::unbounded::<Result<&str, std::convert::Infallible>>();
    let trickling = tokio::spawn(sent(Body::from_stream(trickle)));
    // One that is read to its end before the other was polled would prove nothing.
    sender.unbounded_send(Ok("slow")).unwrap();
    while !sender.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(behind.get("/fast").await.status(), StatusCode::OK);
    drop(sender);
    assert_eq!(text(trickling.await.unwrap().unwrap()).await, "slow");

    let refused = sent(Body::from("x".repeat(LOGIN_BYTES_MAX + 1))).await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn every_answer_carries_the_request_id_and_the_security_headers() {
    let behind = behind_edge(Router::new().route("/", get(async || StatusCode::OK)), |_| {}).await;
    let request = Request::get("/").header(request_id::HEADER, "trace-1").body(Body::empty()).unwrap();
    let response = behind.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()[request_id::HEADER], "trace-1");
    for name in ["x-content-type-options", "x-frame-options", "referrer-policy", "content-security-policy"] {
        assert!(response.headers().contains_key(name), "{name}");
    }
    assert!(!response.headers().contains_key("access-control-allow-origin"));
    assert!(!behind.server.app().health.readiness.get(), "not serving yet");
}
