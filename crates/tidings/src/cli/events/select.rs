//! Which events are shown.

use std::collections::VecDeque;

use clap::Args;
use tidings_backbone::log::{Log, Offset, Recorded};

use super::READ_EVENTS_MAX;
use crate::Result;

#[derive(Debug, Default, Args)]
pub(super) struct Select {
    /// Only events of this type, such as `relation.followed`, or of this family, such as `relation`
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events of this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Select {
    pub(super) fn takes(&self, recorded: &Recorded) -> bool {
        let event = &recorded.event;
        let is_type =
            self.event_type.as_ref().is_none_or(|wanted| *wanted == event.event_type || wanted == event.family());
        is_type && self.key.as_ref().is_none_or(|wanted| *wanted == event.key)
    }
}

/// The last `count` selected events up to `head`, in order. The log is read backwards, a step at a
/// time, until there are enough or it begins.
pub(super) async fn last(log: &Log, select: &Select, count: usize, head: Offset) -> Result<Vec<Recorded>> {
    let earliest = log.extent().await?.earliest;
    let mut found = VecDeque::new();
    let mut upper = head;
    while found.len() < count && upper >= earliest {
        let lower = Offset(upper.0.saturating_sub(READ_EVENTS_MAX as i64).max(0));
        let events = log.read(lower, READ_EVENTS_MAX).await?;
        // After a retention, a step below the beginning reads what lies above it.
        for event in events.into_iter().filter(|event| event.offset <= upper && select.takes(event)).rev() {
            found.push_front(event);
            if found.len() == count {
                break;
            }
        }
        upper = lower;
    }
    Ok(found.into())
}
