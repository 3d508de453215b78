//! Metrics of HTTP: each occurrence has its name in one place. Labels are route templates and
//! known methods, so the number of series is bounded whatever clients send.

use metrics::{counter, gauge, histogram};

const IN_FLIGHT: &str = "tidings_http_requests_in_flight";

/// A request that is being served; counted as one until dropped, also when its client goes away.
#[derive(Debug)]
pub(super) struct InFlight(());

impl InFlight {
    /// A request has come.
    pub(super) fn begin() -> Self {
        gauge!(IN_FLIGHT).increment(1.0);
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!(IN_FLIGHT).decrement(1.0);
    }
}

/// A request was answered, after this many seconds.
pub(super) fn request_ended(method: &'static str, route: &str, status: u16, seconds: f64) {
    let route = route.to_owned();
    let labels = [
        ("method", metrics::SharedString::from(method)),
        ("route", route.clone().into()),
        ("status", status_text(status)),
    ];
    counter!("tidings_http_requests_total", &labels).increment(1);
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
