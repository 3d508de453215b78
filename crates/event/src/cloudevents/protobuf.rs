//! CloudEvents in Protobuf, media type [`MEDIA_TYPE`].
//!
//! The payload is `text_data`, byte for byte. Data of a foreign producer in `binary_data` is read if
//! it is JSON; `proto_data` is refused. Fields of the message beyond those of CloudEvents 1.0 are not
//! kept: extensions are entries of `attributes` by the specification, and those are.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use prost::Message;
use serde_json::{Value, value::RawValue};

use super::attributes::{self, Attribute, Attributes, SPEC_VERSION};
use super::rules::{broken, check_size};
use crate::{Error, Event, Timestamp};

/// The media type of an event in this format.
pub const MEDIA_TYPE: &str = "application/cloudevents+protobuf";

/// Writes an event as the message `io.cloudevents.v1.CloudEvent`. The same event gives the same
/// bytes. `source` names the producer by a URI-reference, such as `/tidings`.
///
/// # Errors
///
/// [`Error::Attribute`] or [`Error::TimeOutOfRange`] where a field cannot be an attribute (it is
/// empty, say), [`Error::TooLarge`] over [`MAX_EVENT_BYTES`](super::MAX_EVENT_BYTES).
pub fn encode(event: &Event, source: &str) -> Result<Vec<u8>, Error> {
    let attributes = attributes::of(event, source)?;
    let message = message::CloudEvent {
        id: event.id.to_string(),
        source: source.to_owned(),
        spec_version: SPEC_VERSION.to_owned(),
        r#type: event.event_type.clone(),
        attributes: attributes.into_iter().map(write).collect(),
        data: Some(message::Data::Text(event.payload.get().to_owned())),
    };
    check_size(message.encoded_len())?;
    Ok(message.encode_to_vec())
}

/// Reads an event from the bytes of one message. Never panics, whatever the bytes are.
///
/// # Errors
///
/// Every variant of [`Error`] that speaks of Protobuf, attributes, data or size; see the
/// [mapping](super) for what an event must have.
pub fn decode(bytes: &[u8]) -> Result<Event, Error> {
    check_size(bytes.len())?;
    let message = message::CloudEvent::decode(bytes).map_err(|source| Error::Protobuf { source })?;
    let payload = read_data(message.data.ok_or(Error::Missing { name: "data" })?)?;
    let mut attributes = Attributes::default();
    let fields = [
        ("id", message.id),
        ("source", message.source),
        ("specversion", message.spec_version),
        ("type", message.r#type),
    ];
    // Proto3 does not tell an empty text from an absent one.
    let fields = fields.map(|(name, text)| (name.into(), if text.is_empty() { Value::Null } else { text.into() }));
    for (name, value) in fields {
        insert(&mut attributes, name, value)?;
    }
    for entry in message.attributes {
        let value = read_value(&entry.key, entry.value)?;
        insert(&mut attributes, entry.key, value)?;
    }
    // Absent means JSON in the JSON format only.
    if !attributes.has("datacontenttype") {
        return Err(Error::Missing { name: "datacontenttype" });
    }
    attributes::read(attributes, payload)
}

fn insert(attributes: &mut Attributes, name: String, value: Value) -> Result<(), Error> {
    if attributes.insert(Cow::Borrowed(&name), value) { Ok(()) } else { Err(broken(&name, "occurs twice")) }
}

fn read_data(data: message::Data) -> Result<Box<RawValue>, Error> {
    match data {
        message::Data::Text(text) => RawValue::from_string(text).map_err(|source| Error::Data { source }),
        message::Data::Binary(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Data { source }),
        message::Data::Proto(_) => Err(broken("data", "must be JSON, not a Protobuf message")),
    }
}

fn read_value(name: &str, value: Option<message::Value>) -> Result<Value, Error> {
    Ok(match value.and_then(|value| value.attr) {
        None => Value::Null,
        Some(message::Attr::Boolean(value)) => Value::Bool(value),
        Some(message::Attr::Integer(number)) => Value::from(number),
        Some(message::Attr::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        Some(message::Attr::Text(text) | message::Attr::Uri(text) | message::Attr::UriRef(text)) => Value::String(text),
        Some(message::Attr::Moment(moment)) => Value::String(read_moment(name, moment)?.to_string()),
    })
}

fn read_moment(name: &str, moment: message::Timestamp) -> Result<Timestamp, Error> {
    let nanos = u32::try_from(moment.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let nanos = nanos.ok_or_else(|| broken(name, "must have 0 to 999999999 nanoseconds"))?;
    Timestamp::from_seconds(moment.seconds, nanos)
}

pub(super) fn write((name, attribute): (&str, Attribute<'_>)) -> message::Entry {
    let attr = match attribute {
        Attribute::Text(text) => message::Attr::Text(text.into_owned()),
        Attribute::Uri(text) => message::Attr::Uri(text.to_owned()),
        Attribute::Integer(number) => message::Attr::Integer(number),
        Attribute::Boolean(value) => message::Attr::Boolean(value),
        Attribute::Time(moment) => {
            let (seconds, millis) = moment.seconds_and_millis();
            // 999 milliseconds are 999,000,000 nanoseconds, well inside of an i32.
            message::Attr::Moment(message::Timestamp { seconds, nanos: millis * 1_000_000 })
        }
    };
    message::Entry { key: name.to_owned(), value: Some(message::Value { attr: Some(attr) }) }
}

/// The messages of `cloudevents.proto` of the specification 1.0.2, by hand: they are small and frozen,
/// and a build needs no `protoc`.
pub(super) mod message {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(in crate::cloudevents) struct CloudEvent {
        #[prost(string, tag = "1")]
        pub(in crate::cloudevents) id: String,
        #[prost(string, tag = "2")]
        pub(in crate::cloudevents) source: String,
        #[prost(string, tag = "3")]
        pub(in crate::cloudevents) spec_version: String,
        #[prost(string, tag = "4")]
        pub(in crate::cloudevents) r#type: String,
        /// A map on paper. On the wire a map is a list of entries, and as a list it is read and
        /// written without sorting, and tells where a name occurs twice.
        #[prost(message, repeated, tag = "5")]
        pub(in crate::cloudevents) attributes: Vec<Entry>,
        #[prost(oneof = "Data", tags = "6, 7, 8")]
        pub(in crate::cloudevents) data: Option<Data>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(in crate::cloudevents) enum Data {
        #[prost(bytes = "vec", tag = "6")]
        Binary(Vec<u8>),
        #[prost(string, tag = "7")]
        Text(String),
        /// A `google.protobuf.Any`, which is read no further; on the wire it looks like bytes.
        #[prost(bytes = "vec", tag = "8")]
        Proto(Vec<u8>),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(in crate::cloudevents) struct Entry {
        #[prost(string, tag = "1")]
        pub(in crate::cloudevents) key: String,
        #[prost(message, optional, tag = "2")]
        pub(in crate::cloudevents) value: Option<Value>,
    }

    /// `CloudEvent.CloudEventAttributeValue`.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(in crate::cloudevents) struct Value {
        #[prost(oneof = "Attr", tags = "1, 2, 3, 4, 5, 6, 7")]
        pub(in crate::cloudevents) attr: Option<Attr>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(in crate::cloudevents) enum Attr {
        #[prost(bool, tag = "1")]
        Boolean(bool),
        #[prost(int32, tag = "2")]
        Integer(i32),
        #[prost(string, tag = "3")]
        Text(String),
        #[prost(bytes = "vec", tag = "4")]
        Bytes(Vec<u8>),
        #[prost(string, tag = "5")]
        Uri(String),
        #[prost(string, tag = "6")]
        UriRef(String),
        #[prost(message, tag = "7")]
        Moment(Timestamp),
    }

    /// `google.protobuf.Timestamp`.
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(in crate::cloudevents) struct Timestamp {
        #[prost(int64, tag = "1")]
        pub(in crate::cloudevents) seconds: i64,
        #[prost(int32, tag = "2")]
        pub(in crate::cloudevents) nanos: i32,
    }
}
