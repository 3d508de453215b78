//! What a sink is given.

use std::sync::Arc;

use crate::trace::Read;

/// One record, ready to be appended to a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Topic, stream or path it goes to.
    pub topic: Arc<str>,
    /// The partition, where the format decides it; otherwise the sink takes murmur2 of the key.
    pub partition: Option<i32>,
    /// The key, as bytes on the wire.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Headers, in order. A value may be absent, where it comes from a column that is NULL.
    pub headers: Vec<(Arc<str>, Option<Vec<u8>>)>,
    /// Epoch milliseconds; `None` leaves the time to the sink.
    pub timestamp_ms: Option<i64>,
    /// Identity of the event, as text: what a dead letter names. Empty where the record has several rows, or its table
    /// has no such column.
    pub event_id: Arc<str>,
    /// The unit of order, as text, whatever the format makes of it: a dead letter parks it. Empty where
    /// the record has rows of several keys, or its table has no such column.
    pub order_key: Arc<str>,
    /// Set where the request is traced that the record's event is of.
    pub trace: Option<Box<Read>>,
}

impl Record {
    /// Bytes of key, value and headers.
    pub fn bytes(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + length(value)).sum();
        length(&self.key) + length(&self.value) + headers
    }
}
