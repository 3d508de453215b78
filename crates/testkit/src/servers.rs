//! Servers of a test's own, beside those that all tests share: it may kill, freeze and restart them.

use std::path::Path;

use sqlx::{Connection as _, MySqlConnection};
use tokio::process::Command;

use crate::{database::end_connections, world::Kind};

/// Where the servers of a distributed world are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// `mysql://user:password@host:port`.
    pub database: String,
    /// `host:port`, several separated by commas.
    pub brokers: String,
    /// `redis://host:port`.
    pub redis: String,
}

/// A server that a distributed world stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// MariaDB or MySQL.
    Database,
    /// Kafka.
    Kafka,
    /// Redis.
    Redis,
}

/// A set of servers, run by `scripts/services`.
#[derive(Debug)]
pub struct Servers {
    set: &'static str,
    database: &'static str,
    addresses: Addresses,
}

impl Servers {
    /// Starts those of `set` that do not run, and lets go on those that are frozen.
    ///
    /// # Panics
    /// When one does not start, or the embedded world is asked for.
    pub async fn up(set: &'static str, kind: Kind) -> Self {
        let (variable, database) = kind.engine().service().expect("the embedded world stands on no server");
        services(set, "up", &[database, "kafka", "redis"]).await;
        let env = services(set, "env", &[database, "kafka", "redis"]).await;
        let address = |variable: &str| {
            let mut lines = env.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
            let (_, address) = lines.find(|(name, _)| *name == variable).expect("it was started");
            address.to_owned()
        };
        let addresses = Addresses {
            database: address(variable),
            brokers: address("TIDINGS_TEST_KAFKA"),
            redis: address("TIDINGS_TEST_REDIS"),
        };
        Self { set, database, addresses }
    }

    /// Where they are. Each keeps its place over all its ends.
    pub fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    /// What a server is called.
    pub fn name(&self, server: Server) -> &'static str {
        match server {
            Server::Database => self.database,
            Server::Kafka => "kafka",
            Server::Redis => "redis",
        }
    }

    /// Starts a server that does not run, and waits until it answers.
    pub async fn start(&self, server: Server) {
        self.say("up", server).await;
    }

    /// Kills a server (SIGKILL).
    pub async fn kill(&self, server: Server) {
        self.say("kill", server).await;
    }

    /// Stops a server in order, starts it, and waits until it answers.
    pub async fn restart(&self, server: Server) {
        self.say("restart", server).await;
    }

    /// Freezes a server (SIGSTOP).
    pub async fn pause(&self, server: Server) {
        self.say("pause", server).await;
    }

    /// Lets a frozen server go on (SIGCONT).
    pub async fn resume(&self, server: Server) {
        self.say("resume", server).await;
    }

    async fn say(&self, command: &str, server: Server) {
        services(self.set, command, &[self.name(server)]).await;
    }

    /// Ends every connection that a client has to the database, those of replicas too; answers how many.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn cut_database(&self) -> usize {
        let mut connection = MySqlConnection::connect(&self.addresses.database).await.unwrap();
        // The server's own threads come from no host.
        let clients = "host <> '' AND user NOT IN ('system user', 'event_scheduler')";
        let ended = end_connections(&mut connection, clients).await.unwrap();
        connection.close().await.unwrap();
        ended
    }

    /// Ends every connection that a client has to Redis; answers how many.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn cut_redis(&self) -> usize {
        self.ask_redis(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").to_owned()).await
    }

    /// Lets Redis forget everything.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn flush_redis(&self) {
        let _ok: String = self.ask_redis(redis::cmd("FLUSHALL")).await;
    }

    async fn ask_redis<T: redis::FromRedisValue + Send + 'static>(&self, command: redis::Cmd) -> T {
        let url = self.addresses.redis.clone();
        let asking = move || command.query(&mut redis::Client::open(url)?.get_connection()?);
        let answer: redis::RedisResult<T> = tokio::task::spawn_blocking(asking).await.unwrap();
        answer.unwrap()
    }

    /// Stops all, and removes what they kept.
    pub async fn wipe(self) {
        services(self.set, "down", &["--wipe", self.database, "kafka", "redis"]).await;
    }
}

async fn services(set: &str, command: &str, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
    let output = Command::new(script).args([command, "--set", set]).args(arguments).output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/services {command} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
