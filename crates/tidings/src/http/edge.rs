//! The edge: what happens to every request, whatever its route. Limits, time-out, panics, request
//! id, problem documents, security headers, metrics and the access log.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt as _;
use tidings_backbone::{
    clock::Stopwatch,
    trace::{self, Begun, Kind, Scope},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    body::read_body,
    console::SESSION_PATH,
    flow::{FLOW_PATH, SETTLE_TIME_MAX},
    input::{Admitted, TRACEPARENT, Traced},
    problem::{self, Name, Problem},
    request_id::{self, RequestId},
    state::AppState,
    telemetry::{self, InFlight},
};

/// Largest body of a login, in bytes: a token that would fit the `authorization` header.
const LOGIN_BYTES_MAX: usize = 16_384;
/// Shown as the route of requests that no route takes.
const NO_ROUTE: &str = "none";
/// Nothing may be loaded or run by what the API answers.
const API_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// What the edge keeps between requests.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    app: AppState,
    in_flight: Arc<Semaphore>,
}

impl Edge {
    pub(super) fn new(app: AppState) -> Self {
        let in_flight = Arc::new(Semaphore::new(app.config.http.requests_in_flight_max));
        Self { app, in_flight }
    }
}

/// Serves one request. Whatever is logged meanwhile says whose it is.
pub(super) async fn serve(State(edge): State<Edge>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers(), &edge.app.ids, &edge.app.clock);
    let traceparent = request.headers().get(TRACEPARENT).and_then(|value| value.to_str().ok());
    let traced = edge.app.sampling.begin(traceparent).filter(|_| !is_watching(request.uri().path()));
    if let Some(traced) = &traced {
        request.extensions_mut().insert(Traced(traced.context()));
        if traced.is_remote() {
            request.extensions_mut().insert(Admitted::default());
        }
    }
    let scope = Scope { request_id: id.shared(), context: traced.map(|traced| traced.context()) };
    trace::within(scope, serve_within(edge, request, next, id, traced)).await
}

async fn serve_within(edge: Edge, mut request: Request, next: Next, id: RequestId, traced: Option<Begun>) -> Response {
    let stopwatch = Stopwatch::start();
    let method = known(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    request.extensions_mut().insert(id.clone());
    let admitted = request.extensions().get::<Admitted>().cloned();

    let in_flight = InFlight::begin();
    let response = edge.answer(request, next, route).await.unwrap_or_else(Problem::into_response);
    let (mut response, problem) = problem::render(response, id.as_str());
    set_headers(response.headers_mut(), &id);

    drop(in_flight);
    let shed = problem.as_ref().map(Problem::name).filter(|name| name.is_shed());
    shed.inspect(|name| telemetry::shed(name.slug()));
    let status = response.status().as_u16();
    let seconds = stopwatch.seconds();
    telemetry::request_ended(method, route, status, seconds);
    log(method, route, status, seconds, problem.as_ref());
    if let Some(traced) = traced.filter(|_| admitted.is_none_or(|admitted| admitted.is_noted())) {
        tell(traced, method, route, status, &id);
    }
    response
}

/// Tells of the request in its trace. As in the log, the path and the query stay out: they may hold secrets.
fn tell(traced: Begun, method: &'static str, route: &str, status: u16, id: &RequestId) {
    let error = (status >= 500).then(|| status.to_string());
    traced
        .end(format!("{method} {route}"), Kind::Server)
        .with("http.request.method", method)
        .with("http.route", route.to_owned())
        .with("http.response.status_code", i64::from(status))
        .with("tidings.request.id", id.shared())
        .failed(error)
        .tell();
}

impl Edge {
    async fn answer(&self, request: Request, next: Next, route: &str) -> Result<Response, Problem> {
        self.check(&request)?;
        let request = if route == SESSION_PATH { self.whole(request).await? } else { request };
        let _place = self.place(route)?;
        Ok(self.run(request, next, route).await)
    }

    /// Checks what can be checked before the request is read.
    fn check(&self, request: &Request) -> Result<(), Problem> {
        let limits = &self.app.config.http;
        let uri_bytes = request.uri().path_and_query().map_or(0, |text| text.as_str().len());
        if uri_bytes > limits.uri_bytes_max {
            return Err(Problem::new(Name::UriTooLong));
        }
        if header_bytes(request.headers()) + uri_bytes > limits.header_bytes_max {
            return Err(Problem::new(Name::HeadersTooLarge));
        }
        if body_bytes(request.headers())? > limits.body_bytes_max as u64 {
            return Err(Problem::new(Name::BodyTooLarge));
        }
        Ok(())
    }

    /// Reads the body of a login. Anybody may send one, so it must be here before the request takes a
    /// place: enough bodies that trickle would take them all. Other bodies come with credentials.
    async fn whole(&self, request: Request) -> Result<Request, Problem> {
        let limits = &self.app.config.http;
        let (parts, body) = request.into_parts();
        let reading = read_body(body, limits.body_bytes_max.min(LOGIN_BYTES_MAX));
        let read = tokio::time::timeout(limits.request_timeout(), reading).await;
        Ok(Request::from_parts(parts, read.map_err(|_elapsed| Problem::timeout())??.into()))
    }

    /// Takes a place, where the route needs one.
    fn place(&self, route: &str) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        // Whoever watches the server must see it most of all when it is busy.
        if is_watching(route) {
            return Ok(None);
        }
        let permit = Arc::clone(&self.in_flight).try_acquire_owned();
        permit.map(Some).map_err(|_| Problem::busy())
    }

    /// Runs the route. A panic or too long a time is answered like any other error.
    async fn run(&self, request: Request, next: Next, route: &str) -> Response {
        let running = AssertUnwindSafe(next.run(request)).catch_unwind();
        match tokio::time::timeout(self.time_max(route), running).await {
            Ok(Ok(response)) => response,
            Ok(Err(panic)) => Problem::internal(&Panicked::new(&*panic)).into_response(),
            Err(_elapsed) => Problem::timeout().into_response(),
        }
    }

    fn time_max(&self, route: &str) -> Duration {
        let usual = self.app.config.http.request_timeout();
        // This route waits as long as its caller asks.
        if route == FLOW_PATH { usual + SETTLE_TIME_MAX } else { usual }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a route panicked: {0}")]
struct Panicked(String);

impl Panicked {
    fn new(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_default())
    }
}

/// Whether a request is one of those that come again and again to watch the server.
fn is_watching(path: &str) -> bool {
    path.starts_with("/health/") || path == "/metrics"
}

/// Bytes of the headers as they were sent, near enough: names, values, and ": " and the line's end.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// Bytes of the body, as far as the request tells; the body itself is measured as it is read.
fn body_bytes(headers: &HeaderMap) -> Result<u64, Problem> {
    let Some(length) = headers.get(header::CONTENT_LENGTH) else { return Ok(0) };
    let number = length.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Problem::field("content-length", "must be a whole number"))
}

/// The method for metrics and logs: clients may invent methods, and each would be a series.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

pub(super) fn set_headers(headers: &mut HeaderMap, id: &RequestId) {
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(request_id::HEADER, value);
    }
    let fixed: [(HeaderName, HeaderValue); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    for (name, value) in fixed {
        headers.insert(name, value);
    }
    // Pages and static files bring their own.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(API_POLICY);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// One line for each request, to which the log adds its id. It tells the route and never the path or the query,
/// which may hold secrets.
fn log(method: &str, route: &str, status: u16, seconds: f64, problem: Option<&Problem>) {
    let ms = (seconds * 1e6).round() / 1e3;
    let name = problem.map(|problem| problem.name());
    let kind = name.map(Name::slug);
    let cause = problem.and_then(Problem::cause);
    match name {
        Some(Name::Internal) => tracing::error!(method, route, status, ms, kind, cause, "request failed"),
        Some(_) if status >= 500 => {
            tracing::warn!(method, route, status, ms, kind, cause, "request failed")
        }
        Some(_) => tracing::info!(method, route, status, ms, kind, "request refused"),
        None => tracing::debug!(method, route, status, ms, "request served"),
    }
}

#[cfg(test)]
mod tests;
