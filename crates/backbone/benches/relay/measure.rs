//! All measurements, round by round.

use std::time::Instant;

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};

use crate::{
    ceilings::{self, Read},
    child::{self, Outcome, Shape, Task},
    debezium::{self, Harness},
    outbox::Outbox,
};

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) rows: usize,
    rounds: usize,
    on_mysql: bool,
    has_peers: bool,
}

impl Plan {
    pub(crate) fn parse(arguments: &[String]) -> Self {
        let mut plan = Self { rows: 200_000, rounds: 3, on_mysql: false, has_peers: false };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|number| number.parse().ok()).unwrap();
            match argument.as_str() {
                // What `cargo bench` says to every benchmark.
                "--bench" => {}
                "--mysql" => plan.on_mysql = true,
                "--peers" => plan.has_peers = true,
                "--rows" => plan.rows = number(),
                "--rounds" => plan.rounds = number(),
                other => panic!("what is `{other}`? There are --mysql, --peers, --rows N and --rounds N"),
            }
        }
        plan
    }
}

/// Seconds of one thing in each round.
#[derive(Debug)]
pub(crate) struct Rounds<T>(Vec<T>);

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What the seconds were measured with.
pub(crate) trait Timed {
    fn seconds(&self) -> f64;
}

/// Implements it for what has a field of that name.
macro_rules! timed {
    ($($kind:ty),+) => { $(impl Timed for $kind {
        fn seconds(&self) -> f64 {
            self.seconds
        }
    })+ };
}
timed!(Read, Outcome, debezium::Outcome);

impl Timed for f64 {
    fn seconds(&self) -> f64 {
        *self
    }
}

impl<T: Timed> Rounds<T> {
    pub(crate) fn best(&self) -> &T {
        self.0.iter().min_by(|one, other| one.seconds().total_cmp(&other.seconds())).unwrap()
    }

    /// All rounds' figures.
    pub(crate) fn all(&self) -> &[T] {
        &self.0
    }

    fn push(&mut self, what: &str, rows: usize, found: T) {
        eprintln!("{what}: {:.0}/s", rows as f64 / found.seconds());
        self.0.push(found);
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) binlog: Rounds<Read>,
    pub(crate) produce: Rounds<f64>,
    pub(crate) produce_in_transactions: Rounds<f64>,
    pub(crate) reading: [Rounds<Outcome>; 3],
    pub(crate) relay: Rounds<Outcome>,
    pub(crate) record_bytes: usize,
    /// The relay with Debezium's records, and Debezium's engine.
    pub(crate) peers: Option<(Rounds<Outcome>, Rounds<debezium::Outcome>)>,
}

pub(crate) const SHAPES: [(Shape, &str); 3] = [
    (Shape::CloudEvents, "CloudEvents JSON"),
    (Shape::Canal, "Canal flat messages"),
    (Shape::Debezium, "Debezium router records"),
];

pub(crate) async fn all(plan: &Plan) -> Found {
    let database = if plan.on_mysql { "TIDINGS_TEST_MYSQL" } else { "TIDINGS_TEST_MARIADB" };
    let address = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: see scripts/bench"));
    let harness = plan.has_peers.then(Harness::prepare);
    let outbox = Outbox::fill(&address(database), plan.rows).await;
    let kafka = (address("TIDINGS_TEST_KAFKA"), format!("bench-{}", outbox.database));
    let mut bench = Bench { plan, outbox, kafka, found: Found::default() };
    bench.found.peers = harness.is_some().then(Default::default);
    for round in 0..plan.rounds {
        bench.ceilings(round).await;
        bench.relay(round).await;
        if let Some(harness) = &harness {
            bench.peers(round, harness).await;
        }
    }
    delete_topics(&bench.kafka).await;
    bench.outbox.drop().await;
    bench.found
}

struct Bench<'p> {
    plan: &'p Plan,
    outbox: Outbox,
    /// Brokers and prefix.
    kafka: (String, String),
    found: Found,
}

impl Bench<'_> {
    async fn ceilings(&mut self, round: usize) {
        let (rows, found, outbox) = (self.plan.rows, &mut self.found, &self.outbox);
        found.binlog.push("raw binlog read", rows, ceilings::binlog(outbox).await);
        let kafka = child::options(&self.kafka);
        let records = ceilings::records(outbox, rows, &kafka.prefix).await;
        found.record_bytes = records.iter().map(tidings_backbone::relay::Record::bytes).sum();
        for transactions in [false, true] {
            let topic = format!("raw-{round}-{transactions}");
            let seconds = ceilings::produce(&kafka, &topic, &records, transactions).await;
            match transactions {
                false => found.produce.push("raw Kafka produce", rows, seconds),
                true => found.produce_in_transactions.push("the same in transactions", rows, seconds),
            }
        }
    }

    async fn relay(&mut self, round: usize) {
        let rows = self.plan.rows;
        for (index, (shape, name)) in SHAPES.into_iter().enumerate() {
            let outcome = self.task(shape, round, false).run().await;
            self.found.reading[index].push(&format!("before Kafka, {name}"), rows, outcome);
        }
        let outcome = self.task(Shape::CloudEvents, round, true).run().await;
        self.found.relay.push("relay into Kafka", rows, outcome);
    }

    async fn peers(&mut self, round: usize, harness: &Harness) {
        let rows = self.plan.rows;
        let relay = self.task(Shape::Debezium, round, true).run().await;
        let engine = tokio::task::block_in_place(|| harness.run(&self.outbox, rows));
        let peers = self.found.peers.get_or_insert_default();
        peers.0.push("relay with Debezium's records into Kafka", rows, relay);
        peers.1.push("Debezium's engine into nothing", rows, engine);
    }

    fn task(&self, shape: Shape, round: usize, into_kafka: bool) -> Task {
        Task {
            source: self.outbox.source(),
            group: format!("{}-{shape:?}-{round}", self.outbox.database),
            shape,
            records: self.plan.rows as u64,
            from: self.outbox.from.clone(),
            to: self.outbox.to.clone(),
            kafka: into_kafka.then(|| self.kafka.clone()),
        }
    }
}

/// The brokers need not keep hundreds of megabytes for nobody.
async fn delete_topics((brokers, prefix): &(String, String)) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let metadata = admin.inner().fetch_metadata(None, std::time::Duration::from_secs(10)).unwrap();
    let names: Vec<&str> = metadata.topics().iter().map(|topic| topic.name()).collect();
    let own: Vec<&str> = names.into_iter().filter(|name| name.starts_with(prefix.as_str())).collect();
    admin.delete_topics(&own, &AdminOptions::new()).await.unwrap();
}

/// Units per second since `start`.
pub(crate) fn rate(units: usize, start: Instant) -> f64 {
    units as f64 / start.elapsed().as_secs_f64()
}
