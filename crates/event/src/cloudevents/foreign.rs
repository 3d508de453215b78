//! CloudEvents of other applications: what their outbox says, and no more.
//!
//! An [`Event`](crate::Event) has every attribute of the [mapping](super); an outbox that was made for
//! something else may lack most of them. A [`Foreign`] event has those that are there, written with the
//! same names and by the same rules, so that where all are there the bytes are the same.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use prost::Message;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use super::{
    attributes::{self, Attribute, SPEC_VERSION},
    protobuf,
    rules::{broken, check_required, check_size},
};
use crate::{Error, Metadata, Timestamp};

/// An event whose attributes may be absent, except the four that CloudEvents requires.
#[derive(Clone, Debug)]
pub struct Foreign<'a> {
    /// The identity of the event.
    pub id: Cow<'a, str>,
    /// The producer, a URI-reference.
    pub source: &'a str,
    /// The type of the event.
    pub event_type: Cow<'a, str>,
    /// The identity of the thing that changed.
    pub subject: Option<Cow<'a, str>>,
    /// When it changed.
    pub time: Option<Timestamp>,
    /// The media type of the data.
    pub content_type: &'a str,
    /// The unit of order.
    pub partition_key: Option<Cow<'a, str>>,
    /// The version of the thing that changed.
    pub sequence: Option<u64>,
    /// The kind of the thing that changed.
    pub aggregate_type: Option<Cow<'a, str>>,
    /// The version of the data's schema.
    pub schema_version: Option<u32>,
    /// Where the change came from.
    pub metadata: Metadata,
    /// Further attributes by their names.
    pub extensions: Vec<(&'a str, Cow<'a, str>)>,
    /// What happened.
    pub data: Data<'a>,
}

/// The data of a foreign event.
#[derive(Clone, Debug)]
pub enum Data<'a> {
    /// None at all.
    Absent,
    /// JSON, byte for byte.
    Json(&'a RawValue),
    /// A text that is no JSON.
    Text(Cow<'a, str>),
    /// Bytes.
    Binary(Cow<'a, [u8]>),
}

impl Foreign<'_> {
    /// The event as one JSON object without a line end.
    ///
    /// # Errors
    ///
    /// As [`super::json::encode`].
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        let structured = Structured { event: self, attributes: self.attributes()? };
        let json = serde_json::to_vec(&structured).map_err(|source| Error::Json { source })?;
        check_size(json.len())?;
        Ok(json)
    }

    /// The event as the message `io.cloudevents.v1.CloudEvent`.
    ///
    /// # Errors
    ///
    /// As [`super::protobuf::encode`].
    pub fn to_protobuf(&self) -> Result<Vec<u8>, Error> {
        use protobuf::message;
        let message = message::CloudEvent {
            attributes: self.attributes()?.into_iter().map(protobuf::write).collect(),
            id: self.id.to_string(),
            source: self.source.to_owned(),
            spec_version: SPEC_VERSION.to_owned(),
            r#type: self.event_type.to_string(),
            data: match &self.data {
                Data::Absent => None,
                Data::Json(json) => Some(message::Data::Text(json.get().to_owned())),
                Data::Text(text) => Some(message::Data::Text(text.to_string())),
                Data::Binary(bytes) => Some(message::Data::Binary(bytes.to_vec())),
            },
        };
        check_size(message.encoded_len())?;
        Ok(message.encode_to_vec())
    }

    fn attributes(&self) -> Result<Vec<(&str, Attribute<'_>)>, Error> {
        for (name, text) in [("id", &*self.id), ("source", self.source), ("type", &*self.event_type)] {
            check_required(name, text)?;
        }
        let mut attributes = Vec::with_capacity(12 + self.extensions.len());
        attributes.extend(text("subject", self.subject.as_deref())?);
        if let Some(time) = self.time {
            attributes.push(("time", Attribute::Time(time.in_range()?)));
        }
        attributes.push(("datacontenttype", Attribute::Text(self.content_type.into())));
        attributes.extend(text("partitionkey", self.partition_key.as_deref())?);
        attributes.extend(self.sequence.map(|number| ("sequence", Attribute::Text(format!("{number:020}").into()))));
        attributes.extend(text("aggregatetype", self.aggregate_type.as_deref())?);
        if let Some(version) = self.schema_version {
            attributes.push(("schemaversion", Attribute::Integer(attributes::check_schema_version(version)?)));
        }
        if !self.metadata.is_empty() {
            attributes::metadata_of(&self.metadata, &mut attributes);
        }
        for (name, value) in &self.extensions {
            check_required(name, value)?;
            if attributes.iter().any(|(known, _)| known == name) {
                return Err(broken(name, "occurs twice"));
            }
            attributes.push((name, Attribute::Text(Cow::Borrowed(value))));
        }
        Ok(attributes)
    }
}

fn text<'a>(name: &'static str, text: Option<&'a str>) -> Result<Option<(&'static str, Attribute<'a>)>, Error> {
    text.map(|text| check_required(name, text).map(|()| (name, Attribute::Text(text.into())))).transpose()
}

/// Checks that a name may be that of an extension.
///
/// # Errors
///
/// [`Error::Attribute`] where it may not: it is not of lower-case ASCII letters and digits, or it is the
/// name of an attribute of the [mapping](super).
pub fn check_extension(name: &str) -> Result<(), Error> {
    if attributes::is_free(name) { Ok(()) } else { Err(broken(name, "is no name for an extension")) }
}

struct Structured<'a> {
    event: &'a Foreign<'a>,
    attributes: Vec<(&'a str, Attribute<'a>)>,
}

impl Serialize for Structured<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("specversion", SPEC_VERSION)?;
        object.serialize_entry("id", &self.event.id)?;
        object.serialize_entry("source", self.event.source)?;
        object.serialize_entry("type", &self.event.event_type)?;
        for (name, attribute) in &self.attributes {
            object.serialize_entry(name, attribute)?;
        }
        match &self.event.data {
            Data::Absent => {}
            Data::Json(json) => object.serialize_entry("data", json)?,
            Data::Text(text) => object.serialize_entry("data", text)?,
            Data::Binary(bytes) => object.serialize_entry("data_base64", &STANDARD.encode(bytes))?,
        }
        object.end()
    }
}
