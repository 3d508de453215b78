//! The metrics of running processes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;
use tidings::telemetry::metrics;
use tidings_backbone::telemetry::Kind as Type;
use tidings_testkit::{Kind, Options, Part, World, model::Change, on_every_distributed_world, on_every_world};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{database::Hand, until_metric, world_on};

/// Series of one process, whatever its clients do.
const SERIES_MAX: usize = 2_000;

on_every_world!(every_series_is_described_and_their_number_is_bounded);
on_every_distributed_world!(
    ages_are_true_while_relays_and_projectors_are_dead,
    a_scrape_is_answered_whole_and_in_time_while_the_database_is_frozen,
    without_kafka_a_scrape_is_answered_and_says_what_it_does_not_know,
);

/// One line of a page of metrics: the name, the labels, the value.
fn parse(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let pairs = labels.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty());
    let labels = pairs.map(|pair| {
        let (label, value) = pair.split_once("=\"").unwrap();
        (label.to_owned(), value.trim_end_matches('"').to_owned())
    });
    (name.to_owned(), labels.collect(), value.parse().unwrap())
}

async fn every_series_is_described_and_their_number_is_bounded(kind: Kind) {
    let settings =
        [("rate.follow_capacity", "8"), ("projector.retry_attempts", "1"), ("relation.top_page_followers_min", "2")];
    let world = world_on(kind, &settings).await;
    world.register(1..=30).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id = 7").await;
    let callers = join_all((1..=30).map(|user| world.user(user))).await;
    join_all((1..=10).flat_map(|to| callers.iter().map(move |caller| caller.change(Change::Follow, to)))).await;
    world.passed().await;
    for user in 1..=30 {
        world.counters(user).await;
        world.followers(user).await;
        world.nobody().get(&format!("/v1/nothing/{user}/here")).await;
        world.nobody().get(&format!("/v1/users/{user}")).await;
        let method = reqwest::Method::from_bytes(format!("METHOD{user}").as_bytes()).unwrap();
        world.client().request(method, format!("{}/v1/users/{user}", world.url())).send().await.unwrap();
    }
    let routes: BTreeSet<String> = tidings::http::routes().into_iter().map(|route| route.path).collect();
    for (part, page) in world.metrics().await {
        let series: Vec<_> = page.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert!(series.len() <= SERIES_MAX, "{part:?}: {} series", series.len());
        assert!(series.len() > 200, "{part:?} has been busy: {} series", series.len());
        for line in series {
            let (name, mut labels, _) = parse(line);
            let family = metrics().find(|metric| {
                let rest = name.strip_prefix(metric.name);
                let parts: &[&str] =
                    if matches!(metric.kind, Type::Histogram(_)) { &["_bucket", "_sum", "_count"] } else { &[""] };
                rest.is_some_and(|rest| parts.contains(&rest))
            });
            let family = family.unwrap_or_else(|| panic!("{part:?}: nothing describes {line}"));
            assert!(page.contains(&format!("# HELP {} ", family.name)), "{} has no HELP", family.name);
            assert!(page.contains(&format!("# TYPE {} ", family.name)), "{} has no TYPE", family.name);
            let bound = labels.remove("le");
            assert_eq!(bound.is_some(), name.ends_with("_bucket"), "{line}");
            let named: BTreeSet<&str> = labels.keys().map(String::as_str).collect();
            assert_eq!(named, family.labels.iter().copied().collect(), "{line}");
            for (label, value) in labels {
                let is_bounded = match label.as_str() {
                    "route" => value == "none" || routes.contains(&value),
                    "status" => value.len() == 3 && value.parse::<u16>().is_ok(),
                    "version" => value == env!("CARGO_PKG_VERSION"),
                    _ => !value.is_empty() && !value.contains(|char: char| char.is_ascii_digit()),
                };
                assert!(is_bounded, "`{value}` may be an id: {line}");
            }
        }
    }
    assert!(world.metric("tidings_http_shed_total").await > 0.0, "the bucket turned somebody away");
}

async fn ages_are_true_while_relays_and_projectors_are_dead(kind: Kind) {
    let world = World::start_with(Options::new(crate::BINARY).on(kind).apart()).await;
    world.register(1..=3).await;
    world.user(1).await.follow(3).await;
    world.drain().await;
    assert_eq!(world.metric("tidings_projector_lag_age_seconds").await, 0.0);
    assert!(world.metric("tidings_relay_lease_held").await > 0.0);
    for (part, page) in world.metrics().await {
        for what in ["outbox", "projectors", "lease"] {
            let line = format!("tidings_measured{{what=\"{what}\"}} 1");
            assert!(page.contains(&line), "{part:?}, a relay or not, tells {what}: {page}");
        }
    }
    for part in [Part::Relay(1), Part::Relay(2), Part::Project(1), Part::Project(2), Part::Project(3)] {
        world.kill_part(part).await;
    }
    world.user(1).await.follow(2).await;
    let rises = async |name: &str| {
        let before = world.metric(name).await;
        assert!(before > 0.0, "{name}");
        assert!(world.metric(name).await > before, "{name} grows");
    };
    rises("tidings_outbox_unrelayed_age_seconds").await;
    // What is not relayed is not applied either, though the log does not know of it.
    rises("tidings_projector_oldest_age_seconds").await;
    assert_eq!(world.metric("tidings_projector_lag_events").await, 0.0);
    until_metric(&world, "tidings_relay_lease_held", |held| held == 0.0).await;

    world.start_part(Part::Relay(1), &[]).await;
    until_metric(&world, "tidings_outbox_unrelayed_events", |events| events == 0.0).await;
    until_metric(&world, "tidings_projector_lag_events", |events| events > 0.0).await;
    rises("tidings_projector_lag_age_seconds").await;
    rises("tidings_projector_oldest_age_seconds").await;
    world.start_part(Part::Project(1), &[]).await;
    world.drain().await;
    assert_eq!(world.metric("tidings_projector_lag_age_seconds").await, 0.0);
    assert_eq!(world.metric("tidings_projector_oldest_age_seconds").await, 0.0);
}

/// Passes on what is said to a database, until it is frozen.
struct Freezer {
    port: u16,
    is_frozen: watch::Sender<bool>,
}

impl Freezer {
    async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_frozen = watch::Sender::new(false);
        let frozen = is_frozen.subscribe();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (server, mut frozen) = (server.clone(), frozen.clone());
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let freezes = async { drop(frozen.wait_for(|is_frozen| *is_frozen).await) };
                    tokio::select! {
                        biased;
                        // Both ends stay open, and nobody hears anything.
                        () = freezes => std::future::pending().await,
                        _ended = copy_bidirectional(&mut client, &mut server) => {}
                    }
                });
            }
        });
        Self { port, is_frozen }
    }

    async fn freeze(&self) {
        self.is_frozen.send_replace(true);
        // Those that pass something on run in this thread, and now hear of it.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
}

async fn a_scrape_is_answered_whole_and_in_time_while_the_database_is_frozen(kind: Kind) {
    let world = World::unstarted(Options::new(crate::BINARY).on(kind).apart()).await;
    let tidings_testkit::world::Database::Mysql(url) = world.capabilities().database else { panic!("a server") };
    let (credentials, rest) = url.split_once('@').unwrap();
    let (server, name) = rest.split_once('/').unwrap();
    let freezer = Freezer::before(server.to_owned()).await;
    let url = format!("{credentials}@127.0.0.1:{}/{name}", freezer.port);
    world.start_part(Part::Api(1), &[("TIDINGS__DATABASE__URL", &url)]).await;
    world.register(1..=2).await;
    assert_eq!(world.metric("tidings_service_up").await, 2.0);
    freezer.freeze().await;
    for _ in 0..2 {
        let scraping = tokio::time::timeout(Duration::from_secs(8), world.metrics());
        let pages = scraping.await.expect("a scrape does not wait for a database");
        assert!(pages[0].1.contains("tidings_service_up{service=\"database\"} 0"), "{}", pages[0].1);
        assert!(pages[0].1.contains("tidings_outbox_events_total 2"), "what is counted is shown");
    }
    assert_eq!(world.metric("tidings_measured").await, 0.0, "and nothing else passes for being of now");
}

async fn without_kafka_a_scrape_is_answered_and_says_what_it_does_not_know(kind: Kind) {
    let nowhere = Options::new(crate::BINARY).on(kind).apart().with("kafka.brokers", "127.0.0.1:9");
    let world = World::unstarted(nowhere).await;
    world.start_part(Part::Api(1), &[]).await;
    let scraping = tokio::time::timeout(Duration::from_secs(8), world.metrics());
    let (_, page) = scraping.await.expect("a scrape does not wait for Kafka").remove(0);
    for line in [
        "tidings_service_up{service=\"kafka\"} 0",
        "tidings_service_up{service=\"database\"} 1",
        "tidings_measured{what=\"projectors\"} 0",
        "tidings_measured{what=\"outbox\"} 0",
        // Whoever looks for the increase of what never happened finds where it begins.
        "tidings_counter_drift_total 0",
        "tidings_projector_unknown_events_total{projector=\"relation\"} 0",
        "tidings_projector_unknown_events_total{projector=\"relation@next\"} 0",
        "tidings_relay_lease_held 0",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}
