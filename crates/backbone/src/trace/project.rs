//! From the log to a projection: a batch of a projector, and the events in it that are traced.

use std::time::SystemTime;

use super::{Begun, Context, Kind, is_on, links, push_bounded};
use crate::{
    clock::moment,
    log::{Part, Recorded},
};

/// When a batch began, where traces are on.
pub(crate) fn started() -> Option<SystemTime> {
    is_on().then(moment)
}

/// The effects of a transaction are committed: of the events of each of these parts.
pub(crate) fn applied(projector: &'static str, parts: &[(&Part, &[Recorded])], started: Option<SystemTime>) {
    let Some(start) = started else { return };
    let (mut traced, mut count) = (Vec::new(), 0);
    for (part, events) in parts {
        count += events.len();
        for recorded in *events {
            if let Some(context) = Context::sampled(recorded.event.metadata.traceparent.as_deref()) {
                push_bounded(&mut traced, (context, *part, recorded));
            }
        }
    }
    if traced.is_empty() {
        return;
    }
    let (batch, end) = (Begun::at(None, start), moment());
    let span = batch.end(format!("project {projector} batch"), Kind::Consumer).ended_at(end);
    let span = span.with("tidings.events", count).with("tidings.traced", traced.len());
    span.linked(links(traced.iter().map(|(context, ..)| *context))).tell();
    for (context, part, recorded) in traced {
        tell(projector, part, recorded, context, Times { start, end }, (Some(batch.context()), None));
    }
}

/// An event could not be applied, and is parked or tried again later.
pub(crate) fn failed(projector: &'static str, part: &Part, recorded: &Recorded, error: &str) {
    if !is_on() {
        return;
    }
    if let Some(context) = Context::sampled(recorded.event.metadata.traceparent.as_deref()) {
        let now = moment();
        tell(projector, part, recorded, context, Times { start: now, end: now }, (None, Some(error.to_owned())));
    }
}

struct Times {
    start: SystemTime,
    end: SystemTime,
}

fn tell(
    projector: &'static str,
    part: &Part,
    Recorded { offset, event }: &Recorded,
    context: Context,
    Times { start, end }: Times,
    (batch, error): (Option<Context>, Option<String>),
) {
    let span = Begun::at(Some(context), start).remote().end(format!("project {projector}"), Kind::Consumer);
    span.ended_at(end)
        .with("tidings.event.id", event.id.to_string())
        .with("tidings.event.type", event.event_type.clone())
        .with("messaging.destination.name", part.topic.clone())
        .with("messaging.destination.partition.id", part.number.to_string())
        .with("messaging.kafka.offset", offset.0)
        .linked((batch.into_iter().collect(), 0))
        .failed(error)
        .tell();
}
