//! What became of an event for replays in place, which apply it to the generation that is read once more.
//!
//! While one is on its way it has positions, a parking lot and a trail of its own, as what is built has. When it has
//! ended they are gone: what is left is what it was to apply, and from when to when it ran.

use std::time::Duration;

use super::{
    Stage, State, Taken,
    applied::{EXACT, Look},
};
use crate::{
    Conn, Result,
    log::Part,
    projector::{generation::AtWork, rebuild},
};

/// The last replay in place of each projector, where it was or is to apply the event.
pub(super) async fn stages(look: &Look<'_>, conn: &mut Conn<'_>, taken: &Taken) -> Result<Vec<Stage>> {
    let mut stages = Vec::new();
    for replay in rebuild::replays(conn).await? {
        let types = taken.get(&*replay.projector).copied();
        let takes = types.is_some_and(|types| types.contains(&look.event.event_type.as_str()));
        if takes && is_within(&replay, look)? {
            stages.extend(stage(look, conn, &replay, types).await?);
        }
    }
    Ok(stages)
}

/// Whether the event is in the stretch of the log that is replayed.
fn is_within(replay: &rebuild::Rebuild, look: &Look<'_>) -> Result<bool> {
    let Some(offset) = look.relayed.offset else { return Ok(false) };
    for plan in replay.parts() {
        if Part::read(&plan.part, "rebuild")? == look.relayed.part {
            return Ok(plan.start < offset.0 && offset.0 <= plan.end);
        }
    }
    Ok(false)
}

async fn stage(
    look: &Look<'_>,
    conn: &mut Conn<'_>,
    replay: &rebuild::Rebuild,
    types: Option<&[&str]>,
) -> Result<Option<Stage>> {
    let (name, generation, identity) = (replay.projector.clone(), replay.generation, replay.identity());
    // One before it had the same name.
    let discarded = look.discarded.get(&identity).copied().filter(|at| *at >= replay.started_at);
    let at_work = AtWork { name, generation, is_live: false, identity };
    let Some(told) = look.stage(conn, &at_work, discarded, types).await? else { return Ok(None) };
    let told = Stage { is_replay: true, ..told };
    if !matches!(replay.state, rebuild::State::Removing | rebuild::State::Done) || discarded.is_some() {
        return Ok(Some(told));
    }
    let nothing = Stage { at: None, resolution: None, events_before: 0, ..told };
    if replay.is_forced {
        // It was ended without the events of keys that were dead.
        return Ok(Some(Stage { state: State::Unknown, ..nothing }));
    }
    let took = replay.finished_at.map(|at| u64::try_from(at.0 - replay.started_at.0).unwrap_or_default());
    let resolution = took.map(|took_ms| Duration::from_millis(took_ms).max(EXACT));
    Ok(Some(Stage { state: State::Applied, at: replay.finished_at, resolution, ..nothing }))
}
