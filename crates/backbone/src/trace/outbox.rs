//! From a request to the outbox: the call of the ledger, the batch that joins many, the events.

use std::{cell::RefCell, future::Future, time::SystemTime};

use tidings_event::Event;

use super::{Begun, Context, Kind, current, is_on, links, push_bounded};
use crate::{Result, clock::moment};

/// An event that was written for a request that is traced.
#[derive(Debug)]
pub(crate) struct Emitted {
    context: Context,
    event_id: String,
    event_type: String,
    start: SystemTime,
}

tokio::task_local! {
    /// What was written in the batch that is being decided.
    static BATCH: RefCell<Vec<Emitted>>;
}

/// The call of a ledger, where the request that makes it is traced.
pub(crate) fn ledger_call() -> Option<Begun> {
    is_on().then(|| current(|scope| scope.context)).flatten().flatten().map(|context| Begun::now(Some(context)))
}

/// Those of the events whose requests are traced.
pub(crate) fn carried(events: &[Event]) -> Vec<Emitted> {
    if !is_on() {
        return Vec::new();
    }
    let mut carried = Vec::new();
    for event in events {
        if let Some(context) = Context::sampled(event.metadata.traceparent.as_deref()) {
            let (event_id, event_type) = (event.id.to_string(), event.event_type.clone());
            push_bounded(&mut carried, Emitted { context, event_id, event_type, start: moment() });
        }
    }
    carried
}

/// They are in the outbox. In the batch of a ledger they are told of once it is committed.
pub(crate) fn emitted(carried: Vec<Emitted>) {
    if carried.is_empty() {
        return;
    }
    let mut carried = Some(carried);
    let joined = BATCH.try_with(|batch| {
        let mut batch = batch.borrow_mut();
        carried.take().into_iter().flatten().for_each(|event| push_bounded(&mut batch, event));
    });
    if joined.is_err() {
        carried.into_iter().flatten().for_each(|event| tell(event, moment(), None));
    }
}

/// Commits a batch of a ledger, and tells of the traces that it carried.
pub(crate) async fn ledger_batch<T>(
    ledger: &'static str,
    commands: usize,
    committing: impl Future<Output = Result<T>>,
) -> Result<T> {
    if !is_on() {
        return committing.await;
    }
    let batch = Begun::now(None);
    let noting = async {
        let committed = committing.await;
        (committed, BATCH.with(RefCell::take))
    };
    let (committed, events) = BATCH.scope(RefCell::default(), noting).await;
    if committed.is_ok() && !events.is_empty() {
        let end = moment();
        let span = batch.end(format!("ledger {ledger} batch"), Kind::Internal).ended_at(end);
        let span = span.with("tidings.commands", commands).with("tidings.traced", events.len());
        span.linked(links(events.iter().map(|event| event.context))).tell();
        events.into_iter().for_each(|event| tell(event, end, Some(batch.context())));
    }
    committed
}

fn tell(event: Emitted, end: SystemTime, batch: Option<Context>) {
    let span = Begun::at(Some(event.context), event.start).end("outbox", Kind::Producer).ended_at(end);
    span.with("tidings.event.id", event.event_id)
        .with("tidings.event.type", event.event_type)
        .linked((batch.into_iter().collect(), 0))
        .tell();
}
