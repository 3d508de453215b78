//! Pairs that differed at one look and may be only on their way: looked at again, alone.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use tidings_backbone::{
    Conn, Db, Result, Tx,
    db::Value,
    log::{Log, Offset},
    projector::{Generation, generation::live},
};

use super::{Report, pairs, pending::Pending};
use crate::{
    Pair,
    limits::VERIFY_SUSPECTS_MAX,
    relation::{EVENT_TYPES, mirror::Mirrored, projection},
};

/// What the facts said of a pair at the last look at it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    NotYet,
    NoFact,
    Version(i64),
}

/// The pairs that differ and may be right: at most [`VERIFY_SUSPECTS_MAX`] of them, and how many more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspects {
    pairs: BTreeMap<Pair, Seen>,
    beyond: u64,
}

impl Suspects {
    /// Whether there are none that can be looked at again.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// How many there are, those beyond the limit included.
    pub fn number(&self) -> u64 {
        self.pairs.len() as u64 + self.beyond
    }

    /// Those that can be looked at again.
    pub(in crate::relation) fn pairs(&self) -> BTreeSet<Pair> {
        self.pairs.keys().copied().collect()
    }

    /// So many more, that were counted and not read.
    pub(super) fn add_beyond(&mut self, number: u64) {
        self.beyond += number;
    }

    pub(super) fn add(&mut self, pair: Pair) {
        let is_full = self.pairs.len() >= VERIFY_SUSPECTS_MAX;
        match self.pairs.entry(pair) {
            Entry::Vacant(_) if is_full => self.beyond += 1,
            Entry::Vacant(entry) => drop(entry.insert(Seen::NotYet)),
            Entry::Occupied(_) => {}
        }
    }
}

/// Looks at the suspects of an earlier look alone, in one snapshot, after all that was on its way then has
/// been applied. One that still differs although its fact is at the version that it was at is wrong, and
/// goes into the report; one whose fact has moved on stays a suspect.
///
/// # Errors
/// When the database fails. Differences are not errors: they are in the report.
pub async fn compare_again(db: &Db, log: &Log, suspects: &Suspects, report: &mut Report) -> Result<Suspects> {
    let mut tx = db.read().await?;
    let live = live(&mut tx.conn(), projection::NAME).await?;
    look_again(tx, live, log, suspects, report).await
}

/// The same for a generation.
pub(in crate::relation) async fn look_again(
    mut tx: Tx,
    generation: Generation,
    log: &Log,
    suspects: &Suspects,
    report: &mut Report,
) -> Result<Suspects> {
    let identity = generation.identity(projection::NAME);
    let mut conn = tx.conn();
    let pending = Pending::parked(&mut conn, &identity, &log.parts(EVENT_TYPES)).await?;
    let states = read(&mut conn, generation, suspects.pairs.keys()).await?;
    tx.rollback().await?;
    let mut left = Suspects { beyond: suspects.beyond, ..Suspects::default() };
    for (pair, (fact, found)) in states {
        let mut look = Report::new(Offset(0), 0);
        pairs::judge_alone(pair, fact, found, pending.get(pair), &mut look);
        if look.is_clean() {
            continue;
        }
        let seen = fact.map_or(Seen::NoFact, |fact| Seen::Version(fact.version));
        if suspects.pairs.get(&pair) == Some(&seen) {
            report.absorb(look);
        } else {
            left.pairs.insert(pair, seen);
        }
    }
    Ok(left)
}

/// What the facts say of each pair, and what the mirror.
pub(in crate::relation) type States = BTreeMap<Pair, (Option<Mirrored>, Option<Mirrored>)>;

/// What the facts and the mirror say of pairs.
pub(in crate::relation) async fn read(
    conn: &mut Conn<'_>,
    generation: Generation,
    suspects: impl Iterator<Item = &Pair>,
) -> Result<States> {
    let rows: Vec<[Value; 2]> = suspects.map(|pair| [pair.from.into(), pair.to.into()]).collect();
    let sql = |input: &str| {
        format!(
            "WITH pair (from_id, to_id) AS ({input}) \
             SELECT pair.from_id, pair.to_id, f.rel_status, f.version, f.created_at, f.updated_at, \
                    m.rel_status, m.version, m.created_at, m.updated_at \
             FROM pair LEFT JOIN following f ON f.from_user_id = pair.from_id AND f.to_user_id = pair.to_id \
             LEFT JOIN follower m ON m.to_user_id = pair.to_id AND m.from_user_id = pair.from_id AND m.generation = ?"
        )
    };
    let mut states = BTreeMap::new();
    for row in conn.fetch_rows_and("comparing pairs again", sql, rows, &[generation.0.into()]).await? {
        let (pair, fact, found) = pairs::read_both(&row)?;
        states.insert(pair, (fact, found));
    }
    Ok(states)
}
