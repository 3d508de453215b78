//! Rebuilds of projections, as the command line and the admin API ask for and show them.

use std::num::NonZeroU32;

use serde::Serialize;
use tidings_backbone::{
    log::Offset,
    projector::rebuild::{Rebuild, Rebuilds, Refusal, Source, Start, State, Wish},
};
use tidings_event::Timestamp;
use utoipa::ToSchema;

use crate::Result;

/// A rebuild, as it is shown.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RebuildView {
    /// The projector.
    #[schema(example = "relation")]
    pub projector: String,
    /// The generation that is built; the live one where events are replayed in place.
    #[schema(example = 2)]
    pub generation: i64,
    /// `wished`, `seeding`, `applying`, `checking`, `ready`, `failed`, `removing`, `cancelling`, `done` or
    /// `cancelled`.
    #[schema(example = "applying")]
    pub state: &'static str,
    /// Whether an operator holds it up.
    pub paused: bool,
    /// Whether it waits for an operator's word before readers are given it.
    pub held: bool,
    /// Whether readers are given it whatever the check says.
    pub forced: bool,
    /// Whether events are applied to the live generation once more, instead of to a new one.
    pub in_place: bool,
    /// From where: `log` or `facts`; null before that is known.
    #[schema(example = "log")]
    pub source: Option<&'static str>,
    /// Events, or rows of facts, of one second; null for no limit.
    pub events_per_second: Option<u64>,
    /// Rows of facts that have been copied.
    pub seeded: u64,
    /// Rows of facts there were when it began, as far as known.
    pub seed_rows: Option<u64>,
    /// Events that have been applied or passed over since it began.
    pub events_done: i64,
    /// Events there were to apply when it began. More have come since: it goes on until it has caught up.
    pub events_to_do: i64,
    /// Share of what there was to do when it began that is done, from 0 to 1; null where it failed before that was
    /// known, and where what was built is gone.
    pub progress: Option<f64>,
    /// When what there was will be done, in milliseconds from now, at the pace it has had so far.
    pub remaining_ms: Option<i64>,
    /// Rows of the old generation that are gone.
    pub removed: u64,
    /// What the check found, or why it failed.
    pub report: Option<String>,
    /// How far it is in each part of the log.
    pub parts: Vec<RebuildPart>,
    /// When it was asked for.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// When it last made a step.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
}

/// How far a rebuild is in one part of the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RebuildPart {
    /// The topic and the partition.
    #[schema(example = "outbox/0")]
    pub part: String,
    /// The position it began with.
    pub start: i64,
    /// The last event it has dealt with.
    pub position: i64,
    /// The last event when it began.
    pub end: i64,
}

/// Every rebuild, as it stands now.
///
/// # Errors
/// When the database fails.
pub async fn views(rebuilds: &Rebuilds, now: Timestamp) -> Result<Vec<RebuildView>> {
    let mut views = Vec::new();
    for rebuild in rebuilds.all().await? {
        views.push(view(rebuilds, rebuild, now).await?);
    }
    Ok(views)
}

/// A rebuild, as it stands now.
///
/// # Errors
/// When the database fails.
pub async fn view(rebuilds: &Rebuilds, rebuild: Rebuild, now: Timestamp) -> Result<RebuildView> {
    let positions = rebuilds.positions(&rebuild).await?;
    let part = |(plan, position): (&tidings_backbone::projector::rebuild::PartPlan, Option<Offset>)| {
        // A position that is gone was thrown away, unless all was done.
        let position = position.map_or(plan.start, |position| position.0);
        // Behind the last event of a part there may be ends of transactions, which no position stands on.
        let position = if has_applied_all(rebuild.state) { position.max(plan.end) } else { position };
        RebuildPart { part: plan.part.clone(), start: plan.start, position, end: plan.end }
    };
    let parts: Vec<RebuildPart> = rebuild.parts().iter().zip(positions).map(part).collect();
    let events_done: i64 = parts.iter().map(|part| (part.position - part.start).max(0)).sum();
    let events_to_do: i64 = parts.iter().map(|part| (part.end - part.start).max(0)).sum();
    let within: i64 = parts.iter().map(|part| (part.position.min(part.end) - part.start).max(0)).sum();
    let progress = progress(&rebuild, within, events_to_do);
    let elapsed_ms = (now.0 - rebuild.started_at.0).max(0) as f64;
    let is_measured =
        |progress: &f64| (*progress > 0.0 && *progress < 1.0) && !rebuild.is_paused && has_begun(&rebuild);
    Ok(RebuildView {
        generation: rebuild.generation.0,
        state: rebuild.state.name(),
        paused: rebuild.is_paused,
        held: rebuild.is_held,
        forced: rebuild.is_forced,
        in_place: rebuild.wish.in_place,
        source: has_begun(&rebuild).then(|| if rebuild.is_from_facts() { "facts" } else { "log" }),
        events_per_second: Some(rebuild.events_per_second).filter(|limit| *limit > 0),
        seeded: rebuild.seeded,
        seed_rows: rebuild.seed_rows,
        events_done,
        events_to_do,
        progress,
        remaining_ms: progress.filter(is_measured).map(|progress| (elapsed_ms / progress * (1.0 - progress)) as i64),
        removed: rebuild.removed,
        report: Some(rebuild.report.clone()).filter(|report| !report.is_empty()),
        parts,
        started_at: rebuild.started_at.to_string(),
        updated_at: rebuild.updated_at.to_string(),
        finished_at: rebuild.finished_at.map(|at| at.to_string()),
        projector: rebuild.projector,
    })
}

fn has_begun(rebuild: &Rebuild) -> bool {
    rebuild.state != State::Wished && !rebuild.parts().is_empty()
}

/// Whether there was a moment since it began at which nothing was left to apply.
fn has_applied_all(state: State) -> bool {
    matches!(state, State::Checking | State::Ready | State::Removing | State::Done)
}

/// Where facts are copied, they are what takes the time.
fn progress(rebuild: &Rebuild, done: i64, to_do: i64) -> Option<f64> {
    let share = |done: f64, of: f64| if of > 0.0 { (done / of).min(1.0) } else { 1.0 };
    Some(match rebuild.state {
        State::Cancelling | State::Cancelled => return None,
        State::Failed if rebuild.parts().is_empty() => return None,
        State::Wished => 0.0,
        State::Seeding => rebuild.seed_rows.map_or(0.0, |rows| share(rebuild.seeded as f64, rows as f64)),
        State::Done | State::Removing => 1.0,
        _ if rebuild.is_from_facts() => 1.0,
        _ => share(done as f64, to_do as f64),
    })
}

/// Why an operator's wish is not followed, with the way out where there is one.
pub fn refused(projector: &str, refusal: &Refusal) -> String {
    match refusal {
        Refusal::UnderWay(State::Failed) => {
            format!("{refusal} (`tidings rebuild resume {projector}`, `tidings rebuild cancel {projector}`)")
        }
        Refusal::NotWhole => format!("{refusal} (`--in-place`)"),
        _ => refusal.to_string(),
    }
}

/// The part of what was asked for that a refusal is about, and what is wrong with it, where it is one part.
pub fn wrong_part(refusal: &Refusal) -> Option<(&'static str, &'static str)> {
    match refusal {
        Refusal::EndsBeforeItBegins => Some(("until", "must not be before the place where it begins")),
        Refusal::NothingToHold => Some(("hold", "has no meaning in place: there is no switch that could wait")),
        _ => None,
    }
}

/// Reads from where to build: `beginning`, `facts`, an offset of the outbox, or a moment in RFC 3339.
///
/// # Errors
/// What is wrong with it, as in "must be ...".
pub fn source(text: &str) -> Result<Source, String> {
    match text {
        "beginning" => Ok(Source::Beginning),
        "facts" => Ok(Source::Facts),
        _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map(Source::Offset).map_err(|_| "must be an offset of the log".to_owned())
        }
        _ => text.parse().map(Source::Time).map_err(|_| {
            "must be `beginning`, `facts`, an offset, or a moment such as `2026-01-31T12:00:00Z`".to_owned()
        }),
    }
}

/// What to begin, from its parts as they were given.
///
/// # Errors
/// Which part is wrong, and how.
pub fn start(
    from: Option<&str>,
    until: Option<&str>,
    in_place: bool,
    events_per_second: Option<NonZeroU32>,
    hold: bool,
) -> Result<Start, (&'static str, String)> {
    let read = |name: &'static str, text: &str| source(text).map_err(|wrong| (name, wrong));
    let wish = Wish {
        source: from.map(|text| read("from", text)).transpose()?.unwrap_or_default(),
        until: until.map(|text| read("until", text)).transpose()?,
        in_place,
    };
    Ok(Start { wish, events_per_second: events_per_second.map_or(0, |limit| limit.get().into()), hold })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_word_an_offset_or_a_moment() {
        assert_eq!(source("beginning"), Ok(Source::Beginning));
        assert_eq!(source("facts"), Ok(Source::Facts));
        assert_eq!(source("17"), Ok(Source::Offset(17)));
        assert_eq!(source("1970-01-01T00:00:01Z"), Ok(Source::Time(Timestamp(1_000))));
        for text in ["", "-1", "yesterday", "99999999999999999999", "2026-13-01"] {
            assert!(source(text).is_err(), "{text}");
        }
    }
}
