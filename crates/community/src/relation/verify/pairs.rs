//! Mirror rows against facts.
//!
//! SQL finds the pairs whose mirror row is not the very image of the fact; these few are then
//! judged one by one, since pending events may be why.

use std::collections::{BTreeSet, HashSet};

use tidings_backbone::{
    Conn, Error, Result,
    db::{Engine, Row},
    projector::Generation,
};
use tidings_event::Timestamp;

use super::{
    Kind, Report,
    pending::{Pending, PendingPair},
    shards::Shards,
    stretches::{Stretch, Stretches, Table},
    suspects::Suspects,
};
use crate::{
    Pair, UserId,
    limits::VERIFY_SUSPECTS_MAX,
    relation::{
        generation::Of,
        mirror::{self, Mirrored},
    },
};

/// Facts whose mirror row is not their image. The generation is the first argument.
pub(super) fn select_unlike(stretch: &Stretch, engine: Engine, within: &str) -> String {
    let columns = "r.from_user_id, r.to_user_id, r.rel_status, r.version, r.created_at, r.updated_at, \
                   m.rel_status, m.version, m.created_at, m.updated_at";
    let by_key = engine.by_primary_key();
    let joined = format!(
        "LEFT JOIN follower m {by_key} ON m.generation = ? AND m.to_user_id = r.to_user_id \
         AND m.from_user_id = r.from_user_id"
    );
    let unlike = "AND (m.version IS NULL OR m.version <> r.version OR m.rel_status <> r.rel_status \
                  OR m.created_at <> r.created_at OR m.updated_at <> r.updated_at)";
    stretch.select(engine, columns, &joined, &format!("{unlike} {within}"))
}

/// Mirror rows whose pair has no fact.
pub(super) fn select_extra(stretch: &Stretch, engine: Engine, within: &str) -> String {
    let joined = "LEFT JOIN following f ON f.from_user_id = r.from_user_id AND f.to_user_id = r.to_user_id";
    stretch.select(engine, "r.from_user_id, r.to_user_id", joined, &format!("AND f.id IS NULL {within}"))
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
    let mut mirror = Stretches::of(Table::Mirror(generation));
    while let Some(stretch) = mirror.next(conn).await? {
        report.mirror_rows += count(conn, &stretch, shards).await?;
    }
    let mut judged = HashSet::new();
    let mut without_row = 0;
    let mut facts = Stretches::of(Table::Facts);
    while let Some(stretch) = facts.next(conn).await? {
        report.facts += count(conn, &stretch, shards).await?;
        let sql = select_unlike(&stretch, conn.engine(), &shards.within("r.to_user_id"));
        let args = [vec![generation.0.into()], stretch.args(), shards.args()].concat();
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
    if suspects.is_none() {
        judge_unchanged(conn, generation, pending, &judged, report).await?;
    }
    let extra = find_extra(conn, generation, shards, extra).await?;
    match suspects {
        Some(suspects) => {
            pending.iter().map(|(pair, _)| pair).filter(|pair| !judged.contains(pair)).for_each(|p| suspects.add(p));
            suspects.add_beyond(extra.pairs_beyond);
            extra.pairs.into_iter().for_each(|pair| suspects.add(pair));
        }
        None => {
            extra.pairs.iter().for_each(|pair| report.add(Kind::MirrorExtra, pair, "no row", "a row"));
            report.count(Kind::MirrorExtra, extra.pairs_beyond);
        }
    }
    // Whatever is on its way, nothing makes these right.
    for (from, to) in extra.nobodies {
        report.add(Kind::MirrorOfNobody, format_args!("{from}:{to}"), "no row", "a row");
    }
    report.count(Kind::MirrorOfNobody, extra.nobodies_beyond);
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

async fn count(conn: &mut Conn<'_>, stretch: &Stretch, shards: &Shards) -> Result<u64> {
    let sql = stretch.select(conn.engine(), "COUNT(*)", "", &shards.within("r.to_user_id"));
    let row = conn.fetch_optional("counting rows", sql, [stretch.args(), shards.args()].concat()).await?;
    let number = row.map_or(Ok(0), |row| row.int(0))?;
    u64::try_from(number).map_err(|_| Error::Invariant { message: format!("a count is {number}") })
}

/// Mirror rows whose pair has no fact: at most [`VERIFY_SUSPECTS_MAX`] pairs, and as many whose ids are no users', as
/// they are; and how many more of each.
#[derive(Default)]
struct Extra {
    pairs: Vec<Pair>,
    pairs_beyond: u64,
    nobodies: Vec<(i64, i64)>,
    nobodies_beyond: u64,
}

impl Extra {
    fn add(&mut self, from: i64, to: i64) {
        match (UserId::try_from(from), UserId::try_from(to)) {
            (Ok(from), Ok(to)) if self.pairs.len() < VERIFY_SUSPECTS_MAX => self.pairs.push(Pair { from, to }),
            (Ok(_), Ok(_)) => self.pairs_beyond += 1,
            _ if self.nobodies.len() < VERIFY_SUSPECTS_MAX => self.nobodies.push((from, to)),
            _ => self.nobodies_beyond += 1,
        }
    }
}

/// Finds the mirror rows whose pair has no fact, whose number is known from the counts.
async fn find_extra(conn: &mut Conn<'_>, generation: Generation, shards: &Shards, number: u64) -> Result<Extra> {
    let (mut extra, mut found) = (Extra::default(), 0);
    let mut stretches = Stretches::of(Table::Mirror(generation));
    while found < number {
        let Some(stretch) = stretches.next(conn).await? else { break };
        let sql = select_extra(&stretch, conn.engine(), &shards.within("r.to_user_id"));
        let args = [stretch.args(), shards.args()].concat();
        for row in conn.fetch("looking for mirror rows without facts", sql, args).await? {
            extra.add(row.int(0)?, row.int(1)?);
            found += 1;
        }
    }
    Ok(extra)
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
