//! What can be wrong with an event, or with the configuration of a format.

/// Why an event, or a part of one, could not be read or written.
///
/// Every variant but two is the event's own fault: trying again gives the same answer, so a projector
/// parks the key of the event and goes on with the others. [`Error::Pattern`] and [`Error::Option`] are
/// those of a configuration, and come before any event does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The payload was asked for as another type than the event is of.
    #[error("expected an event of type `{expected}`, found `{found}`")]
    OtherType {
        /// The type asked for.
        expected: &'static str,
        /// The type of the event.
        found: String,
    },
    /// The event was written by a newer version; guessing its meaning would be worse than waiting.
    #[error("`{event_type}` has schema version {found}, newer than the known {known}")]
    SchemaTooNew {
        /// The type of the event.
        event_type: &'static str,
        /// The version of the event.
        found: u32,
        /// The newest version this code reads.
        known: u32,
    },
    /// The payload is not the JSON its type asks for.
    #[error("the payload of `{event_type}` is malformed")]
    Malformed {
        /// The type of the event.
        event_type: &'static str,
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// The metadata is not a JSON object of the fields it should have.
    #[error("the metadata is malformed")]
    Metadata {
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// The text is not an RFC 3339 date and time.
    #[error("not a date and time as RFC 3339 writes it")]
    Time {
        /// What the reader said; absent where date and time are not parted by `T`, `t` or a space.
        source: Option<time::error::Parse>,
    },
    /// The moment lies outside the years 1 to 9999, which are all that the wire formats can hold.
    #[error("the moment lies outside the years 1 to 9999")]
    TimeOutOfRange,
    /// The encoded event is larger than [`MAX_EVENT_BYTES`](crate::cloudevents::MAX_EVENT_BYTES).
    #[error("the event takes {found} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Bytes of the encoded event.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("the event is not UTF-8")]
    Utf8 {
        /// Where it breaks.
        source: std::str::Utf8Error,
    },
    /// The text is not one JSON object whose members are all different.
    #[error("the event is not a JSON object of distinct members")]
    Json {
        /// What the JSON reader or writer said.
        source: serde_json::Error,
    },
    /// The bytes are not the Protobuf message `io.cloudevents.v1.CloudEvent`.
    #[error("the event is not a CloudEvent in Protobuf")]
    Protobuf {
        /// What the Protobuf reader said.
        source: prost::DecodeError,
    },
    /// A CloudEvents attribute that an event of Tidings needs is absent or null.
    #[error("the attribute `{name}` is missing")]
    Missing {
        /// Name of the attribute.
        name: &'static str,
    },
    /// A CloudEvents attribute breaks a rule.
    #[error("the attribute `{name}` {rule}")]
    Attribute {
        /// Name of the attribute.
        name: String,
        /// The rule it breaks, as the end of the sentence.
        rule: &'static str,
    },
    /// The `id` is not a UUID.
    #[error("the attribute `id` is not a UUID")]
    Id {
        /// What the UUID reader said.
        source: uuid::Error,
    },
    /// The `data_base64` is not Base64.
    #[error("the binary data is not Base64")]
    Base64 {
        /// Where it breaks.
        source: base64::DecodeError,
    },
    /// The data is not JSON.
    #[error("the data is not JSON")]
    Data {
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// A row lacks a column that the record is made of, or the column does not fit its use.
    #[error("the column `{name}` {rule}")]
    Column {
        /// Name of the column.
        name: String,
        /// The rule it breaks, as the end of the sentence.
        rule: &'static str,
    },
    /// A row of an outbox was changed, and the configuration says that this must stop the relay.
    #[error("a row of the outbox was updated")]
    Updated,
    /// A pattern of the configuration cannot be compiled.
    #[error("the pattern `{pattern}` is malformed")]
    Pattern {
        /// The pattern as it was written.
        pattern: String,
        /// What the compiler of patterns said.
        source: Box<regex::Error>,
    },
    /// An option of the configuration has a value that it cannot have.
    #[error("the option `{name}` {rule}")]
    Option {
        /// Name of the option.
        name: String,
        /// The rule it breaks, as the end of the sentence.
        rule: &'static str,
    },
}

impl Error {
    pub(crate) fn option(name: &str, rule: &'static str) -> Self {
        Self::Option { name: name.to_owned(), rule }
    }

    pub(crate) fn column(name: &str, rule: &'static str) -> Self {
        Self::Column { name: name.to_owned(), rule }
    }
}
