//! One request, followed through all processes by a real collector.

mod joined;
mod parked;

use serde_json::Value;
use tidings_backbone::clock::Stopwatch;
use tidings_testkit::{
    Kind, Options, Part, World, caller::sent, model::Change, on_every_distributed_world, on_every_world,
};
use tokio::net::TcpListener;

use super::collector::{Collector, Received};

on_every_world!(one_follow_is_one_trace_from_its_request_to_its_projection);
on_every_distributed_world!(one_follow_is_one_trace_also_where_relays_poll);

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const ROUTE: &str = "PUT /v1/me/following/{user_id}";

fn is_left_out() -> bool {
    std::env::var("TIDINGS_TEST_WITHOUT").is_ok_and(|without| without.split(',').any(|one| one == "otelcol"))
}

/// A world that sends spans to this collector.
fn traced(kind: Kind, collector: &Collector) -> Options {
    Options::new(crate::BINARY)
        .on(kind)
        .with("telemetry.otlp_endpoint", collector.url())
        // Nobody is traced but who asks for it.
        .with("telemetry.sample_ratio", "0")
        .with("telemetry.service_name", "a-community")
        .with("log.format", "json")
        .with("log.level", "info,tidings::http=debug")
}

fn json_lines(said: &str) -> Vec<Value> {
    said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

async fn one_follow_is_one_trace_from_its_request_to_its_projection(kind: Kind) {
    one_follow_is_one_trace(kind, "binlog").await;
}

async fn one_follow_is_one_trace_also_where_relays_poll(kind: Kind) {
    one_follow_is_one_trace(kind, "poll").await;
}

async fn one_follow_is_one_trace(kind: Kind, relay_mode: &str) {
    if is_left_out() {
        eprintln!("not run: the collector was left out");
        return;
    }
    let collector = Collector::start().await;
    let is_apart = kind != Kind::Embedded;
    let options = traced(kind, &collector).with("relay.mode", relay_mode);
    let world = World::start_with(if is_apart { options.apart() } else { options }).await;
    let event = followed(&world).await;
    let lines: Vec<String> = [Part::Server, Part::Api(1), Part::Api(2)].map(|part| world.said(part)).into();
    assert!(world.stop().await.success());

    let stages = if is_apart { 5 } else { 4 };
    let is_whole = |spans: &[Received]| spans.iter().filter(|span| span.trace_id == TRACE).count() >= stages;
    let spans = collector.spans_until(is_whole).await;
    let (http, path) = check_trace(&spans, &event, is_apart);
    check_batches(&spans, http, &path, is_apart);
    let others: Vec<_> = spans.iter().filter(|span| span.trace_id == other_trace()).collect();
    assert!(others.is_empty(), "nothing is made of what is not sampled, or asked for by a stranger: {others:#?}");

    let lines = lines.iter().flat_map(|said| json_lines(said));
    let mine: Vec<Value> = lines.filter(|line| line["request_id"] == "request-7").collect();
    assert!(!mine.is_empty(), "the request was logged");
    assert!(mine.iter().all(|line| line["trace_id"] == TRACE), "{mine:?}");
}

fn other_trace() -> String {
    TRACE.replace('4', "5")
}

/// One follow that is traced, and two changes that are not: one says so, the other says nothing. The event of the
/// first.
async fn followed(world: &World) -> Value {
    world.register(1..=3).await;
    let caller = world.user(1).await;
    let request = caller.change_request(Change::Follow, 2).header("x-request-id", "request-7");
    sent(request.header("traceparent", format!("00-{TRACE}-{CALLER}-01"))).await.outcome();
    let untraced = format!("00-{}-{CALLER}-00", other_trace());
    sent(caller.change_request(Change::Follow, 3).header("traceparent", &untraced)).await.outcome();
    caller.unfollow(3).await;
    // Whoever is not admitted does not decide what is traced.
    let stranger = world.nobody().request(reqwest::Method::GET, "/v1/me/relations?ids=1");
    let asked = format!("00-{}-{CALLER}-01", other_trace());
    sent(stranger.header("traceparent", &asked)).await.is_problem(401, "unauthenticated");
    let open = world.nobody().request(reqwest::Method::GET, "/v1/docs");
    sent(open.header("traceparent", &asked)).await;
    world.drain().await;
    let mut events = world.events(3).await;
    assert_eq!(events[1]["traceparent"], untraced);
    assert_eq!(events[2]["traceparent"], Value::Null);
    events.swap_remove(0)
}

/// The span of the request, and the spans of the event's way in their order, that of the request first.
fn check_trace<'s>(spans: &'s [Received], event: &Value, is_apart: bool) -> (&'s Received, Vec<&'s Received>) {
    let mine: Vec<&Received> = spans.iter().filter(|span| span.trace_id == TRACE).collect();
    let one = |name: &str| {
        let named: Vec<_> = mine.iter().filter(|span| span.name == name).collect();
        let [one] = named[..] else { panic!("one span `{name}` of {mine:#?}") };
        *one
    };
    let (http, ledger) = (one(ROUTE), one("ledger relation"));
    assert_eq!(http.parent, CALLER, "its parent is the caller's");
    assert_eq!(event["traceparent"], format!("00-{TRACE}-{}-01", http.span_id), "the event carries it on");
    let mut path = vec![http, one("outbox")];
    path.extend(is_apart.then(|| one("relay")));
    path.push(one("project relation"));
    assert_eq!(mine.len(), path.len() + 1, "{mine:#?}");
    for span in path.iter().skip(1).chain([&ledger]) {
        assert_eq!(span.parent, http.span_id, "{span:#?}");
        assert!(span.start <= span.end, "{span:#?}");
    }
    assert!(path.windows(2).all(|two| two[0].start <= two[1].start), "{path:#?}");
    assert!(http.end >= path[1].end, "the answer comes after the commit");
    let roles: Vec<&str> = path.iter().map(|span| span.role.as_str()).collect();
    let expected: &[&str] = if is_apart { &["api", "api", "relay", "project"] } else { &["serve"; 3] };
    assert_eq!(roles, expected);
    assert!(mine.iter().all(|span| span.service == "a-community"));
    let id = event["id"].as_str().unwrap();
    assert!(path[1..].iter().all(|span| span.attributes.to_string().contains(id)), "each names the event {id}");
    (http, path)
}

/// A batch has a trace of its own, and each of both knows the other.
fn check_batches(spans: &[Received], http: &Received, path: &[&Received], is_apart: bool) {
    let mut batches = vec!["ledger relation batch"];
    batches.extend(is_apart.then_some("relay batch"));
    batches.push("project relation batch");
    for (name, part) in batches.into_iter().zip(&path[1..]) {
        let batch: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
        let [batch] = batch[..] else { panic!("one span `{name}` of {spans:#?}") };
        assert_ne!(batch.trace_id, TRACE);
        assert_eq!(batch.links, [(TRACE.to_owned(), http.span_id.clone())], "{name}");
        assert_eq!(part.links, [(batch.trace_id.clone(), batch.span_id.clone())], "{name}");
    }
}

/// Everything is traced, and the collector is not there, or is there and never answers.
#[tokio::test]
async fn a_collector_that_is_away_or_frozen_costs_spans_and_nothing_else() {
    let frozen = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let frozen = format!("http://{}", frozen.local_addr().unwrap());
    for endpoint in ["http://127.0.0.1:9", &frozen] {
        let settings = [
            ("telemetry.otlp_endpoint", endpoint),
            ("telemetry.sample_ratio", "1"),
            ("telemetry.queue_spans_max", "32"),
            ("rate.follow_capacity", "1000"),
        ];
        let world = crate::embedded(&settings).await;
        world.register(1..=2).await;
        let caller = world.user(1).await;
        let began = Stopwatch::start();
        for _ in 0..50 {
            caller.follow(2).await;
            caller.unfollow(2).await;
        }
        assert!(began.seconds() < 10.0, "nobody waits for a collector: {} s", began.seconds());
        assert!(world.metric("tidings_trace_spans_dropped_total").await > 0.0);
        assert!(world.metric("tidings_trace_waiting_spans").await <= 32.0);
        world.drain().await;
        world.verify().await;
        let said = world.said(Part::Server);
        let began = Stopwatch::start();
        assert!(world.stop().await.success());
        assert!(began.seconds() < 10.0, "the end does not wait for it: {} s", began.seconds());
        assert!(said.matches("the collector of traces takes nothing").count() <= 1, "{said}");
    }
}
