//! The log in Kafka, as its readers see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Behind, Offset, Part};
use crate::{
    Db, Error, Result,
    kafka::{self, peek::Peek},
};

/// Topics of Kafka that hold what was committed to the outbox of a database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KafkaLog {
    db: Db,
    options: Arc<kafka::Options>,
    peek: Arc<Peek>,
}

impl KafkaLog {
    /// The log of the outbox in `db`. Nothing is connected yet.
    pub fn new(db: Db, options: kafka::Options) -> Self {
        let options = Arc::new(options);
        Self { db, peek: Arc::new(Peek::new(Arc::clone(&options))), options }
    }

    /// Where Kafka is.
    pub fn options(&self) -> &kafka::Options {
        &self.options
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// The topics in which events of these types are.
    pub(crate) fn topics(&self, event_types: &[&str]) -> BTreeSet<String> {
        let family = |event_type: &&str| event_type.split('.').next().unwrap_or_default().to_owned();
        event_types.iter().map(family).map(|family| self.options.topic(&family)).collect()
    }

    pub(super) fn parts(&self, event_types: &[&str]) -> Vec<Part> {
        let topics = self.topics(event_types).into_iter().map(Arc::<str>::from);
        topics
            .flat_map(|topic| (0..self.options.partitions).map(move |number| Part { topic: topic.clone(), number }))
            .collect()
    }

    pub(super) async fn relayed(&self) -> Result<()> {
        Ok(())
    }

    pub(super) async fn ends(&self, parts: BTreeSet<Part>) -> Result<BTreeMap<Part, Offset>> {
        self.look(move |peek| peek.ends(parts)).await
    }

    pub(super) async fn behind(&self, positions: Vec<(Part, Offset)>) -> Result<Vec<Behind>> {
        self.look(move |peek| peek.behind(positions)).await
    }

    async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Peek) -> Result<T> + Send + 'static) -> Result<T> {
        let peek = Arc::clone(&self.peek);
        tokio::task::spawn_blocking(move || look(&peek))
            .await
            .unwrap_or_else(|error| Err(Error::Invariant { message: format!("looking at Kafka ended: {error}") }))
    }
}
