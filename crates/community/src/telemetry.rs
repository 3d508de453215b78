//! Metrics of the features: each occurrence has its name in one place.

use metrics::counter;
use tidings_backbone::telemetry::Metric;

/// What each metric of this crate means.
pub const METRICS: &[Metric] = &[
    Metric::counter(
        "tidings_counter_drift_total",
        &[],
        "Stored counters that differed from their facts and were recounted.",
    ),
    Metric::counter(
        "tidings_counter_malformed_total",
        &[],
        "Stored counters that could not be read and were recounted.",
    ),
    Metric::counter(
        "tidings_relation_version_gaps_total",
        &[],
        "Events applied although one or more before them were not seen.",
    ),
    Metric::counter(
        "tidings_relation_stale_events_total",
        &[],
        "Events without effect, since a newer one was applied.",
    ),
    Metric::counter(
        "tidings_top_page_reads_total",
        &["hit"],
        "First pages asked for that were, or were not, in memory.",
    ),
    Metric::counter(
        "tidings_bucket_takes_total",
        &["answered_by"],
        "Tokens asked for where all processes share the buckets, or of this process's own.",
    ),
    Metric::counter("tidings_hot_lists_total", &["list", "outcome"], "Parts of lists asked of Redis, or given to it."),
    Metric::counter("tidings_hot_lists_checked_total", &["hit"], "Lists from Redis that were, or were not, current."),
    Metric::counter("tidings_hot_counters_total", &["outcome"], "Counters asked of Redis."),
    Metric::counter("tidings_hot_refreshes_total", &["outcome"], "Users of whom Redis was told what a commit changed."),
];

/// A stored counter differed from its facts and was recounted.
pub(crate) fn counter_drift(count: usize) {
    counter!("tidings_counter_drift_total").increment(count as u64);
}

/// A counter's stored value could not be read (truncated, garbage) and was recounted.
pub(crate) fn counter_malformed(count: usize) {
    counter!("tidings_counter_malformed_total").increment(count as u64);
}

/// An event was applied although one or more before it were not seen.
pub(crate) fn relation_version_gap(count: usize) {
    counter!("tidings_relation_version_gaps_total").increment(count as u64);
}

/// An event changed nothing, since a newer one of its pair had been applied.
pub(crate) fn relation_stale_event(count: usize) {
    counter!("tidings_relation_stale_events_total").increment(count as u64);
}

/// A first page was asked for and was, or was not, in memory.
pub(crate) fn top_page(hit: bool) {
    counter!("tidings_top_page_reads_total", "hit" => if hit { "true" } else { "false" }).increment(1);
}

/// A token was asked for where all processes share the buckets, or, without Redis, of this one's own.
pub(crate) fn bucket(answered_by: &'static str) {
    counter!("tidings_bucket_takes_total", "answered_by" => answered_by).increment(1);
}

/// Redis was asked for a part of a list, or given one.
pub(crate) fn hot_list(list: &'static str, outcome: &'static str) {
    counter!("tidings_hot_lists_total", "list" => list, "outcome" => outcome).increment(1);
}

/// A list from Redis was, or was not, as new as the database.
pub(crate) fn hot_list_checked(is_new: bool) {
    counter!("tidings_hot_lists_checked_total", "hit" => if is_new { "true" } else { "false" }).increment(1);
}

/// Redis was asked for counters.
pub(crate) fn hot_counters(outcome: &'static str) {
    counter!("tidings_hot_counters_total", "outcome" => outcome).increment(1);
}

/// Redis was told, or could not be told, what a commit changed for so many users.
pub(crate) fn hot_refresh(outcome: &'static str, users: usize) {
    counter!("tidings_hot_refreshes_total", "outcome" => outcome).increment(users as u64);
}
