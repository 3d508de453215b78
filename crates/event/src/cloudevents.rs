//! CloudEvents 1.0: structured JSON ([`json`]) and Protobuf ([`protobuf`]).
//!
//! Both formats carry the same attributes:
//!
//! | attribute | CloudEvents type | holds |
//! |---|---|---|
//! | `specversion` | String | `1.0` |
//! | `id` | String | [`Event::id`](crate::Event::id) in lower case with hyphens |
//! | `source` | URI-reference | what the caller of `encode` says ([`SOURCE`] of Tidings' own); no part of the event |
//! | `type` | String | [`Event::event_type`](crate::Event::event_type) |
//! | `subject` | String | [`Event::aggregate_id`](crate::Event::aggregate_id) |
//! | `time` | Timestamp | [`Event::occurred_at`](crate::Event::occurred_at) |
//! | `datacontenttype` | String | `application/json` |
//! | `partitionkey` | String | [`Event::key`](crate::Event::key) |
//! | `sequence` | String | [`Event::version`](crate::Event::version) as 20 decimal digits |
//! | `aggregatetype` | String | [`Event::aggregate_type`](crate::Event::aggregate_type) |
//! | `schemaversion` | Integer | [`Event::schema_version`](crate::Event::schema_version), 1 to 2147483647 |
//! | `traceparent` | String | [`Metadata::traceparent`](crate::Metadata::traceparent) |
//! | `requestid` | String | [`Metadata::request_id`](crate::Metadata::request_id) |
//! | `useragent` | String | [`Metadata::user_agent`](crate::Metadata::user_agent) |
//! | `sourceip` | String | [`Metadata::source_ip`](crate::Metadata::source_ip) |
//! | any other | String, Integer, Boolean | its entry in [`Metadata::other`](crate::Metadata::other) |
//! | `metadatajson` | String | what of the metadata no attribute can hold |
//!
//! and the payload as their data, byte for byte.
//!
//! - `sequence` has leading zeros up to the 20 digits of the largest version, because the extension
//!   asks for values that sort as text. `sequencetype` is left out: its one value, `Integer`, ends at
//!   32 bits. When read, one to 20 digits are accepted.
//! - An attribute of type Binary, URI or Timestamp that is not known here is kept as its text (Base64;
//!   a timestamp to the millisecond). Where a Protobuf event is written again, it is a String.
//! - Attribute names are lower-case ASCII letters and digits, and texts hold no control characters and
//!   no noncharacters; CloudEvents allows no others. Metadata that breaks this, or is nested, or is a
//!   fraction or beyond 32 bits, travels as one JSON object in `metadatajson`, in the form that
//!   [`Metadata::to_json`](crate::Metadata::to_json) gives it. An attribute wins over an entry in there.
//! - An event that lacks an attribute above `traceparent` is refused: key, version and schema version
//!   are what order and parking rest on, and a default for them would be a guess. Only
//!   `datacontenttype` may be absent, and in JSON only, as the JSON format says.
//! - Events over [`MAX_EVENT_BYTES`] are neither written nor read.

use crate::{Error, Event};

mod attributes;
pub mod foreign;
pub mod json;
pub mod protobuf;
mod rules;

/// The `source` of Tidings' own events, wherever they are shown or stored. A relay may be told another one.
pub const SOURCE: &str = "/tidings";

/// Largest encoded event, in bytes. Kafka takes records of up to 1,048,588 bytes by default; the
/// difference is room for the key, the headers and the frame of the batch.
pub const MAX_EVENT_BYTES: usize = 1_000_000;

/// Checks that every wire format can hold the event, apart from its size.
///
/// # Errors
///
/// [`Error::Attribute`] names what is empty, out of range or holds a forbidden character;
/// [`Error::TimeOutOfRange`].
pub fn check(event: &Event) -> Result<(), Error> {
    attributes::check(event)
}
