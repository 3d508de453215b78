//! A look at what differed at the first.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tidings_backbone::{
    Conn, Result,
    log::Offset,
    projector::generation::live,
    reconcile::{Comparison, Difference, Waiting},
};
use tidings_event::payload::{Payload, RecountRequested, Restated};

use super::{first::First, repair::is_repairable};
use crate::{
    Pair, UserId,
    relation::{
        EVENT_TYPES, counters,
        generation::Of,
        mirror::Mirrored,
        projection,
        verify::{
            Kind, Report,
            pairs::judge_alone,
            pending::Pending,
            suspects::{self, States},
            users::{self, Off},
        },
    },
};

/// What is certainly wrong.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) kind: Kind,
    pub(super) difference: Difference,
    /// Whether events can put it right.
    pub(super) is_repairable: bool,
}

/// What may be wrong only because events wait that the projector has not come to.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pairs: HashSet<Pair>,
    /// Users who are to be counted anew.
    recounts: HashSet<UserId>,
}

impl Waits {
    pub(super) fn of(waiting: &Waiting) -> Self {
        let mut waits = Self::default();
        for (event_type, aggregate) in waiting.iter() {
            if event_type == RecountRequested::EVENT_TYPE {
                waits.recounts.extend(aggregate.parse::<UserId>());
            } else if let Ok(pair) = aggregate.parse::<Pair>() {
                waits.pairs.insert(pair);
                if event_type == Restated::EVENT_TYPE {
                    waits.recounts.extend([pair.from, pair.to]);
                }
            }
        }
        waits
    }
}

/// A look at what differed at the first, in one snapshot.
#[derive(Default)]
pub(super) struct Look {
    /// What differs, with what facts and mirror say.
    pub(super) pairs: States,
    /// Those that said the same at the look before, with all events applied that were committed by then.
    pub(super) wrong_pairs: Vec<Wrong>,
    pub(super) unsure_pairs: BTreeSet<Pair>,
    /// Pairs that will be right when what is parked is applied.
    pub(super) parked: u64,
    /// How the counters differ that do.
    pub(super) offs: BTreeMap<UserId, Off>,
    /// Those that differed just so at the look before.
    pub(super) wrong_users: Vec<Wrong>,
    pub(super) unsure_users: BTreeSet<UserId>,
    /// Users whose counters differ, and are counted anew when what is parked or waits is applied.
    pub(super) waiting: u64,
}

impl Look {
    /// `None` when another generation is live by now, so that this one may be going. Between this look and the `last`
    /// one all that was committed has been applied, but for what `waits`.
    pub(super) async fn again(
        comparison: &Comparison<'_>,
        first: &First,
        last: &Self,
        waits: &Waits,
    ) -> Result<Option<Self>> {
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
        for (pair, states) in states {
            look.judge_pair(pair, states, &pending, waits, &last.pairs, &mut lacking);
        }
        let of_pairs = look.pairs.keys().flat_map(|pair| [pair.from, pair.to]);
        let users: BTreeSet<UserId> = first.suspects.iter().copied().chain(of_pairs).collect();
        let will_recount = |user| pending.will_recount(user) || waits.recounts.contains(&user);
        look.judge_users(&mut conn, comparison, users, will_recount, &last.offs, &lacking).await?;
        tx.rollback().await?;
        Ok(Some(look))
    }

    pub(super) fn is_certain(&self) -> bool {
        self.unsure_pairs.is_empty() && self.unsure_users.is_empty()
    }

    /// Everybody of whom not all is known to be right.
    pub(super) fn doubtful(&self) -> BTreeSet<UserId> {
        self.pairs.keys().flat_map(|pair| [pair.from, pair.to]).chain(self.offs.keys().copied()).collect()
    }

    fn judge_pair(
        &mut self,
        pair: Pair,
        (fact, found): (Option<Mirrored>, Option<Mirrored>),
        pending: &Pending,
        waits: &Waits,
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
        self.pairs.insert(pair, (fact, found));
        if waits.pairs.contains(&pair) {
            self.unsure_pairs.insert(pair);
            return;
        }
        let held = fact.is_some_and(|fact| pending.map_or(fact.active, |pending| pending.held_before));
        lacking.add(pair, fact.is_some(), i64::from(held) - i64::from(found.is_some_and(|found| found.active)));
        if last.get(&pair) == Some(&(fact, found)) {
            let (subject, expected, kind) = (example.subject, example.expected, example.kind);
            let difference = Difference { kind: kind.text().into(), subject, expected, found: example.found };
            self.wrong_pairs.push(Wrong { kind, difference, is_repairable: is_repairable(fact, found) });
        } else {
            self.unsure_pairs.insert(pair);
        }
    }

    async fn judge_users(
        &mut self,
        conn: &mut Conn<'_>,
        comparison: &Comparison<'_>,
        users: BTreeSet<UserId>,
        will_recount: impl Fn(UserId) -> bool,
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
            let Some(off) = Off::of(expected, stored.get(&user).copied()) else { continue };
            self.offs.insert(user, off);
            if will_recount(user) {
                self.waiting += 1;
            } else if moving.contains(&user) || last.get(&user) != Some(&off) {
                self.unsure_users.insert(user);
            } else {
                let (subject, kind) = (user.to_string(), off.kind());
                let (expected, found) = (users::describe(expected), off.found(expected));
                let difference = Difference { kind: kind.text().into(), subject, expected, found };
                self.wrong_users.push(Wrong { kind, difference, is_repairable: true });
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
