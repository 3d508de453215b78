//! What became of the records that were handed to the client.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

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
pub(super) struct Deliveries {
    undelivered: Mutex<Undelivered>,
    has_said_unauthenticated: AtomicBool,
}

/// The records of a transaction that were not delivered.
#[derive(Debug, Default)]
pub(super) struct Undelivered {
    /// The first error that no size is to blame for.
    pub(super) error: Option<KafkaError>,
    /// A record that the broker will never take, and why.
    pub(super) refused: Option<(usize, KafkaError)>,
    /// The largest record among those that the broker found too large, as its index and bytes. Brokers
    /// refuse whole batches, so its neighbours may be innocent; the largest is not.
    pub(super) too_large: Option<(usize, usize)>,
}

impl Deliveries {
    pub(super) fn error(&self) -> Option<KafkaError> {
        self.lock().error.clone()
    }

    pub(super) fn take(&self) -> Undelivered {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Undelivered> {
        self.undelivered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProducerContext for Deliveries {
    /// The index of the record in its batch.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let Err((error, message)) = result else { return };
        let mut undelivered = self.lock();
        match error.rdkafka_error_code() {
            Some(code) if is_fault_of_record(code) => {
                undelivered.refused.get_or_insert_with(|| (index, error.clone()));
                return;
            }
            // It is only a neighbour of such a one.
            Some(RDKafkaErrorCode::InvalidDifferentRecord) if undelivered.refused.is_some() => return,
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => {}
            _ => {
                undelivered.error.get_or_insert_with(|| error.clone());
                return;
            }
        }
        let bytes = message.payload_len() + message.key_len();
        if undelivered.too_large.is_none_or(|(_, largest)| bytes > largest) {
            undelivered.too_large = Some((index, bytes));
        }
    }
}

/// Whether the broker will never take the record, as it is.
fn is_fault_of_record(code: RDKafkaErrorCode) -> bool {
    // The partition is one that the format has chosen.
    matches!(
        code,
        RDKafkaErrorCode::InvalidRecord | RDKafkaErrorCode::InvalidTimestamp | RDKafkaErrorCode::UnknownPartition
    )
}

impl ClientContext for Deliveries {
    // Whoever waits for Kafka says so once for each pause; here every thread of the client would.
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "the Kafka client says");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Authentication)
            && !self.has_said_unauthenticated.swap(true, Ordering::Relaxed)
        {
            tracing::error!(reason, "Kafka does not accept who the relay says it is");
        }
        tracing::debug!(%error, reason, "the Kafka client reports trouble");
    }
}
