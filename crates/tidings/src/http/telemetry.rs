//! Metrics of HTTP: each occurrence has its name in one place. Labels are route templates and
//! known methods, so the number of series is bounded whatever clients send.

use metrics::{counter, gauge, histogram};

const IN_FLIGHT: &str = "tidings_http_requests_in_flight";

/// A request has come.
pub(super) fn request_begun() {
    gauge!(IN_FLIGHT).increment(1.0);
}

/// A request was answered, after this many seconds.
pub(super) fn request_ended(method: &'static str, route: &str, status: u16, seconds: f64) {
    gauge!(IN_FLIGHT).decrement(1.0);
    let route = route.to_owned();
    counter!("tidings_http_requests_total", "method" => method, "route" => route.clone(), "status" => status_text(status))
        .increment(1);
    histogram!("tidings_http_request_seconds", "method" => method, "route" => route).record(seconds);
}

/// The statuses that routes answer, without allocating.
fn status_text(status: u16) -> metrics::SharedString {
    match status {
        200 => "200".into(),
        201 => "201".into(),
        204 => "204".into(),
        404 => "404".into(),
        429 => "429".into(),
        other => other.to_string().into(),
    }
}

/// A connection was opened (1) or closed (-1).
pub(super) fn connections(change: f64) {
    gauge!("tidings_http_connections").increment(change);
}
