//! The envelope that every event shares (spec section "The event").

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Error, EventId, Timestamp, payload::Rest};

/// What happened to a fact: immutable, versioned, written in the same transaction as the fact.
#[derive(Clone, Debug)]
pub struct Event {
    /// Unique identity, made by the application.
    pub id: EventId,
    /// Dotted type, such as `relation.followed`. The part before the first dot is its family.
    pub event_type: String,
    /// Version of the payload's schema, from 1. A reader parks a version newer than it knows.
    pub schema_version: u32,
    /// Kind of the thing that changed, such as `relation`.
    pub aggregate_type: String,
    /// Identity of the thing that changed, such as `17:42` for the follow of 42 by 17.
    pub aggregate_id: String,
    /// The unit of order: all events of one key are applied in commit order.
    pub key: String,
    /// Rises by one with each change of the aggregate, from 1; by more where it is stated anew to repair a projection.
    pub version: u64,
    /// When the fact changed.
    pub occurred_at: Timestamp,
    /// Self-contained JSON, kept byte for byte, so that unknown fields pass through unchanged.
    pub payload: Box<RawValue>,
    /// Where the change came from.
    pub metadata: Metadata,
}

impl Event {
    /// The family of the event: its type up to the first dot. Topics are named by it.
    pub fn family(&self) -> &str {
        self.event_type.split('.').next().unwrap_or_default()
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.event_type == other.event_type
            && self.schema_version == other.schema_version
            && self.aggregate_type == other.aggregate_type
            && self.aggregate_id == other.aggregate_id
            && self.key == other.key
            && self.version == other.version
            && self.occurred_at == other.occurred_at
            && self.payload.get() == other.payload.get()
            && self.metadata == other.metadata
    }
}

/// Where a change came from. Every field is optional; unknown ones are kept.
///
/// As JSON it is one object, the form the outbox stores: absent fields are left out, and entries of
/// `other` stand beside the known fields. `other` must not bear the name of a known field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// W3C trace context of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Identity of the request, as answered in its `x-request-id` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The client's `user-agent` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Address of the client, as seen by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<String>,
    /// Attributes this version of Tidings does not know, kept for those that do.
    #[serde(flatten)]
    pub other: Rest,
}

impl Metadata {
    /// Names that entries of [`Metadata::other`] must not bear.
    pub const FIELDS: [&'static str; 4] = ["traceparent", "request_id", "user_agent", "source_ip"];

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        let Self { traceparent, request_id, user_agent, source_ip, other } = self;
        let absent = [traceparent, request_id, user_agent, source_ip].iter().all(|field| field.is_none());
        absent && other.is_empty()
    }

    /// The JSON object the outbox stores, `{}` when there is nothing to tell.
    pub fn to_json(&self) -> String {
        if self.is_empty() {
            return EMPTY.to_owned();
        }
        #[expect(clippy::expect_used, reason = "texts and JSON values under text keys are always JSON")]
        serde_json::to_string(self).expect("metadata is JSON")
    }

    /// Reads what [`Metadata::to_json`] wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Metadata`] where the text is not such an object, or a name occurs in it twice.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        if text == EMPTY {
            return Ok(Self::default());
        }
        serde_json::from_str(text).map_err(|source| Error::Metadata { source })
    }
}

/// Most events of a bulk import carry no metadata, so its text is told without a reader.
const EMPTY: &str = "{}";
