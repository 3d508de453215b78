//! The event of Tidings: what happened to a fact, immutable and versioned, and its wire formats.
//!
//! This room knows bytes, JSON and Protobuf. It does no I/O and knows no social word beyond the
//! payload types in [`payload`].
//!
//! - [`Event`]: the envelope every feature shares.
//! - [`payload`]: one typed payload per event type, with its version.
//! - [`cloudevents`]: CloudEvents 1.0, structured JSON and Protobuf.
//! - [`row`]: a database row, from which the two formats below are written.
//! - [`canal`]: Canal's flat message, with its topics and partitions.
//! - [`debezium`]: the record of Debezium's outbox event router.
//! - [`Error`]: what can be wrong with an event, or with the configuration of a format.
//!
//! Events of Tidings are encoded and decoded by [`cloudevents`]. [`canal`] and [`debezium`] stand in for
//! other relays: they write what a consumer of those expects, from any table's rows.
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
mod java;
mod time;

pub mod canal;
pub mod cloudevents;
pub mod debezium;
pub mod payload;
pub mod row;

pub use envelope::{Event, Metadata};
pub use error::Error;
pub use id::EventId;
pub use time::Timestamp;
