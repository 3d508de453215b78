//! The mapping between an event and its attributes, the same in every format.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use super::rules::{EMPTY, FORBIDDEN, broken, check_required, escaped, is_digits, is_name, is_text};
use crate::{Error, Event, EventId, Metadata, Timestamp, payload::Rest};

pub(super) const SPEC_VERSION: &str = "1.0";
pub(super) const CONTENT_TYPE: &str = "application/json";

/// The attributes that have a field of their own, in the order they are written.
const KNOWN: [&str; 16] = [
    "specversion",
    "id",
    "source",
    "type",
    "subject",
    "time",
    "datacontenttype",
    "partitionkey",
    "sequence",
    "aggregatetype",
    "schemaversion",
    "traceparent",
    "requestid",
    "useragent",
    "sourceip",
    "metadatajson",
];

/// The value of an attribute to be written.
pub(super) enum Attribute<'a> {
    Text(Cow<'a, str>),
    Uri(&'a str),
    Integer(i32),
    Boolean(bool),
    Time(Timestamp),
}

impl Serialize for Attribute<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Uri(text) => serializer.serialize_str(text),
            Self::Integer(number) => serializer.serialize_i32(*number),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Time(moment) => serializer.collect_str(moment),
        }
    }
}

/// The attributes of an event beyond `specversion`, `id`, `source` and `type`, in the order they are
/// written. These four have been checked when this returns.
pub(super) fn of<'a>(event: &'a Event, source: &'a str) -> Result<Vec<(&'a str, Attribute<'a>)>, Error> {
    check_required("source", source)?;
    check_required("type", &event.event_type)?;
    let text = |name, text: &'a str| check_required(name, text).map(|()| (name, Attribute::Text(text.into())));
    let schema_version = check_schema_version(event.schema_version)?;

    let mut attributes = Vec::with_capacity(14 + event.metadata.other.len());
    attributes.extend([
        text("subject", &event.aggregate_id)?,
        ("time", Attribute::Time(event.occurred_at.in_range()?)),
        ("datacontenttype", Attribute::Text(CONTENT_TYPE.into())),
        text("partitionkey", &event.key)?,
        ("sequence", Attribute::Text(format!("{:020}", event.version).into())),
        text("aggregatetype", &event.aggregate_type)?,
        ("schemaversion", Attribute::Integer(schema_version)),
    ]);
    if !event.metadata.is_empty() {
        metadata_of(&event.metadata, &mut attributes);
    }
    Ok(attributes)
}

/// Checks what [`of`] would check, and that no other metadata bears the name of a known field.
pub(super) fn check(event: &Event) -> Result<(), Error> {
    let texts = [
        ("type", &event.event_type),
        ("subject", &event.aggregate_id),
        ("partitionkey", &event.key),
        ("aggregatetype", &event.aggregate_type),
    ];
    texts.into_iter().try_for_each(|(name, text)| check_required(name, text))?;
    check_schema_version(event.schema_version)?;
    event.occurred_at.in_range()?;
    let doubled = event.metadata.other.keys().find(|name| Metadata::FIELDS.contains(&name.as_str()));
    doubled.map_or(Ok(()), |name| Err(broken(name, "is the name of a field of the metadata")))
}

pub(super) fn check_schema_version(version: u32) -> Result<i32, Error> {
    let version = i32::try_from(version).ok().filter(|version| *version > 0);
    version.ok_or_else(|| broken("schemaversion", "must be from 1 to 2147483647"))
}

pub(super) fn metadata_of<'a>(metadata: &'a Metadata, attributes: &mut Vec<(&'a str, Attribute<'a>)>) {
    let mut left = Metadata::default();
    let known = [
        ("traceparent", &metadata.traceparent, &mut left.traceparent),
        ("requestid", &metadata.request_id, &mut left.request_id),
        ("useragent", &metadata.user_agent, &mut left.user_agent),
        ("sourceip", &metadata.source_ip, &mut left.source_ip),
    ];
    for (name, text, left) in known {
        match text {
            Some(text) if check_required(name, text).is_ok() => attributes.push((name, Attribute::Text(text.into()))),
            Some(text) => *left = Some(text.clone()),
            None => {}
        }
    }
    for (name, value) in &metadata.other {
        match other_of(name, value) {
            Some(attribute) => attributes.push((name, attribute)),
            None => drop(left.other.insert(name.clone(), value.clone())),
        }
    }
    if !left.is_empty() {
        attributes.push(("metadatajson", Attribute::Text(escaped(left.to_json()).into())));
    }
}

/// The attribute that can hold an entry of the other metadata, if any can.
fn other_of<'a>(name: &str, value: &'a Value) -> Option<Attribute<'a>> {
    if !is_free(name) {
        return None;
    }
    match value {
        // The one attribute of CloudEvents that is optional and has no place in an event.
        Value::String(text) if name == "dataschema" => check_required(name, text).ok().map(|()| Attribute::Uri(text)),
        Value::String(text) => is_text(text).then(|| Attribute::Text(text.into())),
        Value::Number(number) => number.as_i64().and_then(|it| i32::try_from(it).ok()).map(Attribute::Integer),
        Value::Bool(value) => Some(Attribute::Boolean(*value)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Builds an event from all its attributes and its data.
pub(super) fn read(mut attributes: Attributes, payload: Box<RawValue>) -> Result<Event, Error> {
    if attributes.required("specversion")? != SPEC_VERSION {
        return Err(broken("specversion", "must be 1.0"));
    }
    attributes.required("source")?;
    if let Some(content_type) = attributes.text("datacontenttype")?
        && !is_json(&content_type)
    {
        return Err(broken("datacontenttype", "must be application/json"));
    }
    Ok(Event {
        id: read_id(&attributes.required("id")?)?,
        event_type: attributes.required("type")?,
        schema_version: attributes.schema_version()?,
        aggregate_type: attributes.required("aggregatetype")?,
        aggregate_id: attributes.required("subject")?,
        key: attributes.required("partitionkey")?,
        version: read_sequence(&attributes.required("sequence")?)?,
        occurred_at: attributes.required("time")?.parse()?,
        payload,
        metadata: attributes.metadata()?,
    })
}

/// Whether an entry of [`Metadata::other`] can be an attribute of its own name.
pub(super) fn is_free(name: &str) -> bool {
    is_name(name) && name != "data" && !KNOWN.contains(&name)
}

fn place_of(name: &str) -> Option<usize> {
    KNOWN.iter().position(|known| *known == name)
}

/// Attributes as a format hands them over and as an event takes them. The known ones have fixed
/// places, since hashing their names cost more than all the rest of the reading.
#[derive(Default)]
pub(super) struct Attributes {
    known: [Option<Value>; KNOWN.len()],
    other: Rest,
}

impl Attributes {
    /// Adds an attribute, `null` for one that is unset. False where its name was there already.
    #[must_use]
    pub(super) fn insert(&mut self, name: Cow<'_, str>, value: Value) -> bool {
        match place_of(&name) {
            Some(place) => self.known[place].replace(value).is_none(),
            None => self.other.insert(name.into_owned(), value).is_none(),
        }
    }

    /// Whether a known attribute is there and set.
    pub(super) fn has(&self, name: &'static str) -> bool {
        place_of(name).and_then(|place| self.known[place].as_ref()).is_some_and(|value| !value.is_null())
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        place_of(name).and_then(|place| self.known[place].take()).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if is_text(&text) => Ok(Some(text)),
            Some(Value::String(_)) => Err(broken(name, FORBIDDEN)),
            Some(_) => Err(broken(name, "must be a text")),
        }
    }

    fn required(&mut self, name: &'static str) -> Result<String, Error> {
        let text = self.text(name)?.ok_or(Error::Missing { name })?;
        if text.is_empty() { Err(broken(name, EMPTY)) } else { Ok(text) }
    }

    /// An Integer; its digits as a text are read as well, since bindings that carry attributes as
    /// headers make texts of all of them.
    fn schema_version(&mut self) -> Result<u32, Error> {
        const NAME: &str = "schemaversion";
        let number = match self.take(NAME).ok_or(Error::Missing { name: NAME })? {
            Value::Number(number) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
            Value::String(text) if is_digits(&text) => text.parse().ok(),
            _ => None,
        };
        number
            .filter(|number| *number > 0)
            .map(i32::unsigned_abs)
            .ok_or_else(|| broken(NAME, "must be from 1 to 2147483647"))
    }

    /// Takes all that is left.
    fn metadata(mut self) -> Result<Metadata, Error> {
        let left = match self.text("metadatajson")? {
            Some(text) => Metadata::from_json(&text)?,
            None => Metadata::default(),
        };
        let mut metadata = Metadata {
            traceparent: self.text("traceparent")?.or(left.traceparent),
            request_id: self.text("requestid")?.or(left.request_id),
            user_agent: self.text("useragent")?.or(left.user_agent),
            source_ip: self.text("sourceip")?.or(left.source_ip),
            other: self.other,
        };
        for (name, value) in &metadata.other {
            check_other(name, value)?;
        }
        metadata.other.retain(|_, value| !value.is_null());
        for (name, value) in left.other {
            metadata.other.entry(name).or_insert(value);
        }
        Ok(metadata)
    }
}

fn check_other(name: &str, value: &Value) -> Result<(), Error> {
    if !is_free(name) {
        return Err(broken(name, "has a name that CloudEvents does not allow"));
    }
    match value {
        Value::String(text) if !is_text(text) => Err(broken(name, FORBIDDEN)),
        Value::Number(number) if number.as_i64().is_none_or(|it| i32::try_from(it).is_err()) => {
            Err(broken(name, "must be a whole number of 32 bits"))
        }
        Value::Array(_) | Value::Object(_) => Err(broken(name, "must not be nested")),
        _ => Ok(()),
    }
}

/// Ids are compared as bytes by every consumer, so only the one canonical text is an id.
fn read_id(text: &str) -> Result<EventId, Error> {
    let id = text.parse::<EventId>().map_err(|source| Error::Id { source })?;
    if id.is_written(text) { Ok(id) } else { Err(broken("id", "must be in lower case with hyphens")) }
}

fn read_sequence(text: &str) -> Result<u64, Error> {
    let number = if is_digits(text) && text.len() <= 20 { text.parse().ok() } else { None };
    number.ok_or_else(|| broken("sequence", "must be up to 20 digits, at most 18446744073709551615"))
}

/// Whether a media type is `application/json`, with whatever parameters.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(CONTENT_TYPE)
}
