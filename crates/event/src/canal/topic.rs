//! Topics, named as Canal names them (`MQMessageUtils.messageTopics`).

use super::names::{Names, entries};
use crate::Error;

/// The topic of each table: `canal.mq.topic` and `canal.mq.dynamicTopic`.
///
/// The first entry of the list that matches `schema.table` decides, else the first that matches
/// `schema`, else the topic of `canal.mq.topic`:
///
/// | entry | matches | topic |
/// |---|---|---|
/// | `topic:schema.table`, `topic:schema` | this table, all tables of this schema | `topic` |
/// | `topic:schema\\.t.*` | tables by a pattern, which holds `\\.` | `topic` |
/// | `topic:sch.*` | schemas by a pattern | `topic` |
/// | any of these without `topic:` | the same | the name that matched, in lower case |
///
/// Where there is a list, dots in the topic become underscores, in that of `canal.mq.topic` too.
#[derive(Clone, Debug)]
pub struct Topics {
    default: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    topic: Option<String>,
    names: Target,
}

#[derive(Clone, Debug)]
enum Target {
    One(Names),
    Tables(Names),
    Schemas(Names),
}

impl Topics {
    /// One topic for everything.
    pub fn one(topic: impl Into<String>) -> Self {
        Self { default: topic.into(), entries: Vec::new() }
    }

    /// Reads `canal.mq.topic` and `canal.mq.dynamicTopic`. An empty list is none.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] names a pattern that cannot be compiled. Patterns may not look around or refer
    /// back to groups, which Canal's could.
    pub fn parse(topic: &str, list: &str) -> Result<Self, Error> {
        let entries = entries(list).map(Entry::parse).collect::<Result<_, _>>()?;
        let default = if list.is_empty() { topic.to_owned() } else { topic.replace('.', "_") };
        Ok(Self { default, entries })
    }

    /// The topic of a table. It stays the same, so a relay asks once for each table. Statements without
    /// a table have an empty one and go to `canal.mq.topic`.
    pub fn of(&self, database: &str, table: &str) -> String {
        if database.is_empty() || table.is_empty() {
            return self.default.clone();
        }
        let name = format!("{database}.{table}");
        let found = self.matching(&name).or_else(|| self.matching(database));
        found.unwrap_or_else(|| self.default.clone())
    }

    fn matching(&self, name: &str) -> Option<String> {
        let entry = self.entries.iter().find(|entry| entry.names.matches(name))?;
        Some(entry.topic.clone().unwrap_or_else(|| name.to_lowercase()).replace('.', "_"))
    }
}

impl Entry {
    fn parse(entry: &str) -> Result<Self, Error> {
        let (topic, names) = match entry.split_once(':') {
            Some((topic, names)) => (Some(topic.trim().to_owned()), names.trim()),
            None => (None, entry),
        };
        let names = match Names::parse(names)? {
            one @ Names::One(_) => Target::One(one),
            pattern if names.contains(r"\.") => Target::Tables(pattern),
            pattern => Target::Schemas(pattern),
        };
        Ok(Self { topic, names })
    }
}

impl Target {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::One(names) => names.matches(name),
            Self::Tables(names) => name.contains('.') && names.matches(name),
            Self::Schemas(names) => !name.contains('.') && names.matches(name),
        }
    }
}
