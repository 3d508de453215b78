//! From the outbox to the log: a batch of the relay, and the events in it that are traced.

use std::{sync::Arc, time::SystemTime};

use super::{Begun, Context, Kind, context::CONTEXT_CHARS, is_on, links, push_bounded};
use crate::{clock::moment, relay::Record};

const TRACEPARENT: &str = "\"traceparent\"";

/// When a row was read whose request is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    context: Context,
    at: SystemTime,
}

/// Looks into the metadata of a row, where traces are on.
pub(crate) fn read<'m>(metadata: impl FnOnce() -> Option<&'m str>) -> Option<Box<Read>> {
    if !is_on() {
        return None;
    }
    // Whatever else the metadata is, the context stands in it as it was written.
    let (_, rest) = metadata()?.split_once(TRACEPARENT)?;
    let text = rest.trim_start_matches([' ', ':', '"']).get(..CONTEXT_CHARS);
    Context::sampled(text).map(|context| Box::new(Read { context, at: moment() }))
}

/// What one step of the relay's writer carries.
#[derive(Debug, Default)]
pub(crate) struct RelayTrace {
    begun: Option<Begun>,
    events: Vec<Relayed>,
}

#[derive(Debug)]
struct Relayed {
    read: Read,
    event_id: Arc<str>,
    topic: Arc<str>,
}

impl RelayTrace {
    /// Records were given to the sink.
    pub(crate) fn took(&mut self, records: &[Record]) {
        if !is_on() {
            return;
        }
        self.begun.get_or_insert_with(|| Begun::now(None));
        for record in records {
            if let Some(read) = record.trace.as_deref() {
                let (event_id, topic) = (record.event_id.clone(), record.topic.clone());
                push_bounded(&mut self.events, Relayed { read: *read, event_id, topic });
            }
        }
    }

    /// All that was given is in the log.
    pub(crate) fn written(&mut self, records: usize) {
        let Self { begun, events } = std::mem::take(self);
        let Some(batch) = begun.filter(|_| !events.is_empty()) else { return };
        let end = moment();
        let span = batch.end("relay batch", Kind::Producer).ended_at(end);
        let span = span.with("tidings.records", records).with("tidings.traced", events.len());
        span.linked(links(events.iter().map(|event| event.read.context))).tell();
        for Relayed { read, event_id, topic } in events {
            let span = Begun::at(Some(read.context), read.at).remote().end("relay", Kind::Producer).ended_at(end);
            span.with("tidings.event.id", event_id)
                .with("messaging.destination.name", topic)
                .linked((vec![batch.context()], 0))
                .tell();
        }
    }
}
