//! Which events of the log are a projector's.

use std::sync::PoisonError;

use super::Plan;
use crate::{limits::UNKNOWN_TYPES_MAX, log::Recorded, telemetry};

impl Plan {
    /// Keeps the events the projector declared. A type that nobody declared is counted, and said
    /// once: it is from a newer writer, or a mistake.
    pub(super) fn select(&self, batch: Vec<Recorded>) -> Vec<Recorded> {
        let projector = self.identity();
        let types = self.projector.event_types();
        let (mine, others): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|recorded| types.contains(&recorded.event.event_type.as_str()));
        for Recorded { event, .. } in others {
            if self.known_types.contains(&event.event_type) {
                continue;
            }
            telemetry::unknown_event(self.lineage.label());
            let mut said = self.unknown_types.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() < UNKNOWN_TYPES_MAX && said.insert(event.event_type.clone()) {
                let (event_type, event_id) = (event.event_type, event.id);
                tracing::warn!(projector, event_type, %event_id, "passing over events of an unknown type");
            }
        }
        mine
    }
}
