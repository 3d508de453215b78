//! Partitions, chosen as Canal chooses them (`MQMessageUtils.messagePartition`).

use std::{collections::BTreeMap, num::NonZeroU32};

use super::{
    FlatMessage,
    names::{Names, entries},
};
use crate::{Error, java};

/// How messages are spread over the partitions of their topic.
///
/// Without a list of patterns every message goes to one fixed partition (`canal.mq.partition`). With
/// one (`canal.mq.partitionHash`) the first entry that matches `schema.table` decides:
///
/// | entry | partition |
/// |---|---|
/// | `schema.table:id^name` | by a hash of these columns, row by row |
/// | `schema.table:$pk$` | by a hash of the primary key, row by row |
/// | `schema.table` | by a hash of the table's name |
/// | none matches | 0 |
///
/// `schema.table` is a name or a pattern for the whole name. Statements go to partition 0.
#[derive(Clone, Debug)]
pub struct Partitioning {
    entries: Option<Vec<(Names, Rule)>>,
    fixed: u32,
}

/// What decides about the partitions of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One partition for all.
    Fixed(u32),
    /// A hash of the table's name: all rows of a table together.
    Table,
    /// A hash of the primary key of each row.
    PrimaryKey {
        /// Whether the name of the schema is part of the hash.
        with_database: bool,
    },
    /// A hash of some columns of each row, found by their exact names.
    Columns {
        /// Whether the name of the schema is part of the hash.
        with_database: bool,
        /// The columns.
        names: Vec<String>,
    },
}

impl Partitioning {
    /// All messages to one partition.
    pub fn fixed(partition: u32) -> Self {
        Self { entries: None, fixed: partition }
    }

    /// Reads `canal.mq.partitionHash`. `with_database` is `canal.mq.database.hash`, which is true unless
    /// told otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] names a pattern that cannot be compiled. Patterns may not look around or refer
    /// back to groups, which Canal's could.
    pub fn hash(list: &str, with_database: bool) -> Result<Self, Error> {
        let entries: Vec<_> = entries(list).map(|entry| rule(entry, with_database)).collect::<Result<_, _>>()?;
        // Canal takes an empty list as none.
        Ok(Self { entries: (!list.is_empty()).then_some(entries), fixed: 0 })
    }

    /// The rule for a table. It stays the same, so a relay asks once for each table.
    pub fn rule_for(&self, database: &str, table: &str) -> Rule {
        let Some(entries) = &self.entries else { return Rule::Fixed(self.fixed) };
        let name = format!("{database}.{table}");
        let found = entries.iter().find(|(names, _)| names.matches(&name));
        found.map_or(Rule::Fixed(0), |(_, rule)| rule.clone())
    }
}

fn rule(entry: &str, with_database: bool) -> Result<(Names, Rule), Error> {
    let (names, rule) = match entry.rsplit_once(':') {
        Some((names, columns)) if !names.is_empty() => {
            if columns.eq_ignore_ascii_case("$pk$") {
                (names, Rule::PrimaryKey { with_database })
            } else {
                let columns = columns.split('^').filter(|name| !name.is_empty());
                (names, Rule::Columns { with_database, names: columns.map(str::to_owned).collect() })
            }
        }
        _ => (entry, Rule::Table),
    };
    Ok((Names::parse(names)?, rule))
}

impl Rule {
    /// Parts a message by its rows; within a partition they keep their order. Partitions come in rising
    /// order, which is the order Canal sends them in.
    pub fn split<'a>(&self, message: FlatMessage<'a>, partitions: NonZeroU32) -> Vec<(u32, FlatMessage<'a>)> {
        let columns = match self {
            Self::Fixed(partition) => return vec![(*partition, message)],
            // A statement: there is nothing to hash.
            _ if message.is_ddl || message.data.is_none() => return vec![(0, message)],
            Self::Table => return vec![(place(java::string_hash(&message.table), partitions), message)],
            Self::PrimaryKey { .. } => message.pk_names.clone().unwrap_or_default(),
            Self::Columns { names, .. } => names.iter().map(|name| name.clone().into()).collect(),
        };
        let of_database = if self.has_database() { java::string_hash(&message.database) } else { 0 };
        let hash = |row: &super::Fields<'_, Option<_>>| {
            columns.iter().fold(of_database, |hash, name| {
                let text = row.get(name).and_then(Option::as_deref).unwrap_or_default();
                hash ^ java::string_hash(text)
            })
        };
        let places: Vec<_> = message.data.iter().flatten().map(|row| place(hash(row), partitions)).collect();
        distribute(message, &places)
    }

    fn has_database(&self) -> bool {
        match self {
            Self::PrimaryKey { with_database } | Self::Columns { with_database, .. } => *with_database,
            Self::Fixed(_) | Self::Table => false,
        }
    }
}

/// Java's `Math.abs(Math.abs(hash) % partitions)`. The outer one is there since the inner one leaves the
/// smallest number negative; together they are the remainder of the number without its sign.
fn place(hash: i32, partitions: NonZeroU32) -> u32 {
    hash.unsigned_abs() % partitions
}

fn distribute<'a>(mut message: FlatMessage<'a>, places: &[u32]) -> Vec<(u32, FlatMessage<'a>)> {
    if let [first, rest @ ..] = places
        && rest.iter().all(|place| place == first)
    {
        return vec![(*first, message)];
    }
    let data = message.data.take().unwrap_or_default();
    let mut old = message.old.take().map(Vec::into_iter);
    let mut parts = BTreeMap::new();
    for (row, place) in data.into_iter().zip(places) {
        let part = parts.entry(*place).or_insert_with(|| message.clone());
        part.data.get_or_insert_default().push(row);
        if let Some(row) = old.as_mut().and_then(Iterator::next) {
            part.old.get_or_insert_default().push(row);
        }
    }
    parts.into_iter().collect()
}

/// How many partitions some topics have: `canal.mq.dynamicTopicPartitionNum`, such as
/// `test.*:4,orders:6`. Names and patterns are of topics.
#[derive(Clone, Debug, Default)]
pub struct PartitionCounts(Vec<(Names, Option<NonZeroU32>)>);

impl PartitionCounts {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] names a pattern that cannot be compiled.
    pub fn parse(list: &str) -> Result<Self, Error> {
        let parted = entries(list).filter_map(|entry| entry.rsplit_once(':')).filter(|(names, _)| !names.is_empty());
        let counts = parted.map(|(names, count)| Ok((Names::parse(names)?, count.parse().ok())));
        counts.collect::<Result<_, Error>>().map(Self)
    }

    /// The count of a topic, if the list has one; `canal.mq.partitionsNum` counts otherwise.
    pub fn of(&self, topic: &str) -> Option<NonZeroU32> {
        self.0.iter().find(|(names, _)| names.matches(topic)).and_then(|(_, count)| *count)
    }
}
