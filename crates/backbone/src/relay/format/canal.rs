//! Canal's flat messages: one for each row event, split where rows go to different partitions.

use std::{borrow::Cow, num::NonZeroU32, sync::Arc};

use serde::{Deserialize, Serialize};
use tidings_event::{
    canal::{FlatMessage, PartitionCounts, Partitioning, Rule, Stamp, Topics, Zone},
    row::Change,
};

use super::{Batch, columns::Row, letter::letter};
use crate::{
    Error, Result,
    relay::{Record, Table, dead_letter::WAITS},
};

/// How rows become flat messages. The names are those of Canal's own settings under `canal.mq.`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CanalOptions {
    /// `canal.mq.topic`: the topic of tables for which `dynamic_topic` has no other: `example`.
    pub topic: String,
    /// `canal.mq.dynamicTopic`; empty.
    pub dynamic_topic: String,
    /// `canal.mq.partition`: the partition of everything where there is no `partition_hash`; 0.
    pub partition: u32,
    /// `canal.mq.partitionHash`, such as `shop.outbox:aggregateid`; empty.
    pub partition_hash: String,
    /// `canal.mq.partitionsNum`: how many partitions the topics have that `partition_hash` is about; 1.
    pub partitions_num: NonZeroU32,
    /// `canal.mq.dynamicTopicPartitionNum`: the same for some topics by name; empty.
    pub dynamic_topic_partition_num: String,
    /// `canal.mq.database.hash`: whether the name of the schema is part of the hash; true.
    pub database_hash: bool,
    /// The zone in which TIMESTAMP is shown, as an offset such as `+08:00`; `UTC`. Canal's is that of its
    /// Java machine.
    pub zone: String,
}

impl Default for CanalOptions {
    fn default() -> Self {
        Self {
            topic: "example".to_owned(),
            dynamic_topic: String::new(),
            partition: 0,
            partition_hash: String::new(),
            partitions_num: NonZeroU32::MIN,
            dynamic_topic_partition_num: String::new(),
            database_hash: true,
            zone: "UTC".to_owned(),
        }
    }
}

/// Writes flat messages.
#[derive(Clone, Debug)]
pub(super) struct Canal {
    topics: Topics,
    partitioning: Partitioning,
    counts: PartitionCounts,
    count: NonZeroU32,
    zone: Zone,
    /// The number of the last message.
    id: i64,
    /// Where the table of the last call goes.
    target: Option<Target>,
}

/// Where the messages of one table go.
#[derive(Clone, Debug)]
struct Target {
    database: String,
    table: String,
    topic: Arc<str>,
    rule: Rule,
    count: NonZeroU32,
}

impl Canal {
    pub(super) fn new(options: &CanalOptions) -> Result<Self> {
        let partitioning = if options.partition_hash.is_empty() {
            Ok(Partitioning::fixed(options.partition))
        } else {
            Partitioning::hash(&options.partition_hash, options.database_hash)
        };
        Ok(Self {
            topics: Topics::parse(&options.topic, &options.dynamic_topic).map_err(Error::Event)?,
            partitioning: partitioning.map_err(Error::Event)?,
            counts: PartitionCounts::parse(&options.dynamic_topic_partition_num).map_err(Error::Event)?,
            count: options.partitions_num,
            zone: options.zone.parse().map_err(Error::Event)?,
            id: 0,
            target: None,
        })
    }

    pub(super) fn push(&mut self, rows: &[Change<'_>], batch: &mut Batch<'_, '_>) -> Result<()> {
        if batch.parked.is_empty() {
            return self.push_run(rows, batch);
        }
        let changes = batch.changes;
        let mut left = rows;
        while !left.is_empty() {
            let is_parked = |change: &Change<'_>| {
                let key = Row::new(changes, change).text(order(changes.table));
                key.is_some_and(|key| batch.parked.contains(&key))
            };
            let first = is_parked(&left[0]);
            let (run, rest) = left.split_at(left.iter().take_while(|change| is_parked(change) == first).count());
            left = rest;
            if first {
                run.iter().try_for_each(|change| set_aside(batch, change, WAITS.to_owned()))?;
            } else {
                self.push_run(run, batch)?;
            }
        }
        Ok(())
    }

    /// Writes rows of keys that are not parked. A message that is too large is written as two; one row
    /// that is too large becomes a dead letter.
    fn push_run(&mut self, rows: &[Change<'_>], batch: &mut Batch<'_, '_>) -> Result<()> {
        let before = batch.out.len();
        let id = self.id;
        self.write(rows, batch);
        let largest = batch.out[before..].iter().map(Record::bytes).max().unwrap_or_default();
        if largest <= batch.record_bytes_max {
            return Ok(());
        }
        batch.out.truncate(before);
        self.id = id;
        if let [row] = rows {
            let limit = batch.record_bytes_max;
            let reason = format!("the message has {largest} bytes, at most {limit} are taken");
            return set_aside(batch, row, reason);
        }
        let (first, second) = rows.split_at(rows.len() / 2);
        self.push_run(first, batch)?;
        // A row of the first half may have parked the key of one in the second.
        self.push(second, batch)
    }

    fn write(&mut self, rows: &[Change<'_>], batch: &mut Batch<'_, '_>) {
        let changes = batch.changes;
        let now_millis = batch.clock.now().0;
        self.id += 1;
        let stamp = Stamp { id: self.id, event_seconds: changes.event_seconds, now_millis, gtid: changes.gtid };
        let message = FlatMessage::of_rows(&changes.table.definition, changes.operation, rows, stamp, self.zone);
        let text = |place: Option<usize>| match rows {
            [row] => Row::new(changes, row).text(place).unwrap_or_default(),
            _ => Cow::Borrowed(""),
        };
        let places = &changes.table.places;
        let (event_id, order_key): (Arc<str>, Arc<str>) =
            (text(places.event_id).into(), text(order(changes.table)).into());
        let target = self.target(changes.table);
        for (partition, message) in target.rule.split(message, target.count) {
            batch.out.push(Record {
                topic: target.topic.clone(),
                partition: i32::try_from(partition).ok(),
                key: None,
                value: Some(message.to_json()),
                headers: Vec::new(),
                timestamp_ms: None,
                event_id: event_id.clone(),
                order_key: order_key.clone(),
                // A message may have the rows of many requests.
                trace: None,
            });
        }
    }

    fn target(&mut self, table: &Table) -> &Target {
        let (database, name) = (&table.definition.database, &table.definition.name);
        let is_known = |target: &Target| target.database == *database && target.table == *name;
        if !self.target.as_ref().is_some_and(is_known) {
            self.target = None;
        }
        self.target.get_or_insert_with(|| {
            let topic = self.topics.of(database, name);
            Target {
                count: self.counts.of(&topic).unwrap_or(self.count),
                topic: topic.into(),
                rule: self.partitioning.rule_for(database, name),
                database: database.clone(),
                table: name.clone(),
            }
        })
    }
}

/// The place of the column that the order of rows rests on.
fn order(table: &Table) -> Option<usize> {
    table.places.event_key.or(table.places.aggregate_id)
}

fn set_aside(batch: &mut Batch<'_, '_>, change: &Change<'_>, reason: String) -> Result<()> {
    let row = Row::new(batch.changes, change);
    let key = row.text(order(batch.changes.table)).unwrap_or_default();
    batch.parked.park(&key)?;
    batch.dead.push(letter(batch.changes, &row, &key, reason));
    Ok(())
}
