//! Every metric of this crate, in the order of the path.

use super::{
    Buckets::{Bytes, Delay, Size, Work},
    Metric,
};

/// What each metric of this crate means.
pub const METRICS: &[Metric] = &[
    // The ledger
    Metric::counter("tidings_ledger_commands_total", &["ledger"], "Commands that were decided, or failed to be."),
    Metric::histogram("tidings_ledger_batch_commands", Size, &["ledger"], "Commands of one batch."),
    Metric::histogram(
        "tidings_ledger_batch_seconds",
        Work,
        &["ledger"],
        "Time from the beginning of a batch to its answers, tries that failed included.",
    ),
    Metric::counter("tidings_ledger_failed_total", &["ledger"], "Commands that the database did not commit."),
    Metric::counter(
        "tidings_ledger_refused_total",
        &["ledger", "why"],
        "Commands that were not taken, because too many wait (busy) or the process ends (closed).",
    ),
    Metric::counter(
        "tidings_ledger_retries_total",
        &["ledger", "why"],
        "Batches decided once more, because another process was faster (race) or the database failed (trouble).",
    ),
    Metric::gauge("tidings_ledger_waiting_commands", &["ledger"], "Commands that were taken and are not answered."),
    Metric::gauge("tidings_ledger_waiting_commands_max", &["ledger"], "Commands that may wait before one is refused."),
    // The database
    Metric::histogram(
        "tidings_database_write_wait_seconds",
        Work,
        &[],
        "Time that a transaction waited for its turn to write, or for a connection.",
    ),
    Metric::gauge(
        "tidings_database_connections",
        &["kind"],
        "Connections in use, for writing and for reading. SQLite has one that writes.",
    ),
    Metric::gauge("tidings_database_connections_max", &["kind"], "Connections that may be in use at once."),
    // The outbox
    Metric::counter(
        "tidings_outbox_events_total",
        &[],
        "Events written to the outbox; those of a transaction that was then rolled back count too.",
    ),
    Metric::gauge(
        "tidings_outbox_unrelayed_events",
        &[],
        "Committed events that are not in the log, measured at the database: true while every relay is dead.",
    ),
    Metric::gauge("tidings_outbox_unrelayed_age_seconds", &[], "Age of the oldest of them; 0 when there is none."),
    Metric::counter(
        "tidings_retention_removed_total",
        &["what"],
        "Old rows that were removed: events, or answers of idempotent requests.",
    ),
    // The relay
    Metric::gauge(
        "tidings_relay_lease_held",
        &[],
        "Whether some process is the active relay, asked of the database: true while every relay is dead.",
    ),
    Metric::gauge("tidings_relay_state", &["state"], "1 for what the relay of this process is doing, else 0."),
    Metric::counter("tidings_relay_turns_total", &[], "Times that the relay of this process became the active one."),
    Metric::counter("tidings_relay_records_total", &[], "Records appended to the log."),
    Metric::counter("tidings_relay_dead_letters_total", &[], "Rows that could not be published and were set aside."),
    Metric::histogram("tidings_relay_batch_records", Size, &[], "Records appended in one step."),
    Metric::histogram("tidings_relay_batch_bytes", Bytes, &[], "Bytes of a batch; at 1 MiB the reader waits."),
    Metric::histogram("tidings_relay_batch_seconds", Work, &[], "Time to append a batch and its checkpoint."),
    Metric::histogram(
        "tidings_relay_delay_seconds",
        Delay,
        &[],
        "From the commit of the oldest event of a batch to its being in the log. A binlog tells whole seconds.",
    ),
    Metric::gauge(
        "tidings_relay_oldest_age_seconds",
        &[],
        "Age of the oldest event that this relay has read and that is not in the log.",
    ),
    Metric::counter("tidings_relay_backoffs_total", &[], "Times that the source or the sink was away."),
    // Projectors
    Metric::gauge(
        "tidings_projector_state",
        &["projector", "state"],
        "1 for what a projector does in this process (waiting, running, backing_off, stopped, unregistered), else 0.",
    ),
    Metric::counter("tidings_projector_events_total", &["projector"], "Events dealt with."),
    Metric::histogram("tidings_projector_batch_events", Size, &["projector"], "Events of one batch."),
    Metric::histogram(
        "tidings_projector_batch_seconds",
        Work,
        &["projector"],
        "Time to apply a batch, its commit and what follows it included.",
    ),
    Metric::histogram(
        "tidings_projector_delay_seconds",
        Delay,
        &["projector"],
        "From the commit of the oldest event of a batch to its effects being visible.",
    ),
    Metric::gauge(
        "tidings_projector_lag_events",
        &["projector"],
        "Events in the log that the projector has not reached, measured at the log: true while it is dead.",
    ),
    Metric::gauge(
        "tidings_projector_lag_age_seconds",
        &["projector"],
        "Age of the oldest event in the log that the projector has not reached; 0 when there is none.",
    ),
    Metric::gauge(
        "tidings_projector_oldest_age_seconds",
        &["projector"],
        "Age of the oldest event that is not applied, parked and not relayed ones included; 0 when there is none.",
    ),
    Metric::counter("tidings_projector_backoffs_total", &["projector"], "Times that something it needs was away."),
    Metric::counter("tidings_projector_unknown_events_total", &["projector"], "Events of a type that nobody declared."),
    Metric::gauge(
        "tidings_rebuild_state",
        &["projector", "state"],
        "1 for where the last rebuild of a projector stands, whoever leads it; `paused` is one that is held up.",
    ),
    // The parking lot
    Metric::gauge("tidings_parked_keys", &["projector", "state"], "Keys that are retried, redriven, or dead."),
    Metric::counter("tidings_parked_total", &["projector"], "Keys that were parked."),
    Metric::counter("tidings_dead_total", &["projector"], "Keys whose attempts were spent."),
    Metric::counter("tidings_redriven_events_total", &["projector"], "Events applied because their key was redriven."),
    Metric::counter(
        "tidings_discarded_events_total",
        &["projector"],
        "Events that operators discarded, through whichever process; counted in the database.",
    ),
    Metric::counter(
        "tidings_actions_total",
        &["action"],
        "What the audit notes, such as parking.redrive, through whichever process; counted in the database.",
    ),
    Metric::counter("tidings_alerts_sent_total", &[], "Deaths of keys that the webhook of alerts has taken."),
    Metric::counter("tidings_alerts_failed_total", &[], "Times that it did not; they are told again."),
    // Reconciliation
    Metric::gauge(
        "tidings_reconciliation_differences",
        &["check"],
        "Differences that each check of the last whole reconciliation found, whichever process did it.",
    ),
    Metric::gauge("tidings_reconciliation_lagging", &["check"], "What differed only because it was on its way."),
    Metric::gauge(
        "tidings_reconciliation_age_seconds",
        &[],
        "Time since the last whole reconciliation was done; since the first one began where none was.",
    ),
    Metric::gauge(
        "tidings_reconciliation_every_seconds",
        &[],
        "Time from one reconciliation on schedule to the next, in processes that do them; 0 for none.",
    ),
    Metric::counter(
        "tidings_reconciliation_runs_total",
        &["outcome"],
        "Reconciliations, in all their parts (done) or not (failed), by whichever process; counted in the database.",
    ),
    Metric::counter(
        "tidings_reconciliation_repaired_events_total",
        &[],
        "Events that repairs have written, in whichever process; counted in the database.",
    ),
    // Traces
    Metric::counter("tidings_trace_spans_sent_total", &[], "Spans that a collector has taken."),
    Metric::counter(
        "tidings_trace_spans_dropped_total",
        &["why"],
        "Spans that were lost: too many wait (queue_full), too many in one batch (batch_full), or the collector did \
         not take them (not_sent).",
    ),
    Metric::gauge("tidings_trace_waiting_spans", &[], "Spans that wait to be sent."),
    Metric::gauge("tidings_trace_waiting_spans_max", &[], "Spans that may wait before one is dropped."),
    // Redis
    Metric::gauge("tidings_redis_up", &[], "Whether Redis can be used."),
    Metric::counter(
        "tidings_redis_refused_total",
        &["why"],
        "Calls of Redis without an answer: it was down, the call failed, or too many were under way (busy).",
    ),
];
