//! Which rows are written in which format.

use serde::{Deserialize, Serialize};
use tidings_event::row::Change;

use super::{
    Batch,
    canal::{Canal, CanalOptions},
    cloudevents::{CloudEvents, CloudEventsOptions, Encoding},
    debezium::{Debezium, DebeziumOptions},
    topic::family,
};
use crate::{Result, relay::Table};

/// Which rows are written in which format. The default: all of them, as CloudEvents in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// The tables, as `database.table` with `*` for any run of characters; without any: all.
    pub tables: Vec<String>,
    /// The families of event types, such as `relation` for `relation.followed`; without any: all.
    pub families: Vec<String>,
    /// How the rows are written.
    pub format: Format,
}

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Format {
    /// CloudEvents 1.0 in structured JSON.
    CloudeventsJson(CloudEventsOptions),
    /// CloudEvents 1.0 in Protobuf.
    CloudeventsProtobuf(CloudEventsOptions),
    /// Canal's flat messages.
    Canal(CanalOptions),
    /// The records of Debezium's outbox event router.
    Debezium(DebeziumOptions),
}

impl Default for Format {
    fn default() -> Self {
        Self::CloudeventsJson(CloudEventsOptions::default())
    }
}

/// A route, ready for use.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    tables: Vec<String>,
    families: Vec<String>,
    writer: Writer,
}

#[derive(Clone, Debug)]
enum Writer {
    CloudEvents(CloudEvents),
    Canal(Canal),
    Debezium(Box<Debezium>),
}

impl Compiled {
    pub(super) fn new(route: &Route, prefix: &str) -> Result<Self> {
        let writer = match &route.format {
            Format::CloudeventsJson(options) => Writer::CloudEvents(CloudEvents::new(options, Encoding::Json, prefix)?),
            Format::CloudeventsProtobuf(options) => {
                Writer::CloudEvents(CloudEvents::new(options, Encoding::Protobuf, prefix)?)
            }
            Format::Canal(options) => Writer::Canal(Canal::new(options)?),
            Format::Debezium(options) => Writer::Debezium(Box::new(Debezium::new(options)?)),
        };
        Ok(Self { tables: route.tables.clone(), families: route.families.clone(), writer })
    }

    pub(super) fn has_table(&self, table: &Table) -> bool {
        let name = format!("{}.{}", table.definition.database, table.definition.name);
        self.tables.is_empty() || self.tables.iter().any(|pattern| matches(pattern, &name))
    }

    /// Another table comes: what was kept of the last one does not hold for it.
    pub(super) fn forget(&mut self) {
        if let Writer::CloudEvents(writer) = &mut self.writer {
            writer.forget();
        }
    }

    pub(super) fn is_for_all_families(&self) -> bool {
        self.families.is_empty()
    }

    pub(super) fn has_family(&self, event_type: &str) -> bool {
        let family = family(event_type);
        self.families.is_empty() || self.families.iter().any(|known| known == family)
    }

    pub(super) fn push(&mut self, rows: &[Change<'_>], batch: &mut Batch<'_, '_>) -> Result<()> {
        match &mut self.writer {
            Writer::CloudEvents(writer) => writer.push(rows, batch),
            Writer::Canal(writer) => writer.push(rows, batch),
            Writer::Debezium(writer) => writer.push(rows, batch),
        }
    }
}

/// Whether a name is that of a pattern, in which `*` stands for any run of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, mut rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    while let Some((part, more)) = rest.split_once('*') {
        let Some(at) = left.find(part) else { return false };
        (left, rest) = (&left[at + part.len()..], more);
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_matched_by_their_whole_name() {
        for (pattern, name) in [
            ("shop.outbox", "shop.outbox"),
            ("shop.*", "shop.outbox"),
            ("*.outbox", "shop.outbox"),
            ("shop*.out*x", "shop_7.outbox"),
            ("*", "shop.outbox"),
        ] {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["shop.outbo", "hop.outbox", "shop.outbox*x", "*.out", "", "shop*shop.outbox"] {
            assert!(!matches(pattern, "shop.outbox"), "{pattern}");
        }
    }

    #[test]
    fn a_route_is_read_strictly() {
        let text = r#"{"tables": ["shop.*"], "families": ["thing"],
            "format": {"kind": "cloudevents-protobuf", "source": "/shop", "topic": "things"}}"#;
        let route: Route = serde_json::from_str(text).unwrap();
        let Format::CloudeventsProtobuf(options) = &route.format else { panic!("{route:?}") };
        assert_eq!((options.source.as_str(), options.topic.as_str()), ("/shop", "things"));
        assert_eq!(serde_json::from_str::<Route>("{}").unwrap(), Route::default());
        for wrong in [
            r#"{"table": "shop.*"}"#,
            r#"{"format": {"kind": "avro"}}"#,
            r#"{"format": {"kind": "cloudevents-json", "sauce": "/shop"}}"#,
            r#"{"format": {"kind": "canal", "dynamicTopics": ""}}"#,
        ] {
            assert!(serde_json::from_str::<Route>(wrong).is_err(), "{wrong}");
        }
    }
}
