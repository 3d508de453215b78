//! The configuration, in the words of the parts it configures.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use tidings_backbone::{
    kafka::{self, topics::Purpose},
    projector, reconcile, retention,
};
use tidings_community::relation::{self, bucket};

use crate::config::{Config, MissingHistory};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
/// How long a repeated `Idempotency-Key` is recognised.
const KEEP_ANSWERS: Duration = Duration::from_secs(24 * 3_600);
/// Pause between rounds of the retention.
const RETENTION_GAP: Duration = Duration::from_secs(60);

pub(super) fn projector(config: &Config) -> projector::Options {
    let options = &config.projector;
    projector::Options {
        gaps: projector::Gaps {
            attempts_max: options.retry_attempts,
            first: Duration::from_millis(options.retry_gap_ms),
            longest: Duration::from_millis(options.retry_gap_max_ms),
        },
        keeps_trail: options.trail_minutes > 0,
        on_missing_history: match options.on_missing_history {
            MissingHistory::Stop => projector::MissingHistory::Stop,
            MissingHistory::Earliest => projector::MissingHistory::Earliest,
        },
        ..projector::Options::default()
    }
}

pub(super) fn retention(config: &Config) -> retention::Options {
    let hours = config.events.retention_hours;
    retention::Options {
        keep_events: (hours > 0).then(|| HOUR * hours),
        keep_answers: KEEP_ANSWERS,
        keep_audit: (config.audit.retention_days > 0).then(|| 24 * HOUR * config.audit.retention_days),
        keep_trail: MINUTE * config.projector.trail_minutes,
        round_gap: RETENTION_GAP,
        projectors: vec![relation::projection::NAME],
    }
}

pub(super) fn reconcile(config: &Config) -> reconcile::Options {
    let options = &config.reconcile;
    reconcile::Options {
        every: (options.every_hours > 0).then(|| HOUR * options.every_hours),
        relay_late: Duration::from_millis(options.relay_late_ms),
        window: HOUR * options.window_hours,
        repair_max: options.repair_max,
        event_types: tidings_event::payload::known_types().collect(),
        ..reconcile::Options::default()
    }
}

/// The topics of this product: one for each family of event types, and the relay's own.
pub(super) fn topics(kafka: &kafka::Options) -> Vec<(String, Purpose)> {
    let family = |event_type: &'static str| event_type.split('.').next().unwrap_or(event_type);
    let families: BTreeSet<&str> = tidings_event::payload::known_types().map(family).collect();
    let events = families.into_iter().map(|family| (kafka.topic(family), Purpose::Events));
    let relays = [(kafka.checkpoint_topic(), Purpose::Compacted), (kafka.dead_letter_topic(), Purpose::DeadLetters)];
    events.chain(relays).collect()
}

pub(super) fn bucket(config: &Config) -> bucket::Options {
    bucket::Options {
        capacity: positive(config.rate.follow_capacity),
        refill: Duration::from_secs(1) / config.rate.follow_per_second.max(1),
    }
}

/// One read of counters in this many is checked; none is once in four billion.
pub(super) fn counter_check_every(config: &Config) -> NonZeroU32 {
    NonZeroU32::new(config.relation.counter_check_every).unwrap_or(NonZeroU32::MAX)
}

/// The configuration admits no zero here.
fn positive(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}
