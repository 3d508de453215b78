//! Traces: what was done for one request, from its arrival to the last projector, as spans of one trace.
//!
//! The context of a trace travels with the event (its `traceparent`, as W3C writes it), so each stage makes spans of
//! the same trace, in whichever process it runs. Where a batch joins many requests, it has a span of its own that
//! is linked to them, and each event that is traced has its own span beside.
//!
//! Nothing is made for what is not sampled, and nothing at all before somebody [collects](collect) spans. Whoever
//! makes a span hands it over without waiting: when the collector has too many, the span is dropped and counted.
//!
//! In reading order: `context` (what identifies a span), `sampling` (which requests are traced), `span` (what is
//! told), `scope` (the request that is being served), then the stages: `outbox`, `relay`, `project`.

mod context;
mod outbox;
mod project;
mod relay;
mod sampling;
mod scope;
mod span;

use std::sync::OnceLock;

use tokio::sync::mpsc;

pub use context::{Context, SpanId, TraceId};
pub use relay::Read;
pub use sampling::Sampling;
pub use scope::{Scope, current, within};
pub use span::{Begun, Ended, Kind, Span, Value};

pub(crate) use outbox::{carried, emitted, ledger_batch, ledger_call};
pub(crate) use project::{applied, failed, started};
pub(crate) use relay::{RelayTrace, read};

use crate::{
    limits::{TRACE_BATCH_EVENTS_MAX, TRACE_LINKS_MAX},
    telemetry,
};

static COLLECTOR: OnceLock<mpsc::Sender<Span>> = OnceLock::new();

/// Turns traces on: spans come out of what this returns, in the order of their ends, at most `spans_max` waiting.
/// A process has one collector; nothing when there is one already.
pub fn collect(spans_max: usize) -> Option<mpsc::Receiver<Span>> {
    let (sender, receiver) = mpsc::channel(spans_max.max(1));
    COLLECTOR.set(sender).is_ok().then_some(receiver)
}

/// Whether somebody collects spans.
pub fn is_on() -> bool {
    COLLECTOR.get().is_some()
}

/// Spans that wait for the collector, and how many may.
pub fn waiting() -> Option<(usize, usize)> {
    COLLECTOR.get().map(|spans| (spans.max_capacity() - spans.capacity(), spans.max_capacity()))
}

/// Hands a span over; one too many is dropped and counted.
fn send(span: Span) {
    if let Some(spans) = COLLECTOR.get()
        && spans.try_send(span).is_err()
    {
        telemetry::spans_dropped("queue_full", 1);
    }
}

/// The traces of a batch: some are linked to its span, the others are only counted.
fn links(contexts: impl Iterator<Item = Context>) -> (Vec<Context>, usize) {
    let mut links = Vec::new();
    let mut left_out = 0;
    for context in contexts {
        if links.contains(&context) {
            // Several events of one request.
        } else if links.len() < TRACE_LINKS_MAX {
            links.push(context);
        } else {
            left_out += 1;
        }
    }
    (links, left_out)
}

/// Adds an item to those of a batch; one too many is dropped and counted.
fn push_bounded<T>(items: &mut Vec<T>, item: T) {
    if items.len() < TRACE_BATCH_EVENTS_MAX {
        items.push(item);
    } else {
        telemetry::spans_dropped("batch_full", 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_linked_once_to_each_request_up_to_a_bound_and_counts_the_others() {
        let requests: Vec<Context> = (0..TRACE_LINKS_MAX + 8).map(|_| Context::root()).collect();
        assert_eq!(links([requests[0], requests[1], requests[0]].into_iter()), (requests[..2].to_vec(), 0));
        assert_eq!(links(requests[..TRACE_LINKS_MAX].iter().copied()), (requests[..TRACE_LINKS_MAX].to_vec(), 0));
        assert_eq!(links(requests.iter().copied()), (requests[..TRACE_LINKS_MAX].to_vec(), 8));
    }

    #[test]
    fn of_one_batch_so_many_events_are_traced_and_no_more() {
        let mut events = Vec::new();
        (0..TRACE_BATCH_EVENTS_MAX + 1).for_each(|event| push_bounded(&mut events, event));
        assert_eq!(events, (0..TRACE_BATCH_EVENTS_MAX).collect::<Vec<_>>());
    }
}
