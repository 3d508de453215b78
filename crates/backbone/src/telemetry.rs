//! Metrics of the path: each occurrence has its name in one place, and [`METRICS`] says what each means.

mod metric;
mod table;

use metrics::{SharedString, counter, gauge, histogram};

pub use metric::{Buckets, Kind, Metric};
pub use table::METRICS;

use crate::parking::Counts;

/// Events written to the outbox. They exist only if their transaction commits.
pub(crate) fn events_emitted(count: usize) {
    counter!("tidings_outbox_events_total").increment(count as u64);
}

/// A batch of the ledger was processed, in this many seconds.
pub(crate) fn ledger_batch(ledger: &'static str, commands: usize, seconds: f64) {
    counter!("tidings_ledger_commands_total", "ledger" => ledger).increment(commands as u64);
    histogram!("tidings_ledger_batch_commands", "ledger" => ledger).record(commands as f64);
    histogram!("tidings_ledger_batch_seconds", "ledger" => ledger).record(seconds);
}

/// Commands answered with a failure of the database.
pub(crate) fn ledger_failed(ledger: &'static str, commands: usize) {
    counter!("tidings_ledger_failed_total", "ledger" => ledger).increment(commands as u64);
}

/// A command was not taken: too many wait, or the ledger is shutting down.
pub(crate) fn ledger_refused(ledger: &'static str, why: &'static str) {
    counter!("tidings_ledger_refused_total", "ledger" => ledger, "why" => why).increment(1);
}

/// A batch is decided once more: another process was faster, or the database is in trouble.
pub(crate) fn ledger_retried(ledger: &'static str, why: &'static str) {
    counter!("tidings_ledger_retries_total", "ledger" => ledger, "why" => why).increment(1);
}

/// Commands that a ledger has taken and not answered, and how many it takes.
pub(crate) fn ledger_waiting(ledger: &'static str, commands: usize, commands_max: usize) {
    gauge!("tidings_ledger_waiting_commands", "ledger" => ledger).set(commands as f64);
    gauge!("tidings_ledger_waiting_commands_max", "ledger" => ledger).set(commands_max as f64);
}

/// Whoever wanted to write has got his turn or his connection, after this many seconds.
pub(crate) fn write_waited(seconds: f64) {
    histogram!("tidings_database_write_wait_seconds").record(seconds);
}

/// Connections of one kind that are in use, and how many there may be.
pub(crate) fn connections(kind: &'static str, used: usize, max: usize) {
    gauge!("tidings_database_connections", "kind" => kind).set(used as f64);
    gauge!("tidings_database_connections_max", "kind" => kind).set(max as f64);
}

/// A batch of a projector was committed.
pub(crate) fn projector_batch(projector: SharedString, events: usize, seconds: f64) {
    counter!("tidings_projector_events_total", "projector" => projector.clone()).increment(events as u64);
    histogram!("tidings_projector_batch_events", "projector" => projector.clone()).record(events as f64);
    histogram!("tidings_projector_batch_seconds", "projector" => projector).record(seconds);
}

/// From commit of the oldest event of a batch to its effects being visible.
pub(crate) fn projector_delay(projector: SharedString, seconds: f64) {
    histogram!("tidings_projector_delay_seconds", "projector" => projector).record(seconds);
}

/// A projector may come upon events of a type that nobody declared. Told before the first one, whose increase
/// nobody would see otherwise.
pub(crate) fn no_unknown_event(projector: &str) {
    counter!("tidings_projector_unknown_events_total", "projector" => projector.to_owned()).increment(0);
}

/// Events of a type that nobody declared, passed over.
pub(crate) fn unknown_event(projector: SharedString) {
    counter!("tidings_projector_unknown_events_total", "projector" => projector).increment(1);
}

/// A key was parked.
pub(crate) fn key_parked(projector: SharedString) {
    counter!("tidings_parked_total", "projector" => projector).increment(1);
}

/// A key spent its attempts.
pub(crate) fn key_dead(projector: SharedString) {
    counter!("tidings_dead_total", "projector" => projector).increment(1);
}

/// Events were applied because an operator had their key redriven.
pub(crate) fn events_redriven(projector: SharedString, events: usize) {
    counter!("tidings_redriven_events_total", "projector" => projector).increment(events as u64);
}

/// So many times was this action noted in the audit, by whichever process.
pub(crate) fn actions_noted(action: &str, count: u64) {
    counter!("tidings_actions_total", "action" => action.to_owned()).absolute(count);
}

/// So many events of a projector have operators discarded, through whichever process.
pub(crate) fn events_discarded(projector: &str, count: u64) {
    counter!("tidings_discarded_events_total", "projector" => projector.to_owned()).absolute(count);
}

/// The webhook of alerts has taken so many deaths.
pub(crate) fn alerts_sent(deaths: usize) {
    counter!("tidings_alerts_sent_total").increment(deaths as u64);
}

/// It did not, and will be told again.
pub(crate) fn alert_failed() {
    counter!("tidings_alerts_failed_total").increment(1);
}

/// A dependency of the projector is down and it waits.
pub(crate) fn projector_backoff(projector: SharedString) {
    counter!("tidings_projector_backoffs_total", "projector" => projector).increment(1);
}

/// How far a projector is behind, as measured at the source: events, and the ages in seconds of the oldest that
/// it has not reached and of the oldest that it has not applied, parked ones among them.
pub fn projector_lag(projector: &str, events: i64, reached_age_seconds: f64, oldest_age_seconds: f64) {
    let projector = projector.to_owned();
    gauge!("tidings_projector_lag_events", "projector" => projector.clone()).set(events as f64);
    gauge!("tidings_projector_lag_age_seconds", "projector" => projector.clone()).set(reached_age_seconds);
    gauge!("tidings_projector_oldest_age_seconds", "projector" => projector).set(oldest_age_seconds);
}

/// What a projector is doing in this process: 1 for its state, 0 for the others of `states`.
pub(crate) fn projector_state(projector: &str, state: &'static str, states: &[&'static str]) {
    for other in states {
        let is_it = f64::from(*other == state);
        gauge!("tidings_projector_state", "projector" => projector.to_owned(), "state" => *other).set(is_it);
    }
}

/// Where the last rebuild of a projector stands: 1 for its state, 0 for the others of `states`.
pub(crate) fn rebuild_state(projector: &'static str, state: &'static str, states: impl Iterator<Item = &'static str>) {
    for other in states {
        let is_it = f64::from(other == state);
        gauge!("tidings_rebuild_state", "projector" => projector, "state" => other).set(is_it);
    }
}

/// Keys of a projector that wait for a retry, that are tried because somebody said so, and that are dead.
pub(crate) fn parked_keys(projector: &str, Counts { retrying, redriving, dead }: Counts) {
    for (state, keys) in [("retrying", retrying), ("redriving", redriving), ("dead", dead)] {
        gauge!("tidings_parked_keys", "projector" => projector.to_owned(), "state" => state).set(keys as f64);
    }
}

/// A batch was handed to the relay's writer.
pub(crate) fn relay_handed_over(bytes: usize) {
    histogram!("tidings_relay_batch_bytes").record(bytes as f64);
}

/// A batch of the relay is in the log, after this many seconds of writing.
pub(crate) fn relay_batch(records: usize, dead: usize, seconds: f64) {
    counter!("tidings_relay_records_total").increment(records as u64);
    counter!("tidings_relay_dead_letters_total").increment(dead as u64);
    histogram!("tidings_relay_batch_records").record(records as f64);
    histogram!("tidings_relay_batch_seconds").record(seconds);
}

/// From commit of the oldest event of a batch to its being in the log.
pub(crate) fn relay_delay(seconds: f64) {
    histogram!("tidings_relay_delay_seconds").record(seconds);
}

/// Events of the outbox that are not in the log, and the age of the oldest, as measured at the source.
pub(crate) fn outbox_unrelayed(events: i64, oldest_age_seconds: f64) {
    gauge!("tidings_outbox_unrelayed_events").set(events as f64);
    gauge!("tidings_outbox_unrelayed_age_seconds").set(oldest_age_seconds);
}

/// How long the oldest event has been waiting that the relay has read and that is not in the log.
pub(crate) fn relay_age(seconds: f64) {
    gauge!("tidings_relay_oldest_age_seconds").set(seconds);
}

/// The relay's source or sink is away and it waits.
pub(crate) fn relay_backoff() {
    counter!("tidings_relay_backoffs_total").increment(1);
}

/// The relay of this process has become the active one.
pub(crate) fn relay_turn() {
    counter!("tidings_relay_turns_total").increment(1);
}

/// What the relay of this process is doing: 1 for its state, 0 for the others of `states`.
pub(crate) fn relay_state(state: &'static str, states: &[&'static str]) {
    for other in states {
        gauge!("tidings_relay_state", "state" => *other).set(f64::from(*other == state));
    }
}

/// Whether some process is the active relay, as the database tells.
pub(crate) fn relay_lease_held(is_held: bool) {
    gauge!("tidings_relay_lease_held").set(f64::from(is_held));
}

/// What a check of the last reconciliation found.
pub(crate) fn reconciliation_found(check: &str, differences: u64, lagging: u64) {
    gauge!("tidings_reconciliation_differences", "check" => check.to_owned()).set(differences as f64);
    gauge!("tidings_reconciliation_lagging", "check" => check.to_owned()).set(lagging as f64);
}

/// How long ago the last whole reconciliation was done.
pub(crate) fn reconciliation_age(seconds: f64) {
    gauge!("tidings_reconciliation_age_seconds").set(seconds);
}

/// How often a reconciliation is due; 0 for never.
pub(crate) fn reconciliation_every(seconds: f64) {
    gauge!("tidings_reconciliation_every_seconds").set(seconds);
}

/// So many reconciliations have ended so, whichever process did them.
pub(crate) fn reconciliations_ended(outcome: &str, count: u64) {
    counter!("tidings_reconciliation_runs_total", "outcome" => outcome.to_owned()).absolute(count);
}

/// So many events have repairs written, in whichever process.
pub(crate) fn reconciliation_repaired(events: u64) {
    counter!("tidings_reconciliation_repaired_events_total").absolute(events);
}

/// Spans were not handed over or not sent.
pub fn spans_dropped(why: &'static str, spans: usize) {
    counter!("tidings_trace_spans_dropped_total", "why" => why).increment(spans as u64);
}

/// Spans were sent.
pub fn spans_sent(spans: usize) {
    counter!("tidings_trace_spans_sent_total").increment(spans as u64);
}

/// Spans that wait to be sent, and how many may.
pub fn spans_waiting(spans: usize, spans_max: usize) {
    gauge!("tidings_trace_waiting_spans").set(spans as f64);
    gauge!("tidings_trace_waiting_spans_max").set(spans_max as f64);
}

/// Old rows were removed.
pub(crate) fn retention_removed(what: &'static str, rows: u64) {
    counter!("tidings_retention_removed_total", "what" => what).increment(rows);
}

/// Redis can be used, or cannot.
pub(crate) fn redis_up(up: bool) {
    gauge!("tidings_redis_up").set(if up { 1.0 } else { 0.0 });
}

/// A call of Redis was not answered: it was down, had failed, or too many were under way.
pub(crate) fn redis_refused(why: &'static str) {
    counter!("tidings_redis_refused_total", "why" => why).increment(1);
}
