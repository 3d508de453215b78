//! What a distributed world stands on: a database, topics and keys of its own, gone when it ends.

use std::time::Duration;

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};

use crate::{
    database::{Database, Engine, Place},
    servers::Addresses,
};

/// Few, so that processes are soon as many as partitions.
const PARTITIONS: &str = "3";
/// How long the brokers may take to remove the topics of a world that has ended.
const CLEANING_TIME_MAX: Duration = Duration::from_secs(10);

/// A database, topics and keys, on the services that `TIDINGS_TEST_...` name. Dropping it removes them.
#[derive(Debug)]
pub struct Services {
    database: Database,
    brokers: String,
    prefix: String,
    redis: Option<String>,
}

impl Services {
    /// On servers of the test's own, or else on those that the environment names. Makes the database; topics
    /// and keys come with their use.
    ///
    /// # Panics
    /// When a service is not named or cannot be reached.
    pub async fn new(engine: Engine, own: Option<&Addresses>) -> Self {
        let (database, brokers, redis) = match own {
            Some(own) => (Database::on(own.database.clone()).await, own.brokers.clone(), own.redis.clone()),
            None => {
                let (brokers, redis) = (named("TIDINGS_TEST_KAFKA", "kafka"), named("TIDINGS_TEST_REDIS", "redis"));
                (Database::new(engine).await, brokers, redis)
            }
        };
        let redis = Some(redis);
        let random = database.folder.path().file_name().unwrap_or_default().to_string_lossy().replace(['.', '-'], "");
        let prefix = format!("t{random}{}", std::process::id());
        Self { database, brokers, prefix, redis }
    }

    pub(super) fn database_url(&self) -> &str {
        match &self.database.place {
            Place::Url(url) => url,
            Place::File(_) => unreachable!("a distributed world has a server's database"),
        }
    }

    pub(super) fn brokers(&self) -> &str {
        &self.brokers
    }

    /// What the names of its topics begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The keys of the configuration that lead there.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut settings = vec![
            ("database.url", self.database_url().to_owned()),
            ("kafka.brokers", self.brokers.clone()),
            ("kafka.prefix", self.prefix.clone()),
            ("kafka.partitions", PARTITIONS.to_owned()),
            // A test looks at few rows; many processes of many tests share one server.
            ("database.writers_max", "4".to_owned()),
            ("database.readers_max", "4".to_owned()),
        ];
        if let Some(redis) = &self.redis {
            settings.push(("redis.url", redis.clone()));
            settings.push(("redis.key_prefix", format!("{}:", self.prefix)));
        }
        settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

fn named(variable: &str, service: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/services up {service}` and `eval \"$(scripts/services env)\"`")
    })
}

impl Drop for Services {
    fn drop(&mut self) {
        let (brokers, prefix) = (self.brokers.clone(), self.prefix.clone());
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(remove(&brokers, &prefix)))
        });
        // A test that killed its broker has nothing left to remove.
        drop(cleaning.join());
        let redis = self.redis.clone().zip(Some(format!("{}:*", self.prefix)));
        if let Some((url, pattern)) = redis {
            drop(std::thread::spawn(move || remove_keys(&url, &pattern)).join());
        }
    }
}

/// Removes the topics and consumer groups of a world.
async fn remove(brokers: &str, prefix: &str) {
    let admin: Result<AdminClient<DefaultClientContext>, _> =
        ClientConfig::new().set("bootstrap.servers", brokers).create();
    let Ok(admin) = admin else { return };
    let Ok(metadata) = admin.inner().fetch_metadata(None, CLEANING_TIME_MAX) else { return };
    let own = |name: &&str| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
    let topics: Vec<&str> = metadata.topics().iter().map(|topic| topic.name()).filter(own).collect();
    let options = AdminOptions::new().operation_timeout(Some(CLEANING_TIME_MAX));
    // What is not removed is in nobody's way.
    drop(admin.delete_topics(&topics, &options).await);
}

fn remove_keys(url: &str, pattern: &str) -> redis::RedisResult<()> {
    let mut connection = redis::Client::open(url)?.get_connection_with_timeout(CLEANING_TIME_MAX)?;
    let mut cursor = 0_u64;
    loop {
        let (next, keys): (u64, Vec<Vec<u8>>) =
            redis::cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1_000).query(&mut connection)?;
        if !keys.is_empty() {
            redis::cmd("UNLINK").arg(keys).query::<()>(&mut connection)?;
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}
