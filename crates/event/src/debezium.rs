//! The record of Debezium's outbox event router, as Debezium 3 puts it on Kafka.
//!
//! A [`Router`] stands for the router (the transformation `io.debezium.transforms.outbox.EventRouter`)
//! and the Connect converters behind it. It is configured by their own option names, so that a
//! connector's configuration can be taken over ([`Options::set`]), and takes any outbox table's rows:
//!
//! | part | content |
//! |---|---|
//! | topic | the column `aggregatetype`, after [`Options::topic_regex`]; `outbox.event.` before it by default |
//! | key | the column `aggregateid`, through [`Options::key_converter`] |
//! | value | the column `payload`, through [`Options::value_converter`]; with columns in the envelope an object |
//! | headers | `id` and each column that is placed there, as plain text |
//! | partition | none (Kafka's own choice, by key), or a column that is placed there |
//! | timestamp | a column, or when the relay read the row |
//!
//! An insert makes a record, a delete none, an update what [`Options::on_update`] says.
//!
//! Columns are turned into values as Debezium's connector does with its default modes, surprises
//! included: BIGINT UNSIGNED is signed ([`Options::bigint_unsigned`]), the year 0000 is 1900, dates with a
//! zero in them are NULL, the zero timestamp is the start of the epoch, and JSON has no white space. Where a
//! JSON column holds fractions, Debezium writes all their binary digits; they stay as they are here.
//!
//! Debezium fails or stalls on some rows; here is what happens instead. A payload that cannot be
//! expanded goes out as its text. Bytes through the string converter go out as they are, where Java
//! prints the address of an object. A timestamp column of type BIGINT is taken as milliseconds. The
//! `__debezium.context.*` headers of Debezium 3.6 name parts of a Connect cluster and are left out, and
//! so are the column defaults in a JSON schema.

mod connect;
mod converter;
mod expand;
mod options;
mod own;
mod router;
mod schema;
mod topic;

pub use options::{BigintUnsigned, BinaryHandling, Converter, OnUpdate, Options, Place, Placement};
pub use own::OwnRow;
pub use router::{Routed, Router};

/// What goes to Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The topic.
    pub topic: String,
    /// The partition, if a column says it; otherwise the producer's choice by the key.
    pub partition: Option<i32>,
    /// The key; none where its column is NULL.
    pub key: Option<Vec<u8>>,
    /// The value; none is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Names and values, in order. A value is none where its column is NULL.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}
