//! What requests about the parking lot ask for.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use tidings_backbone::{
    audit::Reason,
    limits::{EVENT_TEXT_BYTES_MAX, PARKING_ERROR_CHARS_MAX},
    log::{Offset, Part},
    parking::{self, Filter, Which},
};
use tidings_event::{EventId, Timestamp};
use utoipa::ToSchema;

use crate::http::problem::Problem;

/// What a request gave of a filter.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) projector: Option<String>,
    pub(super) key: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) error: Option<String>,
    pub(super) state: Option<String>,
    pub(super) parked_from: Option<String>,
    pub(super) parked_before: Option<String>,
}

impl Given {
    pub(super) fn filter(self) -> Result<Filter, Problem> {
        let time = |name, text: Option<String>| text.map(|text| time(name, &text)).transpose();
        let state = self.state.map(|text| text.parse::<parking::State>());
        Ok(Filter {
            projector: checked("projector", self.projector, EVENT_TEXT_BYTES_MAX)?,
            // What came into the log without a key is parked under the empty one.
            key: match self.key {
                Some(key) if key.is_empty() => Some(key),
                key => checked("key", key, EVENT_TEXT_BYTES_MAX)?,
            },
            event_type: checked("event_type", self.event_type, EVENT_TEXT_BYTES_MAX)?,
            error: checked("error", self.error, PARKING_ERROR_CHARS_MAX)?,
            state: state
                .transpose()
                .map_err(|_| Problem::field("state", "must be `retrying`, `dead` or `redriving`"))?,
            parked_from: time("parked_from", self.parked_from)?,
            parked_before: time("parked_before", self.parked_before)?,
        })
    }
}

fn time(name: &'static str, text: &str) -> Result<Timestamp, Problem> {
    text.parse().map_err(|_| Problem::field(name, "must be a time such as 2026-11-29T15:26:17.123Z"))
}

fn checked(name: &'static str, text: Option<String>, bytes_max: usize) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.is_empty() || text.len() > bytes_max => {
            Err(Problem::field(name, format!("must have 1 to {bytes_max} bytes")))
        }
        text => Ok(text),
    }
}

/// Which keys are to be redriven, and how.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RedriveRequest {
    /// Of this projector.
    #[schema(example = "relation")]
    projector: Option<String>,
    /// This key.
    #[schema(example = "17")]
    key: Option<String>,
    /// The event at its head is of this type.
    event_type: Option<String>,
    /// Its last error contains this text, in the same letters.
    error: Option<String>,
    /// `retrying`, `dead` or `redriving`. Without it, and without `projector` and `key` both, what is being
    /// redriven already is passed over.
    state: Option<String>,
    /// Parked at this time (RFC 3339) or later.
    parked_from: Option<String>,
    /// Parked before this time.
    parked_before: Option<String>,
    /// `true` means every key, and is needed where nothing above is given.
    #[serde(default)]
    all: bool,
    /// Events a second over all the keys; without it, as fast as can be.
    #[schema(value_type = Option<u32>, minimum = 1)]
    events_per_second: Option<NonZeroU32>,
    /// Why, for the audit.
    reason: Option<String>,
    /// Say what would be done, and change nothing.
    #[serde(default)]
    dry_run: bool,
    /// What a dry run has shown. Keys parked or dead since are left out, and nothing is done if more match all the
    /// same.
    shown: Option<ShownRequest>,
}

/// Of the answer to a dry run.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ShownRequest {
    /// Its `until`.
    #[schema(example = "2026-11-29T15:26:17.123Z")]
    until: String,
    /// Its `keys`.
    keys: usize,
}

impl RedriveRequest {
    /// What is wanted, and whether it is only to be told.
    pub(super) fn wanted(self) -> Result<(parking::Redrive, bool), Problem> {
        let Self { all, events_per_second, reason, dry_run, shown, .. } = self;
        let given = Given {
            projector: self.projector,
            key: self.key,
            event_type: self.event_type,
            error: self.error,
            state: self.state,
            parked_from: self.parked_from,
            parked_before: self.parked_before,
        };
        let filter = given.filter()?;
        match (filter.is_empty(), all) {
            (true, false) => return Err(Problem::field("all", "must be `true` where no filter is given")),
            (false, true) => return Err(Problem::field("all", "must not be `true` beside a filter")),
            _ => {}
        }
        let reason = reason.map(|text| self::reason(&text)).transpose()?;
        let shown = shown.map(|ShownRequest { until, keys }| {
            time("shown.until", &until).map(|until| parking::Shown { until, keys })
        });
        let shown = shown.transpose()?;
        Ok((parking::Redrive { filter, events_per_second, reason, shown }, dry_run))
    }
}

/// Which waiting event is to be discarded, and why.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct DiscardRequest {
    /// The projector for which it waits.
    #[schema(example = "relation")]
    projector: String,
    /// The key under which it waits.
    #[schema(example = "17")]
    key: String,
    /// The event's id; or else `offset`.
    #[schema(example = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c")]
    event_id: Option<String>,
    /// Where it stands in the log, of what has no id.
    offset: Option<i64>,
    /// The part of the log that `offset` is in, as `topic/partition`; needed where the key waits in several.
    #[schema(example = "tidings.relation/3")]
    part: Option<String>,
    /// Why, for the audit: 1 to 2,000 bytes.
    #[schema(example = "made by a script with a wrong clock; the fact was mended by hand")]
    reason: String,
}

impl DiscardRequest {
    pub(super) fn wanted(self) -> Result<parking::Discard, Problem> {
        let (which, reason) = (self.which()?, reason(&self.reason)?);
        Ok(parking::Discard { projector: self.projector, key: self.key, which, reason })
    }

    fn which(&self) -> Result<Which, Problem> {
        let part = self.part.as_deref().map(str::parse::<Part>).transpose();
        let part = part.map_err(|_| Problem::field("part", "must be `topic/partition`"))?;
        match (self.event_id.as_deref(), self.offset) {
            (Some(_), Some(_)) => Err(Problem::field("offset", "must not be given together with `event_id`")),
            (None, None) => Err(Problem::field("event_id", "is missing, and so is `offset`")),
            (Some(_), None) if part.is_some() => Err(Problem::field("part", "goes with `offset` alone")),
            (Some(id), None) => match id.parse::<EventId>() {
                Ok(id) => Ok(Which::Id(id.to_string())),
                Err(_) => Err(Problem::field("event_id", "must be a UUID")),
            },
            (None, Some(offset)) => Ok(Which::At(part, Offset(offset))),
        }
    }
}

fn reason(text: &str) -> Result<Reason, Problem> {
    text.parse().map_err(|error: tidings_backbone::audit::InvalidReason| Problem::field("reason", error.to_string()))
}
