//! What is in the topics of a world, as a consumer sees it that reads what is committed.

use rdkafka::Message as _;
use serde_json::Value;

use super::World;
use crate::topic;

/// A record of a topic of events.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Its partition.
    pub partition: i32,
    /// Its key.
    pub key: String,
    /// The event, as CloudEvents JSON.
    pub event: Value,
}

impl World {
    /// Hands every record of a family's topic to `take`, in the order of its partition.
    ///
    /// # Panics
    /// When the world has no topics, or the brokers do not answer.
    pub async fn published(&self, family: &str, mut take: impl FnMut(Published) + Send + 'static) {
        let services = self.services.as_ref().expect("a distributed world");
        let (brokers, topic) = (services.brokers().to_owned(), format!("{}.{family}", services.prefix()));
        let read = move || {
            topic::read(&brokers, &topic, |message| {
                take(Published {
                    partition: message.partition(),
                    key: String::from_utf8(message.key().unwrap_or_default().to_vec()).unwrap(),
                    event: serde_json::from_slice(message.payload().unwrap_or_default()).unwrap(),
                });
            });
        };
        tokio::task::spawn_blocking(read).await.unwrap();
    }
}
