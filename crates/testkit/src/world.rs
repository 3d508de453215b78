//! A running Tidings, reached as users reach it: HTTP, the command line and signals.

mod kind;
mod parts;
mod processes;
mod published;
mod services;

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Mutex,
    time::Duration,
};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    caller::{Caller, ids, sent},
    model::User,
    process::Process,
    servers::Addresses,
};
pub use kind::Kind;
pub use parts::Part;
use processes::Processes;
pub use published::Published;
pub use services::Services;

/// No request of a test may take longer; far above what any should take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(90);
/// Registrations sent at once.
const REGISTRATIONS_AT_ONCE: usize = 200;

/// How the work of a world is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One process does everything.
    Together,
    /// Each role has processes of its own, two or three of each.
    Apart,
}

/// What a world is made from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `tidings` binary.
    pub binary: PathBuf,
    /// Which world it is.
    pub kind: Kind,
    /// How its work is divided.
    pub shape: Shape,
    /// Configuration that differs from the default: (`rate.follow_capacity`, `1000`).
    pub settings: Vec<(String, String)>,
    /// Where servers are that it has to itself, if not those that the environment names.
    pub servers: Option<Addresses>,
}

impl Options {
    /// The world that the environment chooses, with the default configuration, run by `binary`.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let binary = binary.into();
        Self { binary, kind: Kind::chosen(), shape: Shape::Together, settings: Vec::new(), servers: None }
    }

    /// On this world, whatever the environment chooses.
    #[must_use]
    pub fn on(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// With its roles apart.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { shape: Shape::Apart, ..self }
    }

    /// On servers that the test has to itself.
    #[must_use]
    pub fn on_servers(self, servers: Addresses) -> Self {
        Self { servers: Some(servers), ..self }
    }

    /// With one key of the configuration set.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// With some keys of the configuration set.
    #[must_use]
    pub fn with_all(self, settings: &[(&str, &str)]) -> Self {
        settings.iter().fold(self, |options, (key, value)| options.with(key, value))
    }
}

/// What differs between worlds, where a test has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The parts that can be stopped, killed and paused, each by itself.
    pub parts: &'static [Part],
    /// Where the fact database is, for tests that damage it.
    pub database: Database,
    /// Whether events are numbered without gaps, in the order of their commits: one writer numbers so, several
    /// do not.
    pub has_dense_offsets: bool,
}

/// A fact database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file of SQLite's.
    Sqlite(PathBuf),
    /// The address of a database of MySQL or MariaDB.
    Mysql(String),
}

/// A running Tidings. Dropping it ends every process of it, and removes what it kept in services.
#[derive(Debug)]
pub struct World {
    kind: Kind,
    shape: Shape,
    /// Dropped before what it stands on.
    processes: Processes,
    services: Option<Services>,
    client: reqwest::Client,
    tokens: Mutex<HashMap<String, String>>,
    /// Whether the API is meant to be served now.
    up: watch::Sender<bool>,
}

impl World {
    /// A running world.
    ///
    /// # Panics
    /// When a service that it stands on is not there.
    pub async fn start_with(options: Options) -> Self {
        let world = Self::unstarted(options).await;
        world.start().await;
        world
    }

    /// A world none of whose processes runs yet.
    ///
    /// # Panics
    /// When a service that it stands on is not there.
    pub async fn unstarted(options: Options) -> Self {
        let (kind, shape) = (options.kind, options.shape);
        let services = match kind {
            Kind::Embedded => None,
            Kind::Mariadb | Kind::Mysql => Some(Services::new(kind.engine(), options.servers.as_ref()).await),
        };
        let settings = services.as_ref().map(Services::settings).unwrap_or_default();
        // A proxy of the machine has no business between a test and its server.
        let client = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIME_MAX).build().unwrap();
        let processes = Processes::new(options, settings);
        Self { kind, shape, processes, services, client, tokens: Mutex::default(), up: watch::Sender::new(false) }
    }

    /// The embedded world with the default configuration, running.
    pub async fn embedded(binary: &Path) -> Self {
        Self::start_with(Options::new(binary).on(Kind::Embedded)).await
    }

    /// What this world has.
    pub fn capabilities(&self) -> Capabilities {
        let database = match &self.services {
            None => Database::Sqlite(self.data_folder().join("tidings.db")),
            Some(services) => Database::Mysql(services.database_url().to_owned()),
        };
        let parts = match self.shape {
            Shape::Together => Part::TOGETHER,
            Shape::Apart => Part::APART,
        };
        Capabilities { parts, database, has_dense_offsets: self.kind == Kind::Embedded }
    }

    /// Where the API is: `http://127.0.0.1:PORT`. It changes with each start, and where several processes
    /// serve it, with each call.
    pub fn url(&self) -> String {
        self.processes.url()
    }

    /// Where every part that runs tells how it is.
    pub fn addresses(&self) -> Vec<(Part, String)> {
        self.processes.urls()
    }

    /// The HTTP client.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// The folder in which commands and servers work.
    pub fn data_folder(&self) -> PathBuf {
        self.processes.data_folder()
    }

    /// A folder that lives as long as the world, for files of the test.
    pub fn scratch_folder(&self) -> &Path {
        self.processes.scratch_folder()
    }

    // ---- the command line

    /// A command on the data folder, with the world's configuration, to be run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.processes.command(arguments)
    }

    /// Runs a command to its end.
    pub async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Runs a command that must succeed, and answers what it printed.
    pub async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tidings {arguments:?}: {}: {errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a command that the test may kill.
    pub fn spawn(&self, arguments: &[&str]) -> Process {
        Process::start(self.command(arguments), "the binary should be there")
    }

    /// A bearer token of `user`.
    pub async fn token(&self, user: User) -> String {
        self.minted(&["token", "--user", &user.to_string()]).await
    }

    /// A bearer token that administrates.
    pub async fn admin_token(&self) -> String {
        self.minted(&["token", "--admin"]).await
    }

    async fn minted(&self, arguments: &[&str]) -> String {
        let name = arguments.join(" ");
        let known = self.tokens.lock().unwrap().get(&name).cloned();
        if let Some(token) = known {
            return token;
        }
        let token = self.run(arguments).await.trim().to_owned();
        self.tokens.lock().unwrap().insert(name, token.clone());
        token
    }

    /// Compares everything that is derived with its facts, by `tidings verify`. There must be no
    /// difference, whatever the server is doing meanwhile.
    pub async fn verify(&self) -> Value {
        let output = self.output(&["verify", "--json"]).await;
        let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "verify: {}: {printed} {errors}", output.status);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    // ---- callers, and what every test asks

    /// Somebody without credentials.
    pub fn nobody(&self) -> Caller<'_> {
        Caller::new(self, None)
    }

    /// Somebody with these credentials.
    pub fn bearer(&self, token: &str) -> Caller<'_> {
        Caller::new(self, Some(token.to_owned()))
    }

    /// A user.
    pub async fn user(&self, user: User) -> Caller<'_> {
        Caller::new(self, Some(self.token(user).await))
    }

    /// An admin.
    pub async fn admin(&self) -> Caller<'_> {
        Caller::new(self, Some(self.admin_token().await))
    }

    /// Registers users by their ids, with the handle `u{id}`.
    pub async fn register(&self, users: RangeInclusive<User>) {
        let admin = self.admin().await;
        let users: Vec<User> = users.collect();
        for some in users.chunks(REGISTRATIONS_AT_ONCE) {
            let one = |user: &User| {
                let body = json!({ "user_id": user.to_string(), "handle": format!("u{user}") });
                sent(admin.request(reqwest::Method::POST, "/v1/admin/users").json(&body))
            };
            for answer in join_all(some.iter().map(one)).await {
                answer.json(201);
            }
        }
    }

    /// Runs all queued work to quiescence: everything that is committed now has been applied, and
    /// nothing waits for a retry.
    pub async fn drain(&self) -> Value {
        let admin = self.admin().await;
        let flow = admin.read("/v1/admin/flow?settle_ms=60000").await;
        assert_eq!(flow["settled"], true, "the flow does not settle: {flow}");
        flow
    }

    /// Reads the flow until it is as wanted, which may take as long as a request may.
    pub async fn flow_until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let admin = self.admin().await;
        let watched = async {
            loop {
                let flow = admin.read("/v1/admin/flow").await;
                if wanted(&flow) {
                    return flow;
                }
            }
        };
        tokio::time::timeout(REQUEST_TIME_MAX, watched).await.expect("the flow should come to what is waited for")
    }

    /// Waits until every projector has passed all that is committed, also where keys are parked.
    pub async fn passed(&self) -> Value {
        let passed =
            |stage: &Value| !["relay", "projector"].contains(&stage["stage"].as_str().unwrap()) || stage["lag"] == 0;
        self.flow_until(|flow| flow["stages"].as_array().unwrap().iter().all(passed)).await
    }

    /// Offset of the newest event.
    pub async fn head(&self) -> u64 {
        self.admin().await.read("/v1/admin/flow").await["log"]["head"].as_u64().unwrap()
    }

    /// Every event after an offset, as CloudEvents, in order.
    pub async fn events(&self, after: u64) -> Vec<Value> {
        let admin = self.admin().await;
        let items = admin.pages("/v1/admin/events", 100).await;
        let later = items.into_iter().filter(|item| item["offset"].as_u64().unwrap() > after);
        later.map(|mut item| item["event"].take()).collect()
    }

    /// What the parking lot holds.
    pub async fn parked(&self) -> Vec<Value> {
        self.admin().await.read("/v1/admin/parked").await["items"].as_array().unwrap().clone()
    }

    /// The metrics of every part, as they are shown.
    pub async fn metrics(&self) -> Vec<(Part, String)> {
        let token = self.admin_token().await;
        let mut shown = Vec::new();
        for (part, url) in self.processes.urls() {
            let answer = sent(self.client.get(format!("{url}/metrics")).bearer_auth(&token)).await;
            assert_eq!(answer.status, 200, "{part:?}: {}", answer.text);
            shown.push((part, answer.text));
        }
        shown
    }

    /// The sum of a metric over its labels and over all parts; 0 when it was never counted.
    pub async fn metric(&self, name: &str) -> f64 {
        let mut sum = 0.0;
        for (_, text) in self.metrics().await {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let mine = lines.filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
            sum += mine.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum::<f64>();
        }
        sum
    }

    /// The followers of a user, by cursor, as an admin sees them.
    pub async fn followers(&self, user: User) -> Vec<User> {
        ids(&self.admin().await.pages(&format!("/v1/users/{user}/followers"), 100).await, "user_id")
    }

    /// Whom a user follows, by cursor, as an admin sees it.
    pub async fn followings(&self, user: User) -> Vec<User> {
        ids(&self.admin().await.pages(&format!("/v1/users/{user}/following"), 100).await, "user_id")
    }

    /// How many a user follows, and how many follow him.
    pub async fn counters(&self, user: User) -> (u64, u64) {
        let counters = self.admin().await.read(&format!("/v1/users/{user}/counters")).await;
        (counters["followings"].as_u64().unwrap(), counters["followers"].as_u64().unwrap())
    }
}
