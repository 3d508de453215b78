//! CloudEvents from the rows of an outbox: Tidings' own, or anyone's by the names of its columns.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidings_event::{
    Event, EventId, Metadata, Timestamp,
    cloudevents::{
        self,
        foreign::{self, Data, Foreign},
    },
    row::{self, Change, Value},
};

use super::{
    Batch, Refusal,
    columns::{Row, moment, padded},
    topic::Template,
};
use crate::{
    Error, Result,
    kafka::message,
    relay::{Places, Record},
};

/// How rows become CloudEvents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudEventsOptions {
    /// The attribute `source`, a URI-reference: `/tidings`.
    pub source: String,
    /// The topic: `{prefix}.{family}`. Besides these two it may hold `{type}`, `{database}` and `{table}`.
    pub topic: String,
    /// The type of events from a table that has no column for it; none.
    pub event_type: String,
    /// The media type of the payload: `application/json`. With another one the payload is not looked at.
    pub content_type: String,
    /// Further attributes: the name of each to the column it is read from.
    pub extensions: BTreeMap<String, String>,
}

impl Default for CloudEventsOptions {
    fn default() -> Self {
        Self {
            source: cloudevents::SOURCE.to_owned(),
            topic: "{prefix}.{family}".to_owned(),
            event_type: String::new(),
            content_type: JSON.to_owned(),
            extensions: BTreeMap::new(),
        }
    }
}

const JSON: &str = "application/json";

/// How an event becomes bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// Writes CloudEvents.
#[derive(Clone, Debug)]
pub(super) struct CloudEvents {
    options: CloudEventsOptions,
    encoding: Encoding,
    topic: Template,
    content_type: Arc<str>,
}

impl CloudEvents {
    pub(super) fn new(options: &CloudEventsOptions, encoding: Encoding, prefix: &str) -> Result<Self> {
        options.extensions.keys().try_for_each(|name| foreign::check_extension(name)).map_err(Error::Event)?;
        let topic = Template::parse(&options.topic, prefix)?;
        Ok(Self { options: options.clone(), encoding, topic, content_type: "content-type".into() })
    }

    pub(super) fn push(&mut self, rows: &[Change<'_>], batch: &mut Batch<'_, '_>) -> Result<()> {
        let (changes, plan) = (batch.changes, batch.plan);
        let places = &changes.table.places;
        let order = places.event_key.or(places.aggregate_id);
        if plan.is_own && self.options.extensions.is_empty() {
            batch.push_inserts(rows, order, |row, key| self.own(row, places, key, &plan.table.definition))
        } else {
            batch.push_inserts(rows, order, |row, key| self.foreign(row, places, key, &plan.table.definition))
        }
    }

    pub(super) fn forget(&mut self) {
        self.topic.forget();
    }

    fn own(&mut self, row: &Row<'_>, places: &Places, key: &str, table: &row::Table) -> Result<Record, Refusal> {
        let event = own_event(row, places, key)?;
        let source = &self.options.source;
        let value = match self.encoding {
            Encoding::Json => cloudevents::json::encode(&event, source)?.into_bytes(),
            Encoding::Protobuf => cloudevents::protobuf::encode(&event, source)?,
        };
        let topic = self.topic.name(&event.event_type, &table.database, &table.name)?;
        Ok(Record { timestamp_ms: Some(event.occurred_at.0), ..self.record(topic, value, &event.id.to_string(), key) })
    }

    fn foreign(&mut self, row: &Row<'_>, places: &Places, key: &str, table: &row::Table) -> Result<Record, Refusal> {
        let has_json = row.cell(places.payload).is_some() && self.options.content_type == JSON;
        let json = has_json.then(|| json_of(row, places)).transpose()?;
        let event = foreign_event(&self.options, row, places, key, json.as_deref(), table)?;
        let value = match self.encoding {
            Encoding::Json => event.to_json()?,
            Encoding::Protobuf => event.to_protobuf()?,
        };
        let topic = self.topic.name(&event.event_type, &table.database, &table.name)?;
        let (id, time) = (event.id, event.time);
        Ok(Record { timestamp_ms: time.map(|time| time.0), ..self.record(topic, value, &id, key) })
    }

    fn record(&self, topic: Arc<str>, value: Vec<u8>, id: &str, key: &str) -> Record {
        let media_type: &[u8] = match self.encoding {
            Encoding::Json => message::JSON.as_bytes(),
            Encoding::Protobuf => b"application/cloudevents+protobuf",
        };
        Record {
            topic,
            key: (!key.is_empty()).then(|| key.as_bytes().to_vec()),
            value: Some(value),
            headers: vec![(self.content_type.clone(), Some(media_type.to_vec()))],
            event_id: id.into(),
            order_key: key.into(),
            ..Record::default()
        }
    }
}

fn foreign_event<'r>(
    options: &'r CloudEventsOptions,
    row: &Row<'r>,
    places: &Places,
    key: &'r str,
    json: Option<&'r RawValue>,
    table: &row::Table,
) -> Result<Foreign<'r>, Refusal> {
    let mut extensions = Vec::with_capacity(options.extensions.len());
    for (name, column) in &options.extensions {
        let place = table.position(column).ok_or_else(|| missing(column))?;
        extensions.extend(row.text(Some(place)).map(|text| (name.as_str(), text)));
    }
    let given = Some(Cow::Borrowed(options.event_type.as_str())).filter(|given| !given.is_empty());
    Ok(Foreign {
        id: row.text(places.event_id).ok_or_else(|| missing("event_id"))?,
        source: &options.source,
        event_type: row.text(places.event_type).or(given).ok_or_else(|| missing("event_type"))?,
        subject: row.text(places.aggregate_id),
        time: row.cell(places.occurred_at).and_then(|(_, value)| moment(value)),
        content_type: &options.content_type,
        partition_key: (!key.is_empty()).then_some(Cow::Borrowed(key)),
        sequence: row.number(places.version),
        aggregate_type: row.text(places.aggregate_type),
        schema_version: row.number(places.schema_version).and_then(|version| u32::try_from(version).ok()),
        metadata: row.exact_text(places.metadata).map(Metadata::from_json).transpose()?.unwrap_or_default(),
        extensions,
        data: match (json, row.cell(places.payload)) {
            (Some(json), _) => Data::Json(json),
            (None, None) => Data::Absent,
            (None, Some((column, Value::Bytes(bytes)))) => Data::Binary(padded(column, bytes)),
            (None, Some(_)) => row.text(places.payload).map_or(Data::Absent, Data::Text),
        },
    })
}

/// The payload of a foreign row. NULL is no payload and stays so; what is no JSON is refused.
fn json_of(row: &Row<'_>, places: &Places) -> Result<Box<RawValue>, Refusal> {
    let text = row.exact_text(places.payload).ok_or_else(|| Refusal::Row("the payload is no text".to_owned()))?;
    RawValue::from_string(text.to_owned()).map_err(|error| Refusal::Row(format!("the payload is no JSON: {error}")))
}

/// An event of Tidings from a row of its own outbox.
pub(super) fn own_event(row: &Row<'_>, places: &Places, key: &str) -> Result<Event, Refusal> {
    let text = |place, name: &str| row.exact_text(place).ok_or_else(|| missing(name));
    let payload = RawValue::from_string(text(places.payload, "payload")?.to_owned())
        .map_err(|error| Refusal::Row(format!("the payload is no JSON: {error}")))?;
    let schema_version = row.number(places.schema_version).and_then(|version| u32::try_from(version).ok());
    let occurred_at = match row.cell(places.occurred_at) {
        Some((_, Value::Int(millis))) => Timestamp(*millis),
        _ => return Err(missing("occurred_at")),
    };
    let event = Event {
        id: own_id(row, places)?,
        event_type: text(places.event_type, "event_type")?.to_owned(),
        schema_version: schema_version.ok_or_else(|| missing("schema_version"))?,
        aggregate_type: text(places.aggregate_type, "aggregate_type")?.to_owned(),
        aggregate_id: text(places.aggregate_id, "aggregate_id")?.to_owned(),
        key: key.to_owned(),
        version: row.number(places.version).ok_or_else(|| missing("version"))?,
        occurred_at,
        payload,
        metadata: Metadata::from_json(text(places.metadata, "metadata")?)?,
    };
    Ok(event)
}

fn own_id(row: &Row<'_>, places: &Places) -> Result<EventId, Refusal> {
    let Some((column, Value::Bytes(bytes))) = row.cell(places.event_id) else { return Err(missing("event_id")) };
    let bytes = <[u8; 16]>::try_from(&*padded(column, bytes));
    bytes.map(EventId::from_bytes).map_err(|_| Refusal::Row("event_id has more than 16 bytes".to_owned()))
}

fn missing(column: &str) -> Refusal {
    Refusal::Row(format!("the column `{column}` is missing, NULL or of the wrong type"))
}
