//! The event of Tidings: what happened to a fact, immutable and versioned, and its wire formats.
//!
//! This room knows bytes, JSON and Protobuf. It does no I/O and knows no social word beyond the
//! payload types in [`payload`].
//!
//! - [`Event`]: the envelope every feature shares.
//! - [`payload`]: one typed payload per event type, with its version.
//! - [`cloudevents`]: CloudEvents 1.0, structured JSON and Protobuf.
//! - [`Error`]: what can be wrong with an event. All of it is the event's own fault.
//!
//! Two more wire formats belong here, each as a module beside [`cloudevents`] with the same pair of
//! `encode` and `decode`: the flat message of Canal and the record of Debezium's outbox event router.
//! They come with the relay that reads the binlog, since the fields they carry (binlog file,
//! position, table, row images) are known there only.
//!
//! ```
//! use tidings_event::{Event, EventId, Metadata, Timestamp, cloudevents, payload::{Followed, Payload}};
//!
//! let followed_at = Timestamp(1_795_965_977_123);
//! let followed = Followed { from: 17.try_into()?, to: 42.try_into()?, followed_at, rest: Default::default() };
//! let event = Event {
//!     id: EventId::from_parts(followed_at, &[7; 10]),
//!     event_type: Followed::EVENT_TYPE.to_owned(),
//!     schema_version: Followed::SCHEMA_VERSION,
//!     aggregate_type: "relation".to_owned(),
//!     aggregate_id: "17:42".to_owned(),
//!     key: "17".to_owned(),
//!     version: 1,
//!     occurred_at: followed_at,
//!     payload: followed.write()?,
//!     metadata: Metadata::default(),
//! };
//! let text = cloudevents::json::encode(&event, "/tidings")?;
//! assert_eq!(cloudevents::json::decode(text.as_bytes())?, event);
//! assert_eq!(Followed::read(&event)?, followed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod envelope;
mod error;
mod id;
mod time;

pub mod cloudevents;
pub mod payload;

pub use envelope::{Event, Metadata};
pub use error::Error;
pub use id::EventId;
pub use time::Timestamp;
