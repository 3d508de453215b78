//! Events as they come out of Kafka.

use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp as RecordTime};
use tidings_event::{Event, Timestamp, cloudevents};

use crate::{
    Error,
    log::{Offset, Recorded},
    outbox::{self, MalformedEvent},
};

/// The header that tells the format of a value.
pub(crate) const CONTENT_TYPE: &str = "content-type";
/// CloudEvents as JSON, the default.
pub(crate) const JSON: &str = "application/cloudevents+json; charset=UTF-8";
/// CloudEvents as Protobuf.
pub(crate) const PROTOBUF: &str = "application/cloudevents+protobuf";

/// Reads a record as an event.
pub(crate) fn read(message: &BorrowedMessage<'_>) -> Result<Recorded, Box<MalformedEvent>> {
    let value = message.payload().unwrap_or_default();
    let offset = Offset(message.offset());
    // What cannot be read may be of any type.
    let malformed = |event_type: String, key: &[u8], reason: String| {
        let (key, columns) = (outbox::key_that_fits(key), String::from_utf8_lossy(value).into_owned());
        Err(Box::new(MalformedEvent { offset, event_type, key, columns, reason }))
    };
    match decode(message, value) {
        Ok(event) => match outbox::check_key(&event.key) {
            Ok(()) => Ok(Recorded { offset, event }),
            Err(error) => malformed(event.event_type, event.key.as_bytes(), Error::chain(&error)),
        },
        Err(error) => malformed(String::new(), message.key().unwrap_or_default(), Error::chain(&error)),
    }
}

fn decode(message: &BorrowedMessage<'_>, value: &[u8]) -> Result<Event, tidings_event::Error> {
    let is_protobuf = message.headers().is_some_and(|headers| {
        headers.iter().any(|header| {
            header.key.eq_ignore_ascii_case(CONTENT_TYPE)
                && header.value.is_some_and(|value| value.starts_with(PROTOBUF.as_bytes()))
        })
    });
    if is_protobuf { cloudevents::protobuf::decode(value) } else { cloudevents::json::decode(value) }
}

/// When a record was appended, where its topic keeps that; else what [`occurred_at`] says.
pub(crate) fn appended_at(message: &BorrowedMessage<'_>) -> Option<Timestamp> {
    match message.timestamp() {
        RecordTime::LogAppendTime(millis) => Some(Timestamp(millis)),
        RecordTime::CreateTime(_) | RecordTime::NotAvailable => occurred_at(message),
    }
}

/// When the event of a record occurred, or else when the record was made.
pub(crate) fn occurred_at(message: &BorrowedMessage<'_>) -> Option<Timestamp> {
    let recorded = || message.timestamp().to_millis().map(Timestamp);
    read(message).ok().map(|recorded| recorded.event.occurred_at).or_else(recorded)
}
