//! Runs of the reconciliation, as the command line and the admin API show them.

use std::collections::BTreeMap;

use serde::Serialize;
use tidings_backbone::{
    limits::RECONCILE_EXAMPLES_MAX,
    reconcile::{Difference, Found, Run},
};
use utoipa::ToSchema;

/// A run of the reconciliation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// `running`, `done`, or `failed` when a check could not be made.
    #[schema(example = "done")]
    pub state: &'static str,
    /// `schedule` or `operator`.
    #[schema(example = "operator")]
    pub trigger: &'static str,
    /// Who asked for it; null for the schedule.
    #[schema(example = "cli:ada")]
    pub actor: Option<String>,
    /// The only projector whose projection is compared; null for all of them, and the log.
    pub projector: Option<String>,
    /// When it was asked for.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// What each check found.
    pub checks: Vec<CheckView>,
    /// Differences of all checks.
    pub differences: u64,
    /// What differs only because it is on its way.
    pub lagging: u64,
    /// The repair of what it found.
    pub repair: RepairView,
}

/// What a check found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckView {
    /// What was compared.
    #[schema(example = "relation.mirror")]
    pub check: String,
    /// Shards whose counts and checksums were compared.
    pub shards: u64,
    /// Those that differed, whose rows were compared then.
    pub shards_differing: u64,
    /// Facts, or events, that the sums were over.
    pub rows: u64,
    /// What differs only because it is on its way.
    pub lagging: u64,
    /// Differences.
    pub differences: u64,
    /// How many there are of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// The first of them, at most 20. A list of runs has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<ExampleView>>,
    /// Differences that its repair has left out: the relay holds back the keys of their events.
    pub left_out: u64,
    /// Why it could not be compared, or what is to be done.
    pub note: Option<String>,
}

/// One difference.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExampleView {
    /// Its kind.
    #[schema(example = "mirror row missing")]
    pub kind: String,
    /// What it is about.
    #[schema(example = "17:42")]
    pub subject: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// The repair of what a run found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RepairView {
    /// `none` when events can put nothing right, or a later run looked again; `possible`, `running`, `done` or
    /// `failed`.
    #[schema(example = "possible")]
    pub state: &'static str,
    /// Events that were written.
    pub events: u64,
    /// When the last of them was.
    #[schema(format = DateTime)]
    pub repaired_at: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

impl RunView {
    /// A run with examples.
    pub fn whole(run: Run) -> Self {
        Self::new(run, true)
    }

    /// A run as a line of a list.
    pub fn short(run: Run) -> Self {
        Self::new(run, false)
    }

    fn new(run: Run, has_examples: bool) -> Self {
        Self {
            state: run.state.name(),
            trigger: run.trigger.name(),
            started_at: run.started_at.to_string(),
            finished_at: run.finished_at.map(|at| at.to_string()),
            checks: run.checks.into_iter().map(|found| CheckView::new(found, has_examples)).collect(),
            repair: RepairView {
                state: run.repair.state.name(),
                events: run.repair.events,
                repaired_at: run.repair.repaired_at.map(|at| at.to_string()),
                error: run.repair.error,
            },
            id: run.id,
            actor: run.actor,
            projector: run.projector,
            error: run.error,
            differences: run.differences,
            lagging: run.lagging,
        }
    }
}

impl CheckView {
    fn new(found: Found, has_examples: bool) -> Self {
        let note = note(&found);
        let examples = has_examples.then(|| found.examples.into_iter().map(ExampleView::from).collect());
        Self {
            check: found.check,
            shards: found.shards,
            shards_differing: found.shards_differing,
            rows: found.rows,
            lagging: found.lagging,
            differences: found.differences,
            kinds: found.kinds,
            examples,
            left_out: found.left_out,
            note,
        }
    }
}

/// What else there is to know of a check.
fn note(found: &Found) -> Option<String> {
    if found.left_out == 0 {
        return found.note.clone();
    }
    let keys: Vec<&str> = found.left_out_keys.iter().map(String::as_str).collect();
    let more = if keys.len() < RECONCILE_EXAMPLES_MAX { "" } else { ", and others" };
    let (left_out, keys) = (found.left_out, keys.join(", "));
    let left_out = match left_out {
        1 => format!(
            "the repair has left out 1 difference, since the relay holds back the key of its event ({keys}): a rebuild \
             from facts puts right what follows from it"
        ),
        _ => format!(
            "the repair has left out {left_out} differences, since the relay holds back the keys of their events \
             ({keys}{more}): a rebuild from facts puts right what follows from them"
        ),
    };
    Some(found.note.iter().cloned().chain([left_out]).collect::<Vec<_>>().join("; "))
}

impl From<Difference> for ExampleView {
    fn from(Difference { kind, subject, expected, found }: Difference) -> Self {
        Self { kind: kind.into_owned(), subject, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repair_has_left_out_is_counted_in_words() {
        let left_out = |count: u64, keys: &[&str]| {
            let left_out_keys = keys.iter().map(|key| (*key).to_owned()).collect();
            note(&Found { left_out: count, left_out_keys, ..Found::default() }).unwrap_or_default()
        };
        assert!(
            left_out(1, &["7"]).starts_with("the repair has left out 1 difference, since"),
            "{}",
            left_out(1, &["7"])
        );
        assert!(left_out(2, &["7", "9"]).contains("2 differences") && left_out(2, &["7", "9"]).contains("(7, 9)"));
    }
}
