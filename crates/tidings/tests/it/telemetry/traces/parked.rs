//! What is told of an event that cannot be applied.

use serde_json::{Value, json};
use tidings_testkit::{Kind, Part, World, caller::sent, model::Change, on_every_world};

use super::{CALLER, ROUTE, TRACE, is_left_out, json_lines, traced};
use crate::{
    database::Hand,
    telemetry::collector::{Collector, Received},
    until,
};

on_every_world!(a_parked_event_is_told_by_a_log_line_of_its_request_and_a_span_with_its_error);

/// Lines about events that were parked.
fn parked(world: &World) -> Vec<Value> {
    let is_parked = |line: &Value| line["message"] == "an event could not be applied; its key is parked";
    json_lines(&world.said(Part::Server)).into_iter().filter(is_parked).collect()
}

async fn a_parked_event_is_told_by_a_log_line_of_its_request_and_a_span_with_its_error(kind: Kind) {
    if is_left_out() {
        eprintln!("not run: the collector was left out");
        return;
    }
    let collector = Collector::start().await;
    let world = World::start_with(traced(kind, &collector).with("projector.retry_attempts", "1")).await;
    world.register(1..=2).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id = 1").await;
    let request = world.user(1).await.change_request(Change::Follow, 2).header("x-request-id", "request-7");
    sent(request.header("traceparent", format!("00-{TRACE}-{CALLER}-01"))).await.outcome();
    world.drain().await;
    let event = world.events(2).await.remove(0);

    until("the log to tell of it", async || !parked(&world).is_empty()).await;
    let [line] = &parked(&world)[..] else { panic!("it is told once: {}", world.said(Part::Server)) };
    assert_eq!((&line["request_id"], &line["traceparent"]), (&json!("request-7"), &event["traceparent"]), "{line}");
    assert_eq!((&line["event_id"], &line["event_type"]), (&event["id"], &event["type"]), "{line}");
    assert_eq!((&line["level"], &line["projector"], &line["key"]), (&json!("WARN"), &json!("relation"), &json!("1")));
    assert!(line["error"].as_str().unwrap().contains("poison"), "{line}");

    hand.admit().await;
    world.admin().await.post("/v1/admin/parked/redrive", &json!({ "key": "1" })).await.json(200);
    world.drain().await;
    assert!(world.stop().await.success());
    let named = |spans: &[Received], name: &str| -> Vec<Received> {
        spans.iter().filter(|span| span.trace_id == TRACE && span.name == name).cloned().collect()
    };
    let are_both_tried =
        |spans: &[Received]| named(spans, "project relation").len() == 2 && named(spans, ROUTE).len() == 1;
    let spans = collector.spans_until(are_both_tried).await;
    let (http, mut tries) = (named(&spans, ROUTE).remove(0), named(&spans, "project relation"));
    tries.sort_by_key(|span| span.start);
    let [failed, applied] = &tries[..] else { panic!("{tries:#?}") };
    for span in &tries {
        assert_eq!(span.parent, http.span_id, "{span:#?}");
        assert!(span.attributes.to_string().contains(event["id"].as_str().unwrap()), "{span:#?}");
    }
    assert!(failed.error.as_ref().is_some_and(|error| error.contains("poison")), "{failed:#?}");
    assert_eq!((&applied.error, failed.links.len(), applied.links.len()), (&None, 0, 1), "{applied:#?}");
}
