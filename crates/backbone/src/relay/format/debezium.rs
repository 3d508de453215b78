//! The records of Debezium's outbox event router, from any outbox or from Tidings' own.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use tidings_event::{
    debezium::{self, OnUpdate, Options, Routed, Router},
    row::{self, Change, Operation},
};

use super::{Batch, Refusal, cloudevents::own_event, columns::Row, topic};
use crate::{Error, Result, relay::Record};

/// How rows become records of the router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DebeziumOptions {
    /// Options by the names they have in a connector's configuration, without `transforms.outbox.`:
    /// `"route.by.field" = "aggregatetype"`. What is not told has Debezium's default; keys and values go
    /// through its string converter.
    pub options: BTreeMap<String, String>,
}

/// Writes the router's records.
#[derive(Clone, Debug)]
pub(super) struct Debezium {
    router: Router,
    /// Whether the router was told of the columns that Tidings' own outbox lacks: then its rows are shown
    /// to it as the rows of an outbox made for Debezium.
    has_own_names: bool,
    topics: BTreeMap<String, Arc<str>>,
    headers: BTreeMap<String, Arc<str>>,
}

/// Names that are kept for reuse; there are as many as kinds of things, and as placements.
const NAMES_MAX: usize = 1_000;

impl Debezium {
    pub(super) fn new(options: &DebeziumOptions) -> Result<Self> {
        let mut router = Options::default();
        for (name, value) in &options.options {
            router.set(name, value).map_err(Error::Event)?;
        }
        let names = ["table.field.event.id", "table.field.event.key", "table.field.event.payload", "route.by.field"];
        let has_own_names = names.iter().any(|name| options.options.contains_key(*name));
        Ok(Self {
            router: Router::new(router).map_err(Error::Event)?,
            has_own_names,
            topics: BTreeMap::new(),
            headers: BTreeMap::new(),
        })
    }

    pub(super) fn push(&mut self, rows: &[Change<'_>], batch: &mut Batch<'_, '_>) -> Result<()> {
        let (changes, plan, now) = (batch.changes, batch.plan, batch.clock.now().0);
        let (places, table) = (&changes.table.places, &plan.table.definition);
        if changes.operation == Operation::Update {
            return self.updated(rows.len(), &table.name);
        }
        if plan.is_own && !self.has_own_names {
            return batch.push_inserts(rows, places.event_key, |row, key| {
                let event = own_event(row, places, key)?;
                let record = self.router.route_event(&event, now)?;
                self.record(record, &event.id.to_string(), key)
            });
        }
        let options = self.router.options();
        let id = places.event_id.or_else(|| table.position(&options.event_id));
        let order = places.event_key.or_else(|| table.position(&options.event_key));
        batch.push_inserts(rows, order, |row, key| self.foreign(row, key, id, table, now))
    }

    /// An update of an outbox row: nothing is sent, and the relay may have to stop.
    fn updated(&self, rows: usize, table: &str) -> Result<()> {
        match self.router.options().on_update {
            OnUpdate::Warn => tracing::warn!(table, rows, "rows of the outbox were updated, which is passed over"),
            OnUpdate::Error => tracing::error!(table, rows, "rows of the outbox were updated, which is passed over"),
            OnUpdate::Fatal => return Err(Error::Event(tidings_event::Error::Updated)),
        }
        Ok(())
    }

    fn foreign(
        &mut self,
        row: &Row<'_>,
        key: &str,
        id: Option<usize>,
        table: &row::Table,
        now: i64,
    ) -> Result<Record, Refusal> {
        let change = Change::insert(row.values);
        let routed = self.router.route(table, Operation::Insert, &change, now);
        let record = match routed {
            Ok(Routed::Record(record)) => record,
            Ok(Routed::Deleted | Routed::Updated(_)) => return Err(Refusal::Row("an insert is neither".to_owned())),
            Err(error @ tidings_event::Error::Updated) => return Err(Refusal::Stop(Error::Event(error))),
            Err(error) => return Err(error.into()),
        };
        self.record(record, &row.text(id).unwrap_or_default(), key)
    }

    fn record(&mut self, record: debezium::Record, id: &str, key: &str) -> Result<Record, Refusal> {
        if !self.topics.contains_key(&record.topic) {
            topic::check(&record.topic)?;
        }
        let headers = record.headers.into_iter();
        let headers = headers.map(|(name, value)| (kept(&mut self.headers, name), value)).collect();
        Ok(Record {
            topic: kept(&mut self.topics, record.topic),
            partition: record.partition,
            key: record.key,
            value: record.value,
            headers,
            timestamp_ms: Some(record.timestamp),
            event_id: id.into(),
            order_key: key.into(),
            trace: None,
        })
    }
}

/// A name that is shared with the records before.
fn kept(names: &mut BTreeMap<String, Arc<str>>, name: String) -> Arc<str> {
    if let Some(known) = names.get(&name) {
        return known.clone();
    }
    let shared: Arc<str> = name.as_str().into();
    if names.len() < NAMES_MAX {
        names.insert(name, shared.clone());
    }
    shared
}
