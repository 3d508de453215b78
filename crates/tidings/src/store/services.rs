//! The services of the distributed mode, in the words of those who use them.

use tidings_backbone::{Db, EventIds, db::MysqlOptions, kafka};
use tidings_community::relation::hot::Hot;

use crate::{Result, config::Config};

/// Where Kafka is, and how its topics are made.
pub fn kafka_options(config: &Config) -> kafka::Options {
    let kafka = &config.kafka;
    kafka::Options {
        brokers: kafka.brokers.clone(),
        properties: kafka.properties.reveal().clone(),
        prefix: kafka.prefix.clone(),
        partitions: kafka.partitions,
        replicas: kafka.replicas,
    }
}

/// Connects to the database of the distributed mode.
pub(super) async fn open_database(config: &Config) -> Result<Db> {
    let database = &config.database;
    let mut options = MysqlOptions::from_url(database.address()?.reveal())?;
    options.writers_max = database.writers_max;
    options.readers_max = database.readers_max;
    Ok(Db::open_mysql(options).await?)
}

/// What is hot, in the Redis that the configuration names. Connects when it is first asked.
pub(super) fn open_hot(config: &Config) -> Result<Option<Hot>> {
    if config.redis.url.is_empty() {
        return Ok(None);
    }
    let address = config.redis.address()?;
    // Tokens must be those of this process alone, whatever ids events have.
    Ok(Some(Hot::open(address.reveal(), &config.redis.key_prefix, EventIds::from_os())?))
}
