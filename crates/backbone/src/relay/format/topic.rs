//! Names of topics, made of what a row says.

use std::{collections::HashMap, sync::Arc};

use super::Refusal;
use crate::{Error, Result};

/// A name with placeholders, such as `{prefix}.{family}`.
#[derive(Clone, Debug)]
pub(super) struct Template {
    parts: Vec<Part>,
    /// The names so far: there are as many as families, and each row needs one.
    known: HashMap<String, Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Family,
    Type,
    Database,
    Table,
}

/// Names that are kept. Beyond them, types are not what names of topics are made of.
const KNOWN_MAX: usize = 1_000;
/// The longest name that Kafka takes.
const NAME_BYTES_MAX: usize = 249;

/// Refuses what cannot be the name of a topic.
pub(super) fn check(name: &str) -> Result<(), Refusal> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_allowed) {
        return Err(Refusal::Row(format!("its topic would be called `{name}`, which no topic can be")));
    }
    Ok(())
}

impl Template {
    pub(super) fn parse(template: &str, prefix: &str) -> Result<Self> {
        let wrong = |rule| Err(Error::Event(tidings_event::Error::Option { name: "topic".to_owned(), rule }));
        let (mut parts, mut left) = (Vec::new(), template);
        while let Some((before, rest)) = left.split_once('{') {
            let Some((name, after)) = rest.split_once('}') else { return wrong("has a `{` without its `}`") };
            parts.push(Part::Text(before.to_owned()));
            parts.push(match name {
                "prefix" => Part::Text(prefix.to_owned()),
                "family" => Part::Family,
                "type" => Part::Type,
                "database" => Part::Database,
                "table" => Part::Table,
                _ => return wrong("may hold {prefix}, {family}, {type}, {database} and {table}"),
            });
            left = after;
        }
        parts.push(Part::Text(left.to_owned()));
        Ok(Self { parts, known: HashMap::new() })
    }

    /// The name for one row.
    pub(super) fn name(&mut self, event_type: &str, database: &str, table: &str) -> Result<Arc<str>, Refusal> {
        let varies = if self.parts.contains(&Part::Type) { event_type } else { family(event_type) };
        if let Some(name) = self.known.get(varies) {
            return Ok(name.clone());
        }
        let name: String = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text,
                Part::Family => family(event_type),
                Part::Type => event_type,
                Part::Database => database,
                Part::Table => table,
            })
            .collect();
        check(&name)?;
        let name: Arc<str> = name.into();
        if self.known.len() < KNOWN_MAX {
            self.known.insert(varies.to_owned(), name.clone());
        }
        Ok(name)
    }

    /// Another table may have other names.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

/// A type up to its first dot.
pub(super) fn family(event_type: &str) -> &str {
    event_type.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_what_the_row_says() {
        let mut template = Template::parse("{prefix}.{family}", "tidings").unwrap();
        assert_eq!(&*template.name("thing.made", "db", "outbox").unwrap(), "tidings.thing");
        assert_eq!(&*template.name("thing.gone", "db", "outbox").unwrap(), "tidings.thing");
        let mut template = Template::parse("{database}-{table}.{type}", "tidings").unwrap();
        assert_eq!(&*template.name("thing.made", "db", "outbox").unwrap(), "db-outbox.thing.made");
        assert_eq!(&*template.name("thing.gone", "db", "outbox").unwrap(), "db-outbox.thing.gone");
    }

    #[test]
    fn a_name_that_no_topic_can_have_is_the_fault_of_the_row() {
        let mut template = Template::parse("{family}", "tidings").unwrap();
        for event_type in ["", "a/b", "é", &"x".repeat(250)] {
            assert!(matches!(template.name(event_type, "db", "outbox"), Err(Refusal::Row(_))), "{event_type}");
        }
    }

    #[test]
    fn a_placeholder_that_is_not_known_is_an_error_of_the_configuration() {
        assert!(Template::parse("{familie}", "tidings").is_err());
        assert!(Template::parse("{family", "tidings").is_err());
    }
}
