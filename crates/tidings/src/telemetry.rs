//! What a process tells of its work: metrics, and what each of them means; traces, and where they go.

mod export;
mod otlp;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tidings_backbone::telemetry::{Kind, Metric};

pub use export::Tracing;

use crate::http;

/// Every metric there is, in the order of the path.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    let rooms = [http::telemetry::METRICS, tidings_backbone::telemetry::METRICS, tidings_community::METRICS];
    rooms.into_iter().flatten()
}

/// Makes the process's metrics, and answers what shows them. A process has one set of metrics: a
/// second server in it, as tests start them, counts into a set of its own that nobody feeds.
pub fn install_metrics() -> PrometheusHandle {
    let mut builder = PrometheusBuilder::new();
    for metric in metrics() {
        if let Kind::Histogram(buckets) = metric.kind {
            // Buckets are given, so this cannot fail; the default would keep every sample for a while.
            let name = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(name, buckets.bounds()).unwrap_or_default();
        }
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::debug!("metrics are installed already");
    }
    for metric in metrics() {
        metric.describe();
        // Who looks for an increase sees none in a series that begins with it.
        if matches!(metric.kind, Kind::Counter) && metric.labels.is_empty() {
            metrics::counter!(metric.name).increment(0);
        }
    }
    handle
}
