//! What became of the records that were handed to the client.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::{
    ClientContext,
    config::RDKafkaLogLevel,
    error::KafkaError,
    producer::{DeliveryResult, ProducerContext},
    types::RDKafkaErrorCode,
};

/// Collects the records of a transaction that were not delivered. Those that were say nothing: a report
/// for each would cost more than the record itself.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Mutex<Undelivered>);

/// The records of a transaction that were not delivered.
#[derive(Debug, Default)]
pub(super) struct Undelivered {
    /// The first error that no size is to blame for.
    pub(super) error: Option<KafkaError>,
    /// The largest record among those that the broker found too large, as its index and bytes. Brokers
    /// refuse whole batches, so its neighbours may be innocent; the largest is not.
    pub(super) too_large: Option<(usize, usize)>,
}

impl Deliveries {
    pub(super) fn take(&self) -> Undelivered {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Undelivered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProducerContext for Deliveries {
    /// The index of the record in its batch.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let Err((error, message)) = result else { return };
        let mut undelivered = self.lock();
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::MessageSizeTooLarge) {
            undelivered.error.get_or_insert_with(|| error.clone());
            return;
        }
        let bytes = message.payload_len() + message.key_len();
        if undelivered.too_large.is_none_or(|(_, largest)| bytes > largest) {
            undelivered.too_large = Some((index, bytes));
        }
    }
}

impl ClientContext for Deliveries {
    // Whoever waits for Kafka says so once for each pause; here every thread of the client would.
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "the Kafka client says");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "the Kafka client reports trouble");
    }
}
