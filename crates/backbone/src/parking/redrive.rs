//! Letting parked keys be tried again, one or many, at a pace that the rest of the path can bear.
//!
//! Nothing is applied here: the rows of the keys say when they are due, and the task that owns them does what
//! it does with any key that is due, in the order of its events. A key that was dead stops at its first new
//! failure, with the new error; one that was retried anyhow is tried now and keeps the tries that it has left.

use std::{collections::HashMap, num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_event::Timestamp;

use super::{Filter, Refusal, State, look};
use crate::{
    Conn, Db, Durability, Result,
    audit::{self, Actor, Entry, Reason},
    db::{Row, Value},
    idempotency::{IdempotencyKey, once},
    limits::{REDRIVE_KEPT_KEYS_MAX, REDRIVE_KEYS_MAX, REDRIVE_TIME_MAX},
    log::Part,
};

/// What is to be redriven.
#[derive(Clone, Debug, Default)]
pub struct Redrive {
    /// Which keys. Those that are being redriven already are passed over, unless the filter names one key or
    /// asks for their state.
    pub filter: Filter,
    /// Events a second over all of them; as fast as can be, if not given.
    pub events_per_second: Option<NonZeroU32>,
    /// Why, for the audit.
    pub reason: Option<Reason>,
    /// What whoever asks was shown by [`plan`]: that is done, and nothing more.
    pub shown: Option<Shown>,
}

/// What a plan had, so that a redrive can be held to it. By a moment, and not by count alone: else it could never be
/// confirmed where keys die faster than somebody reads. Events that have come behind a key meanwhile go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its `until`. What was parked or died later is left out.
    pub until: Timestamp,
    /// Its keys. Nothing is done where more than these match all the same, such as by an error that has changed.
    pub keys: usize,
}

impl Redrive {
    /// The same with the projector as the lot knows it: by the identity of its live generation.
    async fn meant(&self, conn: &mut Conn<'_>) -> Result<Self> {
        Ok(Self { filter: self.filter.meant(conn).await?, ..self.clone() })
    }
}

/// What a redrive does, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How many keys are tried.
    pub count: usize,
    /// The keys in the order in which they are tried, the longest parked first. All of them, but for the answer to a
    /// repeated request, which has the first [`REDRIVE_KEPT_KEYS_MAX`].
    pub keys: Vec<Planned>,
    /// Events that wait under them.
    pub waiting: u64,
    /// Time until the last event is tried, at the rate that was asked for.
    pub takes: Duration,
    /// Keys that match too and are left for another redrive, since one takes [`REDRIVE_KEYS_MAX`].
    pub left: u64,
    /// When the last one of the keys was parked or died.
    pub until: Timestamp,
}

impl Plan {
    /// What a redrive is held to that does this and nothing more.
    pub fn shown(&self) -> Shown {
        Shown { until: self.until, keys: self.count }
    }
}

/// One key of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The projector.
    pub projector: String,
    /// The part of the log.
    pub part: Part,
    /// The key.
    pub key: String,
    /// What it is now.
    pub state: State,
    /// When it was parked, or when it last died.
    pub since: Timestamp,
    /// Events that wait under it.
    pub waiting: u64,
    /// When it is tried, counted from the beginning.
    pub after: Duration,
}

/// Says what a redrive would do; changes nothing.
///
/// # Errors
/// When the database fails. A refusal is the inner error.
pub async fn plan(mut conn: Conn<'_>, wanted: &Redrive) -> Result<Result<Plan, Refusal>> {
    let wanted = &wanted.meant(&mut conn).await?;
    let keys = candidates(&mut conn, wanted).await?;
    match scheduled(keys, wanted) {
        Ok(plan) => Ok(Ok(Plan { left: left(&mut conn, wanted, plan.count).await?, ..plan })),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Lets the keys be tried, each when its turn has come, and answers what was done. Who did it is written in
/// the same transaction. The same `key` once more is answered as it was the first time, and lets nothing be tried.
///
/// # Errors
/// When the database fails; nothing was changed then. A refusal is the inner error.
pub async fn redrive(
    db: &Db,
    wanted: &Redrive,
    actor: &Actor,
    key: Option<&IdempotencyKey>,
    at: Timestamp,
) -> Result<Result<Plan, Refusal>> {
    once::attempt(db, key, || try_redrive(db, wanted, actor, key, at)).await
}

async fn try_redrive(
    db: &Db,
    wanted: &Redrive,
    actor: &Actor,
    key: Option<&IdempotencyKey>,
    at: Timestamp,
) -> Result<Result<Plan, Refusal>> {
    // Choosing may take long where much is parked: nobody who writes waits for it.
    let mut look = db.read().await?;
    let wanted = &wanted.meant(&mut look.conn()).await?;
    let candidates = candidates(&mut look.conn(), wanted).await?;
    let left = left(&mut look.conn(), wanted, candidates.len()).await?;
    look.rollback().await?;

    let mut tx = db.write(Durability::Full).await?;
    let mut conn = tx.conn();
    if let Some(answered) = once::answered(&mut conn, key).await? {
        return tx.rollback().await.map(|()| answered);
    }
    let is_none_chosen = candidates.is_empty();
    let (keys, attempts) = kept(&mut conn, candidates, wanted).await?;
    let plan = match scheduled(keys, wanted) {
        Ok(plan) => Plan { left, ..plan },
        // Those that were chosen went just now, and others may be parked.
        Err(refusal @ Refusal::NoneParked) if !is_none_chosen => return tx.rollback().await.map(|()| Err(refusal)),
        Err(refusal) => return once::refused(tx, key, refusal, at).await,
    };
    make_due(&mut conn, &plan, &attempts, wanted.events_per_second, at).await?;
    let rate = wanted.events_per_second;
    let entry = Entry {
        actor,
        action: "parking.redrive",
        projector: wanted.filter.projector.as_deref(),
        key: wanted.filter.key.as_deref(),
        event_id: None,
        reason: wanted.reason.as_ref(),
        details: json!({
            "filter": wanted.filter.as_json(),
            "events_per_second": rate,
            "keys": plan.count,
            "waiting": plan.waiting,
            "left": plan.left,
        })
        .to_string(),
    };
    audit::write(&mut conn, &entry, at).await?;
    let kept = Plan { keys: plan.keys.iter().take(REDRIVE_KEPT_KEYS_MAX).cloned().collect(), ..plan };
    once::done(tx, key, &kept, at).await?;
    Ok(Ok(plan))
}

/// Whether keys that are being redriven are passed over.
fn passes_over(wanted: &Redrive) -> bool {
    wanted.filter.state.is_none() && !wanted.filter.names_one()
}

/// The condition of a redrive on `parked_key k` with its head.
fn condition(wanted: &Redrive) -> (String, Vec<Value>) {
    let (mut condition, mut args) = wanted.filter.condition();
    if passes_over(wanted) {
        condition.push_str(" AND k.state <> 2");
    }
    if let Some(Shown { until, .. }) = wanted.shown {
        condition.push_str(" AND k.parked_at <= ? AND (k.died_at IS NULL OR k.died_at <= ?)");
        args.extend([until.0.into(), until.0.into()]);
    }
    (condition, args)
}

/// The keys that match, as far as one redrive goes.
async fn candidates(conn: &mut Conn<'_>, wanted: &Redrive) -> Result<Vec<Planned>> {
    let (condition, mut args) = condition(wanted);
    let engine = conn.engine();
    let sql = format!(
        "SELECT k.projector, k.part, k.event_key, k.state, {}, k.parked_at, k.died_at FROM {} WHERE {condition} \
         ORDER BY {} LIMIT ?",
        look::count_waiting(engine),
        look::keys(engine, &wanted.filter),
        look::ORDER
    );
    args.push((REDRIVE_KEYS_MAX as i64).into());
    conn.fetch("choosing keys to redrive", sql, args).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Planned> {
    Ok(Planned {
        projector: row.text(0)?,
        part: Part::read(&row.text(1)?, "parked_key")?,
        key: row.text(2)?,
        state: State::from_code(row.int(3)?)?,
        since: since(row.int(5)?, row.int_or_null(6)?),
        waiting: u64::try_from(row.int(4)?).unwrap_or_default(),
        after: Duration::ZERO,
    })
}

/// When a key was parked, or when it last died.
fn since(parked_at: i64, died_at: Option<i64>) -> Timestamp {
    Timestamp(died_at.map_or(parked_at, |died_at| died_at.max(parked_at)))
}

/// How many keys match beyond the `chosen` ones.
async fn left(conn: &mut Conn<'_>, wanted: &Redrive, chosen: usize) -> Result<u64> {
    if chosen < REDRIVE_KEYS_MAX {
        return Ok(0);
    }
    let (condition, args) = condition(wanted);
    let sql = format!("SELECT COUNT(*) FROM {} WHERE {condition}", look::keys(conn.engine(), &wanted.filter));
    let row = conn.fetch_optional("counting keys to redrive", sql, args).await?;
    let all = row.map_or(Ok(0), |row| row.int(0))?;
    Ok(u64::try_from(all).unwrap_or_default().saturating_sub(chosen as u64))
}

type Place = (String, Part, String);

/// Keeps the rows of the keys for this transaction. What was freed meanwhile, or is no longer in the state that
/// was asked for or shown, falls out. Answers the attempts of each too, and when it is due.
async fn kept(
    conn: &mut Conn<'_>,
    candidates: Vec<Planned>,
    wanted: &Redrive,
) -> Result<(Vec<Planned>, HashMap<Place, (i64, i64)>)> {
    let mut rows: Vec<[Value; 3]> = Vec::with_capacity(candidates.len());
    let mut places: Vec<&Planned> = candidates.iter().collect();
    // In the order of the primary key, in which everybody locks them.
    places.sort_unstable_by_key(|key| (&key.projector, key.part.to_string(), &key.key));
    for key in places {
        rows.push([key.projector.as_str().into(), key.part.to_string().into(), key.key.as_str().into()]);
    }
    let (by_key, for_update) = (conn.engine().by_primary_key(), conn.engine().for_update());
    let sql = |values: &str| {
        format!(
            "SELECT projector, part, event_key, state, attempts, next_attempt_at, parked_at, died_at \
             FROM parked_key {by_key} WHERE (projector, part, event_key) IN ({values}) {for_update}"
        )
    };
    let mut found = HashMap::with_capacity(candidates.len());
    for row in conn.fetch_rows("keeping keys to redrive", sql, rows).await? {
        let place: Place = (row.text(0)?, Part::read(&row.text(1)?, "parked_key")?, row.text(2)?);
        let since = since(row.int(6)?, row.int_or_null(7)?);
        found.insert(place, (State::from_code(row.int(3)?)?, since, row.int(4)?, row.int(5)?));
    }
    let (mut keys, mut details) = (Vec::with_capacity(candidates.len()), HashMap::new());
    for mut key in candidates {
        let place: Place = (key.projector.clone(), key.part.clone(), key.key.clone());
        let Some((state, since, attempts, next)) = found.get(&place) else { continue };
        let is_redriven = passes_over(wanted) && *state == State::Redriving;
        let is_other = is_redriven || wanted.filter.state.is_some_and(|asked| asked != *state);
        if is_other || wanted.shown.is_some_and(|shown| *since > shown.until) {
            continue;
        }
        (key.state, key.since) = (*state, *since);
        details.insert(place, (*attempts, *next));
        keys.push(key);
    }
    Ok((keys, details))
}

/// When each key is tried: after the events of those before it.
fn scheduled(mut keys: Vec<Planned>, wanted: &Redrive) -> Result<Plan, Refusal> {
    let Some(until) = keys.iter().map(|key| key.since).max() else { return Err(Refusal::NoneParked) };
    if let Some(shown) = wanted.shown.filter(|shown| keys.len() > shown.keys) {
        return Err(Refusal::MoreThanShown { keys: keys.len(), shown: shown.keys });
    }
    let (count, waiting) = (keys.len(), keys.iter().map(|key| key.waiting).sum());
    let Some(rate) = wanted.events_per_second.map(NonZeroU32::get) else {
        return Ok(Plan { count, keys, waiting, takes: Duration::ZERO, left: 0, until });
    };
    let time = |events: u64| Duration::from_millis(events.saturating_mul(1_000) / u64::from(rate));
    if time(waiting) > REDRIVE_TIME_MAX {
        return Err(Refusal::TooLong { waiting, events_per_second: rate });
    }
    let mut before = 0;
    for key in &mut keys {
        key.after = time(before);
        before += key.waiting;
    }
    Ok(Plan { count, keys, waiting, takes: time(waiting), left: 0, until })
}

/// Writes when each key is due. All rows are there and kept, so that the upsert only updates.
async fn make_due(
    conn: &mut Conn<'_>,
    plan: &Plan,
    details: &HashMap<Place, (i64, i64)>,
    events_per_second: Option<NonZeroU32>,
    at: Timestamp,
) -> Result<()> {
    let pace = events_per_second.map_or(0, |rate| i64::from(rate.get()));
    let rows = plan.keys.iter().map(|key| {
        let due = at.0.saturating_add(i64::try_from(key.after.as_millis()).unwrap_or(i64::MAX));
        let place: Place = (key.projector.clone(), key.part.clone(), key.key.clone());
        let (state, attempts, due) = match (key.state, details.get(&place)) {
            // It would be tried by itself: sooner perhaps, and with the tries that it has left.
            (State::Retrying, Some((attempts, next))) => (State::Retrying, *attempts, due.min(*next)),
            _ => (State::Redriving, 0, due),
        };
        let pace = if state == State::Redriving { pace } else { 0 };
        let (projector, part, key) = (key.projector.as_str(), key.part.to_string(), key.key.as_str());
        [
            projector.into(),
            part.into(),
            key.into(),
            state.code().into(),
            attempts.into(),
            due.into(),
            pace.into(),
            "".into(),
            0.into(),
        ]
    });
    let engine = conn.engine();
    let columns = ["state", "attempts", "next_attempt_at", "pace"];
    let assignments: Vec<String> =
        columns.iter().map(|column| format!("{column} = {}", engine.inserted(column))).collect();
    // Its death is the operator's business now.
    let assignments = assignments.join(", ") + ", tell_at = NULL";
    let tail = engine.on_conflict("projector, part, event_key", &assignments);
    let head = "INSERT INTO parked_key \
                (projector, part, event_key, state, attempts, next_attempt_at, pace, error, parked_at) VALUES";
    conn.execute_rows("redriving keys", head, rows.collect(), &tail).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(waiting: u64) -> Planned {
        Planned {
            projector: "p".to_owned(),
            part: Part::outbox(),
            key: waiting.to_string(),
            state: State::Dead,
            since: Timestamp(0),
            waiting,
            after: Duration::ZERO,
        }
    }

    fn at_rate(events_per_second: Option<NonZeroU32>) -> Redrive {
        Redrive { events_per_second, ..Redrive::default() }
    }

    #[test]
    fn each_key_waits_for_the_events_of_those_before_it() {
        let plan = scheduled(vec![key(100), key(50), key(1)], &at_rate(NonZeroU32::new(50))).unwrap();
        let after: Vec<_> = plan.keys.iter().map(|key| key.after.as_millis()).collect();
        assert_eq!(after, [0, 2_000, 3_000]);
        assert_eq!((plan.waiting, plan.takes.as_millis()), (151, 3_020));
        let plan = scheduled(vec![key(100), key(50)], &at_rate(None)).unwrap();
        assert_eq!((plan.keys[1].after, plan.takes), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn a_plan_of_more_than_a_day_is_refused_and_so_is_one_of_nothing() {
        let refused = scheduled(vec![key(86_402)], &at_rate(NonZeroU32::new(1))).unwrap_err();
        assert_eq!(refused, Refusal::TooLong { waiting: 86_402, events_per_second: 1 });
        assert!(scheduled(vec![key(86_400)], &at_rate(NonZeroU32::new(1))).is_ok());
        assert_eq!(scheduled(Vec::new(), &at_rate(None)), Err(Refusal::NoneParked));
    }
}
