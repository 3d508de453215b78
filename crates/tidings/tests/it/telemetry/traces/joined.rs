//! Batches that join many requests, each of which has a trace of its own.

use std::collections::BTreeSet;

use futures::future::{join, join_all};
use tidings_backbone::limits::TRACE_LINKS_MAX;
use tidings_testkit::{Kind, World, caller::sent, model::Change, on_every_world};

use super::{CALLER, ROUTE, is_left_out, traced};
use crate::{
    database::Hand,
    telemetry::collector::{Collector, Received},
    until_metric,
};

on_every_world!(a_batch_is_linked_to_each_request_that_it_joins_up_to_a_bound_and_counts_the_others);

/// In whichever two batches they are committed, one of them has more than are linked.
const REQUESTS: usize = 70;
/// The span of a batch, and that of each event in it.
const LEDGER: (&str, &str) = ("ledger relation batch", "outbox");
const RELAY: (&str, &str) = ("relay batch", "relay");
const PROJECTOR: (&str, &str) = ("project relation batch", "project relation");

fn named<'s>(spans: &'s [Received], name: &str) -> Vec<&'s Received> {
    spans.iter().filter(|span| span.name == name).collect()
}

async fn a_batch_is_linked_to_each_request_that_it_joins_up_to_a_bound_and_counts_the_others(kind: Kind) {
    if is_left_out() {
        eprintln!("not run: the collector was left out");
        return;
    }
    let collector = Collector::start().await;
    let world = World::start_with(traced(kind, &collector).with("rate.follow_capacity", 1_000)).await;
    world.register(1..=REQUESTS as u64 + 1).await;
    world.drain().await;
    follow_at_once(&world).await;
    world.drain().await;
    assert!(world.stop().await.success());

    let stages = if kind == Kind::Embedded { &[LEDGER, PROJECTOR][..] } else { &[LEDGER, RELAY, PROJECTOR] };
    let carries_all = |spans: &[Received], (batch, event): (&str, &str)| {
        let links = named(spans, batch).iter().map(|batch| batch.links.len() + batch.links_left_out).sum::<usize>();
        links == REQUESTS && named(spans, event).len() == REQUESTS
    };
    let are_whole = |spans: &[Received]| {
        named(spans, ROUTE).len() == REQUESTS && stages.iter().all(|stage| carries_all(spans, *stage))
    };
    let spans = collector.spans_until(are_whole).await;
    for stage in stages {
        check_batches(&spans, *stage);
    }
    let is_bounded = |batch: &&Received| batch.links_left_out > 0;
    assert!(named(&spans, LEDGER.0).iter().any(is_bounded), "{:#?}", named(&spans, LEDGER.0));
}

/// Follows at the same time, so that the ledger has to join them: it cannot commit before all are there.
async fn follow_at_once(world: &World) {
    let mut hand = Hand::in_database_of(world).await;
    let (hold, release) = match hand {
        Hand::Sqlite(_) => ("BEGIN IMMEDIATE", "COMMIT"),
        Hand::Mysql(_) => ("LOCK TABLES following WRITE", "UNLOCK TABLES"),
    };
    let caller = world.user(1).await;
    let follow = |to: u64| {
        let traceparent = format!("00-{to:032x}-{CALLER}-01");
        sent(caller.change_request(Change::Follow, to).header("traceparent", traceparent))
    };
    hand.run(hold).await;
    let releasing = async {
        until_metric(world, "tidings_ledger_waiting_commands", |commands| commands == REQUESTS as f64).await;
        hand.run(release).await;
    };
    let (answers, ()) = join(join_all((2..=REQUESTS as u64 + 1).map(follow)), releasing).await;
    assert!(answers.iter().all(|answer| answer.outcome().changed));
}

/// Batches know requests, each one once, and each event knows its batch, though that may not know its request.
fn check_batches(spans: &[Received], (batch, event): (&str, &str)) {
    let identity = |span: &Received| (span.trace_id.clone(), span.span_id.clone());
    let requests: BTreeSet<_> = named(spans, ROUTE).into_iter().map(identity).collect();
    let batches = named(spans, batch);
    let links: Vec<_> = batches.iter().flat_map(|batch| batch.links.clone()).collect();
    assert_eq!(links.iter().collect::<BTreeSet<_>>().len(), links.len(), "{batch}: each is linked once");
    assert!(links.iter().all(|link| requests.contains(link)), "{batch}: {links:?} are links to requests");
    assert!(batches.iter().any(|batch| batch.links.len() > 1), "{batch}: one joins many: {batches:#?}");
    for one in &batches {
        let linked = one.links.len();
        assert!(linked == TRACE_LINKS_MAX || (linked < TRACE_LINKS_MAX && one.links_left_out == 0), "{one:#?}");
    }
    let batches: BTreeSet<_> = batches.into_iter().map(identity).collect();
    for one in named(spans, event) {
        assert!(matches!(&one.links[..], [link] if batches.contains(link)), "{one:#?}");
    }
}
