//! Metrics of HTTP and of the process: each occurrence has its name in one place. Labels are route templates and
//! known methods, so the number of series is bounded whatever clients send.

use metrics::{counter, gauge, histogram};
use tidings_backbone::telemetry::{Buckets::Work, Metric};

const IN_FLIGHT: &str = "tidings_http_requests_in_flight";

/// What each metric of this crate means; that of the exporter of spans is with it.
pub(crate) const METRICS: &[Metric] = &[
    Metric::gauge("tidings_build_info", &["version", "mode", "role"], "1, for the version and what it does."),
    Metric::counter("tidings_http_requests_total", &["method", "route", "status"], "Requests that were answered."),
    Metric::histogram(
        "tidings_http_request_seconds",
        Work,
        &["method", "route"],
        "Time from the head of a request to the head of its answer.",
    ),
    Metric::counter(
        "tidings_http_shed_total",
        &["reason"],
        "Requests turned away: rate-limited (a user asks too often), busy (too many at once), timeout, unavailable \
         (something is down).",
    ),
    Metric::gauge(IN_FLIGHT, &[], "Requests being served."),
    Metric::gauge("tidings_http_requests_in_flight_max", &[], "Requests served at once before one is turned away."),
    Metric::gauge("tidings_http_connections", &[], "Connections that are open."),
    Metric::gauge("tidings_http_connections_max", &[], "Connections open at once; further ones wait."),
    Metric::gauge("tidings_service_up", &["service"], "Whether the database, or Kafka, answered when last asked."),
    Metric::gauge(
        "tidings_measured",
        &["what"],
        "Whether the gauges of the outbox, the projectors, the relay's lease or the reconciliation, or what is \
         counted in the database, are of this scrape; else they show what was seen last, and its age goes on growing.",
    ),
    Metric::gauge("process_resident_memory_bytes", &[], "Memory in use."),
    Metric::counter("process_cpu_seconds_total", &[], "Processor time used."),
    Metric::gauge("process_open_fds", &[], "Files and connections that are open."),
];

/// What this process is.
pub(crate) fn build_info(mode: &'static str, role: &'static str) {
    gauge!("tidings_build_info", "version" => env!("CARGO_PKG_VERSION"), "mode" => mode, "role" => role).set(1.0);
}

/// How many requests and connections there may be at once.
pub(crate) fn limits(requests_in_flight_max: usize, connections_max: usize) {
    gauge!("tidings_http_requests_in_flight_max").set(requests_in_flight_max as f64);
    gauge!("tidings_http_connections_max").set(connections_max as f64);
}

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

/// A request was turned away; `reason` is the name of its problem.
pub(super) fn shed(reason: &'static str) {
    counter!("tidings_http_shed_total", "reason" => reason).increment(1);
}

/// A connection was opened (1) or closed (-1).
pub(super) fn connections(change: f64) {
    gauge!("tidings_http_connections").increment(change);
}

/// Whether a service has answered.
pub(super) fn service_up(service: &'static str, is_up: bool) {
    gauge!("tidings_service_up", "service" => service).set(f64::from(is_up));
}

/// Whether what is shown of something is of now.
pub(super) fn measured(what: &'static str, is_of_now: bool) {
    gauge!("tidings_measured", "what" => what).set(f64::from(is_of_now));
}
