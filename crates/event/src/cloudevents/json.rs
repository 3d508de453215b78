//! CloudEvents in structured JSON, media type [`MEDIA_TYPE`].
//!
//! The payload is the member `data`, with every byte as it was written, white space included. Where
//! the data of a foreign producer is in `data_base64`, it is read if it is JSON.

use std::{borrow::Cow, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use serde_json::value::RawValue;

use super::attributes::{self, Attribute, Attributes, SPEC_VERSION};
use super::rules::{broken, check_size};
use crate::{Error, Event};

/// The media type of an event in this format.
pub const MEDIA_TYPE: &str = "application/cloudevents+json";

/// Writes an event as one JSON object without a line end. `source` names the producer by a
/// URI-reference, such as `/tidings`.
///
/// # Errors
///
/// [`Error::Attribute`] or [`Error::TimeOutOfRange`] where a field cannot be an attribute (it is
/// empty, say), [`Error::TooLarge`] over [`MAX_EVENT_BYTES`](super::MAX_EVENT_BYTES).
pub fn encode(event: &Event, source: &str) -> Result<String, Error> {
    let structured = Structured { event, source, attributes: attributes::of(event, source)? };
    let text = serde_json::to_string(&structured).map_err(|source| Error::Json { source })?;
    check_size(text.len())?;
    Ok(text)
}

/// Reads an event from the bytes of one JSON object. Never panics, whatever the bytes are.
///
/// # Errors
///
/// Every variant of [`Error`] that speaks of JSON, attributes, data or size; see the
/// [mapping](super) for what an event must have.
pub fn decode(bytes: &[u8]) -> Result<Event, Error> {
    check_size(bytes.len())?;
    let text = std::str::from_utf8(bytes).map_err(|source| Error::Utf8 { source })?;
    let members: Members = serde_json::from_str(text).map_err(|source| Error::Json { source })?;
    let payload = match (members.data, members.data_base64) {
        (Some(data), None) => data,
        (None, Some(text)) => binary(&text)?,
        (None, None) => return Err(Error::Missing { name: "data" }),
        (Some(_), Some(_)) => return Err(broken("data", "excludes `data_base64`")),
    };
    attributes::read(members.attributes, payload)
}

fn binary(text: &str) -> Result<Box<RawValue>, Error> {
    let bytes = STANDARD.decode(text).map_err(|source| Error::Base64 { source })?;
    serde_json::from_slice(&bytes).map_err(|source| Error::Data { source })
}

struct Structured<'a> {
    event: &'a Event,
    source: &'a str,
    attributes: Vec<(&'a str, Attribute<'a>)>,
}

impl Serialize for Structured<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("specversion", SPEC_VERSION)?;
        object.serialize_entry("id", &self.event.id)?;
        object.serialize_entry("source", self.source)?;
        object.serialize_entry("type", &self.event.event_type)?;
        for (name, attribute) in &self.attributes {
            object.serialize_entry(name, attribute)?;
        }
        object.serialize_entry("data", &self.event.payload)?;
        object.end()
    }
}

/// The members of the object, each name once. A `data` of `null` is the payload `null`; any other
/// `null` is the same as an absent member.
#[derive(Default)]
struct Members {
    attributes: Attributes,
    data: Option<Box<RawValue>>,
    data_base64: Option<String>,
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> de::Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a CloudEvent")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::default();
        let mut binary: Option<Option<String>> = None;
        while let Some(Name(name)) = map.next_key()? {
            let is_new = match name.as_ref() {
                "data" => members.data.replace(map.next_value()?).is_none(),
                "data_base64" => binary.replace(map.next_value()?).is_none(),
                _ => members.attributes.insert(name.clone(), map.next_value()?),
            };
            if !is_new {
                return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
            }
        }
        members.data_base64 = binary.flatten();
        Ok(members)
    }
}

/// The name of a member, borrowed from the text unless an escape stands in it.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> de::Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}
