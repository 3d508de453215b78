//! What became of an event for each projector, told by one snapshot of the database.

use std::{collections::HashMap, time::Duration};

use tidings_event::{Event, EventId, Timestamp};

use super::{RelayState, Relayed, Stage, State, Taken, committed::Details, replayed, trail};
use crate::{
    Conn, Db, Error, Result,
    limits::TRAIL_TICK,
    log::{Log, Offset, Part},
    parking::{self, Owner},
    projector::{
        self,
        generation::{self, AtWork},
    },
};

/// How exactly moments are known that were written for one event.
pub(super) const EXACT: Duration = Duration::from_millis(1);

/// What is known of one event.
pub(super) struct Look<'a> {
    pub(super) event: &'a Event,
    pub(super) relayed: &'a Relayed,
    before_first: Offset,
    parked: HashMap<String, Parked>,
    pub(super) discarded: HashMap<String, Timestamp>,
}

/// A parked event and the key that it waits under.
struct Parked {
    state: parking::State,
    attempts: u32,
    next_attempt_at: Timestamp,
    error: String,
    died_at: Option<Timestamp>,
    /// Events of its key before it.
    before: i64,
}

/// Every projector that is known here or has a position.
pub(super) async fn stages(db: &Db, log: &Log, taken: &Taken, event: &Event, relayed: &Relayed) -> Result<Vec<Stage>> {
    let mut tx = db.read().await?;
    let mut conn = tx.conn();
    let look = Look {
        event,
        relayed,
        before_first: log.before_first(),
        parked: parked(&mut conn, event.id).await?,
        discarded: discarded(&mut conn, event.id, relayed).await?,
    };
    let mut stages = Vec::new();
    for at_work in generation::at_work(&mut conn, taken.keys().copied()).await? {
        let discarded = look.discarded.get(&at_work.identity).copied();
        stages.extend(look.stage(&mut conn, &at_work, discarded, taken.get(&*at_work.name).copied()).await?);
    }
    stages.extend(replayed::stages(&look, &mut conn, taken).await?);
    Ok(stages)
}

impl Look<'_> {
    /// What became of it for one generation; nothing if it is no projector of this event's.
    pub(super) async fn stage(
        &self,
        conn: &mut Conn<'_>,
        at_work: &AtWork,
        discarded: Option<Timestamp>,
        types: Option<&[&str]>,
    ) -> Result<Option<Stage>> {
        let AtWork { name, generation, is_live, identity } = at_work;
        let (name, generation, is_live) = (name.clone(), *generation, *is_live);
        let stage = move |state: State| Stage {
            projector: name.clone(),
            generation,
            is_live,
            is_replay: false,
            state,
            at: None,
            resolution: None,
            attempts: 0,
            next_attempt_at: None,
            error: None,
            events_before: 0,
        };
        if let Some(parked) = self.parked.get(identity) {
            return Ok(Some(parked.tell(stage)));
        }
        if discarded.is_some() {
            return Ok(Some(timed(stage(State::Discarded), discarded, EXACT)));
        }
        if types.is_some_and(|types| !types.contains(&self.event.event_type.as_str())) {
            return Ok(Some(stage(State::Skipped)));
        }
        let Relayed { part, offset, state: relay, .. } = self.relayed;
        let place = projector::place(conn, identity, part).await?;
        if place.is_none() && types.is_none() {
            return Ok(None);
        }
        let Some(offset) = *offset else {
            let is_waiting = matches!(relay, RelayState::Waiting | RelayState::DeadLetter);
            return Ok(Some(stage(if is_waiting { State::Waiting } else { State::Unknown })));
        };
        let (position, since) = place.unwrap_or((self.before_first, Timestamp::default()));
        if position < offset {
            return Ok(Some(Stage { events_before: offset.0 - position.0 - 1, ..stage(State::Waiting) }));
        }
        if types.is_none() {
            // Whether it took the event, only its own program knows.
            return Ok(Some(stage(State::Unknown)));
        }
        let owner = Owner { projector: identity, part };
        Ok(Some(match trail::applied_late(conn, owner, offset).await? {
            Some(at) => timed(stage(State::Applied), Some(at), EXACT),
            None => {
                let at = trail::passed_at(conn, owner, offset, since).await?;
                timed(stage(State::Applied), at, TRAIL_TICK)
            }
        }))
    }
}

impl Parked {
    fn tell(&self, stage: impl Fn(State) -> Stage) -> Stage {
        let next_attempt_at = (self.state != parking::State::Dead).then_some(self.next_attempt_at);
        let error = Some(self.error.clone());
        if self.before > 0 {
            return Stage { events_before: self.before, next_attempt_at, error, ..stage(State::Waiting) };
        }
        let (state, at) = match self.state {
            parking::State::Dead => (State::Dead, self.died_at),
            parking::State::Retrying | parking::State::Redriving => (State::Retrying, None),
        };
        Stage { attempts: self.attempts, next_attempt_at, error, ..timed(stage(state), at, EXACT) }
    }
}

fn timed(stage: Stage, at: Option<Timestamp>, resolution: Duration) -> Stage {
    Stage { at, resolution: at.map(|_| resolution), ..stage }
}

/// Where the event waits under a parked key, by the identity for which it does.
async fn parked(conn: &mut Conn<'_>, id: EventId) -> Result<HashMap<String, Parked>> {
    let sql = "SELECT k.projector, k.state, k.attempts, k.next_attempt_at, k.error, k.died_at, \
               (SELECT COUNT(*) FROM parked_event b WHERE b.projector = e.projector AND b.part = e.part \
                AND b.event_key = e.event_key AND b.log_offset < e.log_offset) \
               FROM parked_event e JOIN parked_key k \
               ON k.projector = e.projector AND k.part = e.part AND k.event_key = e.event_key WHERE e.event_id = ?";
    let rows = conn.fetch("looking for a parked event", sql, vec![id.to_string().into()]).await?;
    let read = |row: &crate::db::Row| {
        Ok((
            row.text(0)?,
            Parked {
                state: parking::State::from_code(row.int(1)?)?,
                attempts: u32::try_from(row.int(2)?).unwrap_or(u32::MAX),
                next_attempt_at: Timestamp(row.int(3)?),
                error: row.text(4)?,
                died_at: row.int_or_null(5)?.map(Timestamp),
                before: row.int(6)?,
            },
        ))
    };
    rows.iter().map(read).collect()
}

/// When the event was discarded, by the identity for which it was. An id that stands in the log twice may have been
/// discarded in one place and applied in the other.
async fn discarded(conn: &mut Conn<'_>, id: EventId, relayed: &Relayed) -> Result<HashMap<String, Timestamp>> {
    let sql = "SELECT projector, created_at, details FROM audit \
               WHERE event_id = ? AND action = 'parking.discard' ORDER BY id";
    let mut discarded = HashMap::new();
    for row in conn.fetch("looking into the audit", sql, vec![id.to_string().into()]).await? {
        let details: Details = serde_json::from_str(&row.text(2)?).map_err(Error::json("reading the audit"))?;
        let place = (Part::read(&details.part, "audit")?, Offset(details.offset));
        if relayed.offset.is_some_and(|offset| place != (relayed.part.clone(), offset)) {
            continue;
        }
        if let Some(projector) = row.text_or_null(0)? {
            discarded.insert(projector, Timestamp(row.int(1)?));
        }
    }
    Ok(discarded)
}
