//! Mirror and counters against facts, in several looks.

use std::collections::{BTreeMap, BTreeSet};

use tidings_backbone::{
    Conn, Result,
    log::Offset,
    projector::generation::live,
    reconcile::{Compared, Comparison, Difference},
};

use crate::{
    Pair, UserId,
    limits::RECONCILE_LOOKS_MAX,
    relation::{
        EVENT_TYPES, counters,
        generation::Of,
        mirror::Mirrored,
        projection,
        verify::{
            Kind, Report, Suspects,
            pairs::{self, judge_alone},
            pending::Pending,
            shards::{Sums, sums},
            suspects::{self, States},
            users,
        },
    },
};

/// The mirror, the counters, and the users of whom either is not known to be right.
pub(super) async fn compare(comparison: &Comparison<'_>) -> Result<(Compared, Compared, BTreeSet<UserId>)> {
    let first = First::look(comparison).await?;
    let mut last = Look::default();
    let mut is_settled = true;
    for _ in 0..RECONCILE_LOOKS_MAX {
        if first.is_clean() {
            break;
        }
        is_settled = comparison.settle().await?;
        if !is_settled {
            break;
        }
        let Some(look) = Look::again(comparison, &first, &last).await? else {
            is_settled = false;
            break;
        };
        last = look;
        if last.is_certain() {
            break;
        }
    }
    let mut mirror = Compared {
        shards: first.sums.shards,
        shards_differing: first.sums.differing.number(),
        rows: first.sums.facts,
        ..Compared::of("relation.mirror")
    };
    let mut of_counters = Compared { rows: first.users, ..Compared::of("relation.counters") };
    if is_settled {
        mirror.lagging = last.parked + last.unsure_pairs.len() as u64 + first.beyond;
        of_counters.lagging = last.waiting + last.unsure_users.len() as u64;
        let doubtful =
            last.pairs.keys().flat_map(|pair| [pair.from, pair.to]).chain(last.offs.keys().copied()).collect();
        tell(&mut mirror, last.wrong_pairs);
        tell(&mut of_counters, last.wrong_users);
        return Ok((mirror, of_counters, doubtful));
    }
    // Nothing can be told while what is on its way does not arrive.
    mirror.lagging = first.pairs.len() as u64 + first.beyond;
    of_counters.lagging = first.suspects.len() as u64;
    let of_pairs = first.pairs.iter().flat_map(|pair| [pair.from, pair.to]);
    let doubtful = of_pairs.chain(first.suspects.iter().copied()).collect();
    Ok((mirror, of_counters, doubtful))
}

fn tell(compared: &mut Compared, differences: Vec<(Kind, Difference)>) {
    differences.into_iter().for_each(|(kind, difference)| compared.push(kind.text(), || difference));
}

/// The look at everything.
struct First {
    sums: Sums,
    /// Pairs whose mirror row is not the image of the fact.
    pairs: BTreeSet<Pair>,
    /// More of them, that are not looked at again.
    beyond: u64,
    /// Users whose counters are not what the mirror counts.
    suspects: BTreeSet<UserId>,
    /// Users whose counters were compared.
    users: u64,
}

impl First {
    async fn look(comparison: &Comparison<'_>) -> Result<Self> {
        let Comparison { db, log, generation, identity, .. } = *comparison;
        let mut tx = db.read().await?;
        let mut conn = tx.conn();
        let sums = sums(&mut conn, generation).await?;
        let parked = Pending::parked(&mut conn, identity, &log.parts(EVENT_TYPES)).await?;
        let (mut report, mut suspects) = (Report::new(Offset(0), 0), Suspects::default());
        if sums.differing.number() > 0 {
            let differing = &sums.differing;
            pairs::compare(&mut conn, generation, differing, &parked, &mut report, Some(&mut suspects)).await?;
        }
        let mut report = Report::new(Offset(0), 0).showing_all();
        // Those that are to be recounted are told as lagging at the next look.
        users::compare_with_mirror(&mut conn, generation, &Pending::default(), &mut report).await?;
        tx.rollback().await?;
        let pairs = suspects.pairs();
        let beyond = suspects.number() - pairs.len() as u64;
        let suspects = report.examples.iter().filter_map(|example| example.subject.parse().ok()).collect();
        Ok(Self { sums, pairs, beyond, suspects, users: report.users })
    }

    fn is_clean(&self) -> bool {
        self.pairs.is_empty() && self.suspects.is_empty()
    }
}

/// How stored counters differ from what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    /// There is no row, and should be.
    Missing,
    /// The row cannot be read.
    Malformed,
    /// By so much, which stays the same while both change.
    By([i64; 5]),
}

/// A look at what differed at the first, in one snapshot, after all that was committed by then was applied.
#[derive(Default)]
struct Look {
    /// What differs, with what facts and mirror say.
    pairs: States,
    /// Those that said the same at the look before: nothing was on its way.
    wrong_pairs: Vec<(Kind, Difference)>,
    unsure_pairs: BTreeSet<Pair>,
    /// Pairs that will be right when what is parked is applied.
    parked: u64,
    /// How the counters differ that do.
    offs: BTreeMap<UserId, Off>,
    /// Those that differed just so at the look before.
    wrong_users: Vec<(Kind, Difference)>,
    unsure_users: BTreeSet<UserId>,
    /// Users whose counters differ, and are counted anew when what is parked is applied.
    waiting: u64,
}

impl Look {
    /// `None` when another generation is live by now, so that this one may be going.
    async fn again(comparison: &Comparison<'_>, first: &First, last: &Self) -> Result<Option<Self>> {
        let Comparison { db, log, generation, identity, .. } = *comparison;
        let mut tx = db.read().await?;
        let mut conn = tx.conn();
        if live(&mut conn, projection::NAME).await? != generation {
            return Ok(None);
        }
        let pending = Pending::parked(&mut conn, identity, &log.parts(EVENT_TYPES)).await?;
        let states = suspects::read(&mut conn, generation, first.pairs.iter()).await?;
        let mut look = Self::default();
        let mut lacking = Lacking::default();
        for (pair, (fact, found)) in states {
            look.judge_pair(pair, fact, found, &pending, &last.pairs, &mut lacking);
        }
        let of_pairs = look.pairs.keys().flat_map(|pair| [pair.from, pair.to]);
        let users: BTreeSet<UserId> = first.suspects.iter().copied().chain(of_pairs).collect();
        look.judge_users(&mut conn, comparison, users, &pending, &last.offs, &lacking).await?;
        tx.rollback().await?;
        Ok(Some(look))
    }

    fn is_certain(&self) -> bool {
        self.unsure_pairs.is_empty() && self.unsure_users.is_empty()
    }

    fn judge_pair(
        &mut self,
        pair: Pair,
        fact: Option<Mirrored>,
        found: Option<Mirrored>,
        pending: &Pending,
        last: &States,
        lacking: &mut Lacking,
    ) {
        let mut report = Report::new(Offset(0), 0);
        let pending = pending.get(pair);
        judge_alone(pair, fact, found, pending, &mut report);
        // One that differs in several ways is one difference, of the way that matters most.
        let Some(example) = report.examples.into_iter().next() else {
            self.parked += u64::from(fact != found);
            return;
        };
        let held = fact.is_some_and(|fact| pending.map_or(fact.active, |pending| pending.held_before));
        lacking.add(pair, fact.is_some(), i64::from(held) - i64::from(found.is_some_and(|found| found.active)));
        if last.get(&pair) == Some(&(fact, found)) {
            let (subject, expected, found) = (example.subject, example.expected, example.found);
            let kind = example.kind.text().into();
            self.wrong_pairs.push((example.kind, Difference { kind, subject, expected, found }));
        } else {
            self.unsure_pairs.insert(pair);
        }
        self.pairs.insert(pair, (fact, found));
    }

    async fn judge_users(
        &mut self,
        conn: &mut Conn<'_>,
        comparison: &Comparison<'_>,
        users: BTreeSet<UserId>,
        pending: &Pending,
        last: &BTreeMap<UserId, Off>,
        lacking: &Lacking,
    ) -> Result<()> {
        let of = Of::One(comparison.generation);
        let users: Vec<UserId> = users.into_iter().collect();
        let stored = counters::read_stored(conn, of, &users).await?;
        let counted = counters::recount(conn, of, &users).await?;
        let moving: BTreeSet<UserId> = self.unsure_pairs.iter().flat_map(|pair| [pair.from, pair.to]).collect();
        for user in users {
            let mut expected = counted.get(&user).copied().unwrap_or_default().slots().map(i64::from);
            let [followings, followers] = lacking.0.get(&user).copied().unwrap_or_default();
            expected[0] += followings;
            expected[1] += followers;
            let stored = stored.get(&user).map(|stored| stored.counters.map(|found| found.slots().map(i64::from)));
            let Some(off) = off(expected, stored) else { continue };
            self.offs.insert(user, off);
            if pending.will_recount(user) {
                self.waiting += 1;
            } else if moving.contains(&user) || last.get(&user) != Some(&off) {
                self.unsure_users.insert(user);
            } else {
                self.wrong_users.push(differs(user, off, expected, stored.flatten()));
            }
        }
        Ok(())
    }
}

/// What the mirror lacks for each user's counters: of his followings, and of his followers.
#[derive(Default)]
struct Lacking(BTreeMap<UserId, [i64; 2]>);

impl Lacking {
    /// Notes a wrong row. Followings are counted along the facts, so where there is none the row was not counted.
    fn add(&mut self, pair: Pair, has_fact: bool, by: i64) {
        self.0.entry(pair.from).or_default()[0] += if has_fact { by } else { 0 };
        self.0.entry(pair.to).or_default()[1] += by;
    }
}

fn off(expected: [i64; 5], stored: Option<Option<[i64; 5]>>) -> Option<Off> {
    match stored {
        // A user whom no applied event concerns has no row yet.
        None => (expected != [0; 5]).then_some(Off::Missing),
        Some(None) => Some(Off::Malformed),
        Some(Some(found)) if found == expected => None,
        Some(Some(found)) => Some(Off::By(std::array::from_fn(|slot| found[slot] - expected[slot]))),
    }
}

fn differs(user: UserId, off: Off, expected: [i64; 5], found: Option<[i64; 5]>) -> (Kind, Difference) {
    let (kind, found) = match off {
        Off::Missing => (Kind::CounterMissing, "no row".to_owned()),
        Off::Malformed => (Kind::CounterMalformed, "another value".to_owned()),
        Off::By(_) => (Kind::CounterValue, found.map_or_else(String::new, users::describe)),
    };
    let (subject, expected) = (user.to_string(), users::describe(expected));
    (kind, Difference { kind: kind.text().into(), subject, expected, found })
}
