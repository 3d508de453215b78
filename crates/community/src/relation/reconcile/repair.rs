//! The events that put differences right.

use std::collections::{BTreeMap, BTreeSet};

use tidings_backbone::{
    Conn, EventIds, Result, db::Value, outbox, projector::generation::keep_live, reconcile::Difference,
};
use tidings_event::{
    Event, Metadata, Timestamp,
    payload::{RecountRequested, Rest, Restated},
};

use crate::{
    Pair, UserId,
    envelope::{self, About},
    limits::RESTATED_VERSION_MAX,
    relation::{
        facts::state::keep_turn,
        mirror::Mirrored,
        projection,
        verify::{Kind, suspects},
    },
};

/// The key of the event of a difference: whose order the follow has, or who is counted anew.
pub(super) fn key(difference: &Difference) -> Option<String> {
    let pair = difference.subject.parse().ok().map(|pair: Pair| pair.from);
    pair.or_else(|| user_to_count(difference)).map(|key| key.to_string())
}

/// Whose counters differ.
fn user_to_count(difference: &Difference) -> Option<UserId> {
    let is_of_user = Kind::ALL.into_iter().any(|kind| kind.is_of_counters() && kind.text() == difference.kind);
    if is_of_user { difference.subject.parse().ok() } else { None }
}

/// Emits the events, and raises the versions that they have.
pub(super) async fn repair(
    differences: &[Difference],
    at: Timestamp,
    ids: &EventIds,
    mut conn: Conn<'_>,
) -> Result<u64> {
    let pairs: BTreeSet<Pair> = differences.iter().filter_map(|difference| difference.subject.parse().ok()).collect();
    let users: BTreeSet<UserId> = differences.iter().filter_map(user_to_count).collect();
    // As for commands: until the commit nobody else decides for these keys.
    keep_turn(&mut conn, pairs.iter().map(|pair| pair.from).chain(users.iter().copied()).collect()).await?;
    let mut events = restate(&pairs, at, ids, &mut conn).await?;
    events.extend(request_recounts(&users, at, ids, &mut conn).await?);
    let number = events.len() as u64;
    outbox::emit(conn, events).await?;
    Ok(number)
}

/// States pairs anew whose mirror rows differ from their facts, above the versions of both.
async fn restate(pairs: &BTreeSet<Pair>, at: Timestamp, ids: &EventIds, conn: &mut Conn<'_>) -> Result<Vec<Event>> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let generation = keep_live(conn, projection::NAME).await?;
    let states = suspects::read(conn, generation, pairs.iter()).await?;
    let (mut rows, mut events) = (Vec::with_capacity(states.len()), Vec::with_capacity(states.len()));
    for (pair, (fact, found)) in states {
        let Some(state) = stated(fact, found, at) else { continue };
        let Mirrored { active, version, created_at, updated_at } = state;
        rows.push([
            pair.from.into(),
            pair.to.into(),
            i64::from(active).into(),
            version.into(),
            created_at.0.into(),
            updated_at.0.into(),
        ]);
        let (from, to) = (pair.from.into(), pair.to.into());
        let payload = Restated { from, to, following: active, created_at, updated_at, rest: Rest::new() };
        let about = About::relation(pair, version.unsigned_abs());
        events.push(envelope::event(&payload, about, Metadata::default(), at, ids)?);
    }
    // Of a fact that is there, only the version.
    let head = "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at) VALUES";
    let version = format!("version = {}", conn.engine().inserted("version"));
    let tail = conn.engine().on_conflict("from_user_id, to_user_id", &version);
    conn.execute_rows("raising the versions of pairs", head, rows, &tail).await?;
    Ok(events)
}

/// Whether an event can top the versions of both.
pub(super) fn is_repairable(fact: Option<Mirrored>, found: Option<Mirrored>) -> bool {
    version(fact, found) < RESTATED_VERSION_MAX
}

fn version(fact: Option<Mirrored>, found: Option<Mirrored>) -> i64 {
    [fact, found].into_iter().flatten().map(|row| row.version).max().unwrap_or_default().max(0)
}

/// The state that is to be stated; `None` where there is nothing to put right, or nothing that can be.
fn stated(fact: Option<Mirrored>, found: Option<Mirrored>, at: Timestamp) -> Option<Mirrored> {
    if fact == found || !is_repairable(fact, found) {
        return None;
    }
    let before = fact;
    // A mirror row without a fact says nothing that is true.
    let fact = fact.unwrap_or(Mirrored { active: false, version: 0, created_at: at, updated_at: at });
    Some(Mirrored { version: version(before, found) + 1, ..fact })
}

/// Asks for users to be counted anew. How often that was asked is the fact; it gives the version.
async fn request_recounts(
    users: &BTreeSet<UserId>,
    at: Timestamp,
    ids: &EventIds,
    conn: &mut Conn<'_>,
) -> Result<Vec<Event>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<[Value; 1]> = users.iter().map(|user| [(*user).into()]).collect();
    let sql = |input: &str| format!("SELECT user_id, version FROM counter_recount WHERE user_id IN ({input})");
    let mut versions: BTreeMap<UserId, i64> = users.iter().map(|user| (*user, 0)).collect();
    for row in conn.fetch_rows("reading how often was recounted", sql, keys).await? {
        versions.insert(UserId::read(&row, 0, "counter_recount")?, row.int(1)?);
    }
    let (mut rows, mut events) = (Vec::with_capacity(versions.len()), Vec::with_capacity(versions.len()));
    for (user, version) in versions {
        let version = version + 1;
        rows.push([user.into(), version.into(), at.0.into()]);
        let payload = RecountRequested { user: user.into(), rest: Rest::new() };
        let about = About::user("counters", user, version.unsigned_abs());
        events.push(envelope::event(&payload, about, Metadata::default(), at, ids)?);
    }
    let head = "INSERT INTO counter_recount (user_id, version, requested_at) VALUES";
    let inserted = |column| format!("{column} = {}", conn.engine().inserted(column));
    let tail = conn.engine().on_conflict("user_id", &["version", "requested_at"].map(inserted).join(", "));
    conn.execute_rows("requesting recounts", head, rows, &tail).await?;
    Ok(events)
}
