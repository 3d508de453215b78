//! What is stored of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tidings_event::Timestamp;

use super::{Compared, Difference};
use crate::{
    audit::first_bytes,
    limits::{RECONCILE_ABANDONED_TIME, RECONCILE_EXAMPLES_MAX, RECONCILE_TEXT_BYTES_MAX},
};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is asked for, or being done.
    Running,
    /// Every check was made.
    Done,
    /// A check could not be made, or whoever did it ended too often.
    Failed,
}

/// Who began a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It was due.
    Schedule,
    /// An operator asked for it.
    Operator,
}

/// How the repair of what a run found stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairState {
    /// There is nothing that events could put right, or a later run looked again.
    None,
    /// It may be asked for.
    Possible,
    /// It is asked for, or being done.
    Running,
    /// The events are written.
    Done,
    /// It ended before all was repaired; what was not may be repaired again.
    Failed,
}

/// A run of the reconciliation.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Rises with each run.
    pub seq: i64,
    /// Its id.
    pub id: String,
    /// How it stands.
    pub state: State,
    /// Who began it.
    pub trigger: Trigger,
    /// The operator who asked for it.
    pub actor: Option<String>,
    /// The only projector whose projection is compared; all of them, and the log, when there is none.
    pub projector: Option<String>,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// What each check found.
    pub checks: Vec<Found>,
    /// Differences of all checks.
    pub differences: u64,
    /// What differs only because it is on its way.
    pub lagging: u64,
    /// The repair of what was found.
    pub repair: Repair,
    pub(super) runner: String,
    pub(super) runner_until: i64,
    pub(super) tries: i64,
}

/// The repair of what a run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// How it stands.
    pub state: RepairState,
    /// Who asked for it.
    pub actor: Option<String>,
    /// Events that were written.
    pub events: u64,
    /// When the last of them was.
    pub repaired_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What was compared, such as `relation.mirror`.
    pub check: String,
    /// The projector whose feature compared it; the outbox and the log are nobody's.
    pub projector: Option<String>,
    /// Shards whose counts and checksums were compared.
    pub shards: u64,
    /// Those that differed.
    pub shards_differing: u64,
    /// Facts, or events, that the sums were over.
    pub rows: u64,
    /// What differs only because it is on its way.
    pub lagging: u64,
    /// Differences.
    pub differences: u64,
    /// How many there are of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// The first of them, at most [`RECONCILE_EXAMPLES_MAX`].
    pub examples: Vec<Difference>,
    /// What else there is to know: why it could not be compared, or what is to be done.
    pub note: Option<String>,
    /// Differences that a repair has left out, since the relay holds the keys of their events back.
    #[serde(default)]
    pub left_out: u64,
    /// These keys, at most [`RECONCILE_EXAMPLES_MAX`].
    #[serde(default)]
    pub left_out_keys: BTreeSet<String>,
}

impl State {
    const ALL: [Self; 3] = [Self::Running, Self::Done, Self::Failed];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == text)
    }
}

impl Trigger {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Operator => "operator",
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        [Self::Schedule, Self::Operator].into_iter().find(|trigger| trigger.name() == text)
    }
}

impl RepairState {
    const ALL: [Self; 5] = [Self::None, Self::Possible, Self::Running, Self::Done, Self::Failed];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Possible => "possible",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == text)
    }
}

impl Run {
    /// Differences of all checks that a repair has left out, since the relay holds the keys of their events back.
    pub fn left_out(&self) -> u64 {
        self.checks.iter().map(|found| found.left_out).sum()
    }

    /// Whether somebody is to do something for it: to run it, or to repair.
    pub fn is_active(&self) -> bool {
        self.state == State::Running || self.repair.state == RepairState::Running
    }

    /// Whether nobody does what is to be done, as far as leases tell. One that ends further ahead than any is given
    /// was written by a clock that was set back since.
    pub(super) fn is_free(&self, now: Timestamp, lease_ms: i64) -> bool {
        self.runner_until < now.0 || self.runner_until > now.0.saturating_add(lease_ms.saturating_mul(2))
    }

    /// Whether nobody has done anything for so long that another one may begin.
    pub(super) fn is_abandoned(&self, now: Timestamp) -> bool {
        let time = i64::try_from(RECONCILE_ABANDONED_TIME.as_millis()).unwrap_or(i64::MAX);
        self.runner_until.saturating_add(time) < now.0
    }
}

impl Found {
    /// What is stored of a comparison.
    pub(super) fn of(compared: &Compared, projector: Option<&str>) -> Self {
        // Those that a repair leaves are shown first.
        let examples = compared.unrepairable.iter().chain(&compared.differences);
        Self {
            check: compared.check.to_owned(),
            projector: projector.map(str::to_owned),
            shards: compared.shards,
            shards_differing: compared.shards_differing,
            rows: compared.rows,
            lagging: compared.lagging,
            differences: compared.total(),
            kinds: compared.kinds.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            examples: examples.take(RECONCILE_EXAMPLES_MAX).map(shortened).collect(),
            note: compared.note.clone(),
            ..Self::default()
        }
    }

    /// Notes differences that a repair leaves out, by the keys of their events.
    pub(super) fn leave_out(&mut self, keys: Vec<String>) {
        self.left_out += keys.len() as u64;
        self.left_out_keys.extend(keys);
        while self.left_out_keys.len() > RECONCILE_EXAMPLES_MAX {
            self.left_out_keys.pop_last();
        }
    }

    /// What is stored of one that could not be made.
    pub(super) fn failed(check: &str, projector: Option<&str>, error: &str) -> Self {
        let note = Some(format!("could not be compared: {error}"));
        Self { check: check.to_owned(), projector: projector.map(str::to_owned), note, ..Self::default() }
    }
}

/// A difference whose texts are not longer than what is stored.
fn shortened(difference: &Difference) -> Difference {
    let short = |text: &str| first_bytes(text, RECONCILE_TEXT_BYTES_MAX).to_owned();
    Difference {
        kind: difference.kind.clone(),
        subject: short(&difference.subject),
        expected: short(&difference.expected),
        found: short(&difference.found),
    }
}
