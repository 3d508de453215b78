//! Facts and mirror in shards, by who is followed: counts and checksums tell which of them differ.

use std::collections::BTreeMap;

use tidings_backbone::{
    Conn, Result,
    db::{Engine, Value},
    projector::Generation,
};

use super::stretches::{Stretch, Stretches, Table};

/// How many there are.
pub(in crate::relation) const SHARDS: i64 = 256;

/// Those whose rows are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relation) struct Shards(Option<Vec<i64>>);

impl Shards {
    pub(super) const ALL: Self = Self(None);

    fn of(shards: Vec<i64>) -> Self {
        if shards.len() as i64 >= SHARDS { Self::ALL } else { Self(Some(shards)) }
    }

    /// How many they are.
    pub(in crate::relation) fn number(&self) -> u64 {
        self.0.as_ref().map_or(SHARDS.unsigned_abs(), |shards| shards.len() as u64)
    }

    /// The condition, to stand after others, that a row's `column` is in one of them.
    pub(super) fn within(&self, column: &str) -> String {
        let Some(shards) = &self.0 else { return String::new() };
        if shards.is_empty() {
            return "AND 1 = 0".to_owned();
        }
        format!("AND {column} % {SHARDS} IN ({})", vec!["?"; shards.len()].join(", "))
    }

    /// The arguments of [`Shards::within`].
    pub(super) fn args(&self) -> Vec<Value> {
        self.0.iter().flatten().map(|shard| (*shard).into()).collect()
    }
}

/// What is summed of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: i64,
    active: i64,
    checksum: i64,
}

/// What the sums of facts and mirror say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relation) struct Sums {
    /// Shards with any row.
    pub(in crate::relation) shards: u64,
    /// Those that differ.
    pub(in crate::relation) differing: Shards,
    /// Facts summed.
    pub(in crate::relation) facts: u64,
}

/// Sums facts and mirror, in one snapshot.
pub(in crate::relation) async fn sums(conn: &mut Conn<'_>, generation: Generation) -> Result<Sums> {
    let facts = sum(conn, Table::Facts).await?;
    let mirror = sum(conn, Table::Mirror(generation)).await?;
    let all: BTreeMap<i64, Sum> = facts.iter().chain(&mirror).map(|(shard, sum)| (*shard, *sum)).collect();
    let differs = |shard: &i64| facts.get(shard) != mirror.get(shard);
    Ok(Sums {
        shards: all.len() as u64,
        differing: Shards::of(all.into_keys().filter(differs).collect()),
        facts: facts.values().map(|sum| sum.rows.unsigned_abs()).sum(),
    })
}

async fn sum(conn: &mut Conn<'_>, table: Table) -> Result<BTreeMap<i64, Sum>> {
    let (mut sums, mut stretches) = (BTreeMap::new(), Stretches::of(table));
    while let Some(stretch) = stretches.next(conn).await? {
        let sql = select_sums(&stretch, conn.engine());
        for row in conn.fetch("summing shards", sql, stretch.args()).await? {
            let sum: &mut Sum = sums.entry(row.int(0)?).or_default();
            sum.rows += row.int(1)?;
            sum.active += row.int(2)?;
            sum.checksum = sum.checksum.wrapping_add(row.int(3)?);
        }
    }
    Ok(sums)
}

/// A row's part of the checksum is the product of what tells the pair and what tells its state, so that what two
/// rows have exchanged, or what one has too much and another too little, does not cancel out. Each number counts by
/// its rests of two primes: those of one are the same for numbers that damage may well make of each other, such as 1
/// and the greatest BIGINT. No product leaves a BIGINT, nor does the sum of a stretch: each factor is below 2^31.
pub(super) fn select_sums(stretch: &Stretch, engine: Engine) -> String {
    let (prime, other) = (2_147_483_647_i64, 2_147_483_629_i64);
    let mixed = |terms: &[(&str, [i64; 2])]| {
        let term = |(column, by): &(&str, [i64; 2])| {
            format!("(r.{column} % {prime}) * {} + (r.{column} % {other}) * {}", by[0], by[1])
        };
        let terms: Vec<String> = terms.iter().map(term).collect();
        format!("(({}) % {prime})", terms.join(" + "))
    };
    let pair = mixed(&[("from_user_id", [201_326_611, 3_145_739]), ("to_user_id", [100_663_319, 1_572_869])]);
    let state = mixed(&[
        ("rel_status", [50_331_653, 786_433]),
        ("version", [25_165_843, 393_241]),
        ("created_at", [12_582_917, 196_613]),
        ("updated_at", [6_291_469, 98_317]),
    ]);
    let [active, checksum] =
        ["SUM(r.rel_status <> 0)".to_owned(), format!("SUM((({pair} + 1) * ({state} + 1)) % {prime})")]
            .map(|sum| engine.as_int(&sum));
    let shard = format!("r.to_user_id % {SHARDS}");
    stretch.select(engine, &format!("{shard}, COUNT(*), {active}, {checksum}"), "", &format!("GROUP BY {shard}"))
}
