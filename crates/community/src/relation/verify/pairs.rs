//! Mirror rows against facts.
//!
//! SQL finds the pairs whose mirror row is not the very image of the fact; these few are then
//! judged one by one, since pending events may be why.

use std::collections::{BTreeSet, HashSet};

use tidings_backbone::{
    Conn, Error, Result,
    db::{Row, Value},
    projector::Generation,
};
use tidings_event::Timestamp;

use super::{
    Kind, Report,
    pending::{Pending, PendingPair},
    shards::Shards,
    suspects::Suspects,
};
use crate::{
    Pair, UserId,
    limits::{VERIFY_STEP_ROWS, VERIFY_SUSPECTS_MAX},
    relation::{
        generation::Of,
        mirror::{self, Mirrored},
    },
};

fn select_unlike(within: &str) -> String {
    format!(
        "SELECT f.from_user_id, f.to_user_id, f.rel_status, f.version, f.created_at, f.updated_at, \
                m.rel_status, m.version, m.created_at, m.updated_at \
         FROM following f \
         LEFT JOIN follower m ON m.generation = ? AND m.to_user_id = f.to_user_id AND m.from_user_id = f.from_user_id \
         WHERE f.id > ? AND f.id <= ? AND (m.version IS NULL OR m.version <> f.version \
               OR m.rel_status <> f.rel_status OR m.created_at <> f.created_at OR m.updated_at <> f.updated_at) {within}"
    )
}

/// Compares the facts of `shards` with their mirror rows, and those mirror rows with their facts. What differs goes to
/// `suspects` where there may be more on its way than `pending` knows of, and else into the report.
pub(in crate::relation) async fn compare(
    conn: &mut Conn<'_>,
    generation: Generation,
    shards: &Shards,
    pending: &Pending,
    report: &mut Report,
    mut suspects: Option<&mut Suspects>,
) -> Result<()> {
    let of: Value = generation.0.into();
    let within = shards.within("to_user_id");
    // Nothing is excluded where nothing is named: `1 = 1` begins the conditions.
    let sql = format!("SELECT COUNT(*) FROM following WHERE 1 = 1 {within}");
    report.facts = count(conn, sql, shards.args()).await?;
    let sql = format!("SELECT COUNT(*) FROM follower WHERE generation = ? {within}");
    report.mirror_rows = count(conn, sql, [vec![of.clone()], shards.args()].concat()).await?;
    let last = count(conn, "SELECT COALESCE(MAX(id), 0) FROM following".to_owned(), Vec::new()).await?;
    let last = i64::try_from(last).unwrap_or(i64::MAX);
    let mut judged = HashSet::new();
    let mut without_row = 0;
    for start in (0..last).step_by(VERIFY_STEP_ROWS as usize) {
        let args = vec![of.clone(), start.into(), (start + VERIFY_STEP_ROWS).into()];
        let args = [args, shards.args()].concat();
        let sql = select_unlike(&shards.within("f.to_user_id"));
        for row in conn.fetch("comparing facts with the mirror", sql, args).await? {
            let (pair, fact, found) = read(&row)?;
            without_row += u64::from(found.is_none());
            let pending = pending.get(pair);
            match &mut suspects {
                Some(suspects) => suspects.add(pair),
                None => judge(pair, fact, found, pending, report),
            }
            if pending.is_some() {
                judged.insert(pair);
            }
        }
    }
    let extra = report.mirror_rows.saturating_sub(report.facts - without_row);
    match suspects {
        Some(suspects) => {
            pending.iter().map(|(pair, _)| pair).filter(|pair| !judged.contains(pair)).for_each(|p| suspects.add(p));
            let found = find_extra(conn, generation, shards, extra).await?;
            suspects.add_beyond(extra.saturating_sub((found.pairs.len() + found.nobodies.len()) as u64));
            found.pairs.into_iter().for_each(|pair| suspects.add(pair));
            // Whatever is on its way, nothing makes these right.
            report_nobodies(&found.nobodies, report);
        }
        None => {
            judge_unchanged(conn, generation, pending, &judged, report).await?;
            let found = find_extra(conn, generation, shards, extra).await?;
            found.pairs.iter().for_each(|pair| report.add(Kind::MirrorExtra, pair, "no row", "a row"));
            report_nobodies(&found.nobodies, report);
            report.count(Kind::MirrorExtra, extra.saturating_sub((found.pairs.len() + found.nobodies.len()) as u64));
        }
    }
    Ok(())
}

/// Judges a pair that is looked at alone.
pub(in crate::relation) fn judge_alone(
    pair: Pair,
    fact: Option<Mirrored>,
    found: Option<Mirrored>,
    pending: Option<&PendingPair>,
    report: &mut Report,
) {
    match (fact, pending) {
        (Some(fact), Some(_)) => judge(pair, fact, found, pending, report),
        (None, Some(_)) => report.add(Kind::EventWithoutFact, pair, "no event", "a pending event"),
        (fact, None) => compare_row(pair, fact, found, false, report),
    }
}

/// Judges a pair whose mirror row is not the image of its fact.
fn judge(pair: Pair, fact: Mirrored, found: Option<Mirrored>, pending: Option<&PendingPair>, report: &mut Report) {
    let Some(pending) = pending else {
        return compare_row(pair, Some(fact), found, false, report);
    };
    if pending.is_repair_of(found.map_or(0, |found| found.version)) {
        return;
    }
    if i64::try_from(pending.last_version) != Ok(fact.version) {
        let expected = format!("version {}", fact.version);
        return report.add(Kind::EventWithoutFact, pair, expected, format!("version {}", pending.last_version));
    }
    let before = Mirrored {
        active: pending.held_before,
        version: i64::try_from(pending.first_version).unwrap_or(i64::MAX) - 1,
        created_at: fact.created_at,
        updated_at: pending.since_before.unwrap_or_default(),
    };
    let expected = (before.version > 0).then_some(before);
    compare_row(pair, expected, found, pending.since_before.is_none(), report);
}

/// Pairs with pending events that look as if there were none: either these are applied already,
/// ahead of the position, or they are events without a fact.
async fn judge_unchanged(
    conn: &mut Conn<'_>,
    generation: Generation,
    pending: &Pending,
    judged: &HashSet<Pair>,
    report: &mut Report,
) -> Result<()> {
    let unchanged: BTreeSet<Pair> = pending.iter().map(|(pair, _)| pair).filter(|p| !judged.contains(p)).collect();
    let rows = mirror::read(conn, Of::One(generation), &unchanged).await?;
    for pair in unchanged {
        match rows.get(&pair) {
            Some(row) => report.add(Kind::MirrorExtra, pair, "the state before pending events", describe(row)),
            None => report.add(Kind::EventWithoutFact, pair, "no event", "a pending event"),
        }
    }
    Ok(())
}

/// Reports every way in which a mirror row differs from what it should be.
fn compare_row(
    pair: Pair,
    expected: Option<Mirrored>,
    found: Option<Mirrored>,
    any_update_time: bool,
    report: &mut Report,
) {
    let (expected, found) = match (expected, found) {
        (None, None) => return,
        (Some(expected), None) => return report.add(Kind::MirrorMissing, pair, describe(&expected), "no row"),
        (None, Some(found)) => return report.add(Kind::MirrorExtra, pair, "no row", describe(&found)),
        (Some(expected), Some(found)) => (expected, found),
    };
    let times_differ =
        found.created_at != expected.created_at || (found.updated_at != expected.updated_at && !any_update_time);
    for (differs, kind) in [
        (found.active != expected.active, Kind::MirrorStatus),
        (found.version != expected.version, Kind::MirrorVersion),
        (times_differ, Kind::MirrorTime),
    ] {
        if differs {
            report.add(kind, pair, describe(&expected), describe(&found));
        }
    }
}

/// Mirror rows whose pair has no fact.
#[derive(Default)]
struct Extra {
    pairs: Vec<Pair>,
    /// Those whose ids are no users', as they are.
    nobodies: Vec<(i64, i64)>,
}

/// Finds mirror rows whose pair has no fact; their number is known from the counts.
async fn find_extra(conn: &mut Conn<'_>, generation: Generation, shards: &Shards, number: u64) -> Result<Extra> {
    let mut extra = Extra::default();
    if number == 0 {
        return Ok(extra);
    }
    let sql = format!(
        "SELECT m.from_user_id, m.to_user_id FROM follower m \
         LEFT JOIN following f ON f.from_user_id = m.from_user_id AND f.to_user_id = m.to_user_id \
         WHERE m.generation = ? AND f.id IS NULL {} LIMIT ?",
        shards.within("m.to_user_id")
    );
    let limit: Value = i64::try_from(VERIFY_SUSPECTS_MAX).unwrap_or(i64::MAX).into();
    let args = [vec![generation.0.into()], shards.args(), vec![limit]].concat();
    for row in conn.fetch("looking for mirror rows without facts", sql, args).await? {
        let (from, to) = (row.int(0)?, row.int(1)?);
        match (UserId::try_from(from), UserId::try_from(to)) {
            (Ok(from), Ok(to)) => extra.pairs.push(Pair { from, to }),
            _ => extra.nobodies.push((from, to)),
        }
    }
    Ok(extra)
}

fn report_nobodies(nobodies: &[(i64, i64)], report: &mut Report) {
    for (from, to) in nobodies {
        report.add(Kind::MirrorOfNobody, format_args!("{from}:{to}"), "no row", "a row");
    }
}

async fn count(conn: &mut Conn<'_>, sql: String, args: Vec<Value>) -> Result<u64> {
    let row = conn.fetch_optional("counting rows", sql, args).await?;
    let number = row.map_or(Ok(0), |row| row.int(0))?;
    u64::try_from(number).map_err(|_| Error::Invariant { message: format!("a count is {number}") })
}

fn read(row: &Row) -> Result<(Pair, Mirrored, Option<Mirrored>)> {
    Ok((read_pair(row)?, read_state(row, 2)?, read_state_or_null(row, 6)?))
}

/// Reads a pair and what the facts and the mirror say of it, if anything.
pub(super) fn read_both(row: &Row) -> Result<(Pair, Option<Mirrored>, Option<Mirrored>)> {
    Ok((read_pair(row)?, read_state_or_null(row, 2)?, read_state_or_null(row, 6)?))
}

fn read_state_or_null(row: &Row, first: usize) -> Result<Option<Mirrored>> {
    row.int_or_null(first + 1)?.map(|_| read_state(row, first)).transpose()
}

fn read_pair(row: &Row) -> Result<Pair> {
    Ok(Pair { from: UserId::read(row, 0, "following")?, to: UserId::read(row, 1, "following")? })
}

fn read_state(row: &Row, first: usize) -> Result<Mirrored> {
    Ok(Mirrored {
        // As those who count and list have it: whatever is not 1 is no follow.
        active: row.int(first)? == 1,
        version: row.int(first + 1)?,
        created_at: Timestamp(row.int(first + 2)?),
        updated_at: Timestamp(row.int(first + 3)?),
    })
}

fn describe(row: &Mirrored) -> String {
    let Mirrored { active, version, created_at, updated_at } = row;
    let status = i32::from(*active);
    format!("status {status}, version {version}, created {}, updated {}", created_at.0, updated_at.0)
}
