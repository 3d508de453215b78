//! The look at everything.

use std::collections::BTreeSet;

use tidings_backbone::{
    Result,
    log::Offset,
    reconcile::{Comparison, Difference},
};

use crate::{
    Pair, UserId,
    relation::{
        EVENT_TYPES,
        verify::{
            Kind, Report, Suspects, counters, pairs,
            pending::Pending,
            shards::{Sums, sums},
        },
    },
};

/// What the first look found. What is told of is looked at again, so each part of it is of a snapshot of its own: one
/// over all would be open for minutes where there are many rows, and the database keeps all that changes meanwhile.
pub(super) struct First {
    pub(super) sums: Sums,
    /// Pairs whose mirror row is not the image of the fact.
    pub(super) pairs: BTreeSet<Pair>,
    /// More of them, that are not looked at again.
    pub(super) pairs_beyond: u64,
    /// Users whose counters are not what the mirror counts.
    pub(super) suspects: BTreeSet<UserId>,
    /// More of them.
    pub(super) suspects_beyond: u64,
    /// Users whose counters were compared.
    pub(super) users: u64,
    /// What is no user's, in the mirror and among the counters: nothing on its way makes it right.
    pub(super) nobodies: Vec<(Kind, Difference)>,
    /// More such rows of the mirror.
    pub(super) nobodies_beyond: u64,
}

impl First {
    pub(super) async fn look(comparison: &Comparison<'_>) -> Result<Self> {
        let mut tx = comparison.db.read().await?;
        let sums = sums(&mut tx.conn(), comparison.generation).await?;
        tx.rollback().await?;
        let (of_pairs, suspects) = Self::look_at_pairs(comparison, &sums).await?;
        // Those that are to be recounted are told as lagging at the next look.
        let mut of_users = Report::new(Offset(0), 0).showing_all();
        let mut tx = comparison.db.read().await?;
        let nothing = Pending::default();
        counters::compare_with_mirror(&mut tx.conn(), comparison.generation, &nothing, &mut of_users).await?;
        tx.rollback().await?;
        let pairs = suspects.pairs();
        let users: BTreeSet<UserId> =
            of_users.examples.iter().filter_map(|example| example.subject.parse().ok()).collect();
        let number = |report: &Report, kind: Kind| report.differences.get(&kind).copied().unwrap_or_default();
        let nobodies_of_users = number(&of_users, Kind::CounterOfNobody);
        Ok(Self {
            sums,
            pairs_beyond: suspects.number() - pairs.len() as u64,
            pairs,
            suspects_beyond: (of_users.total() - nobodies_of_users).saturating_sub(users.len() as u64),
            suspects: users,
            users: of_users.users,
            nobodies_beyond: number(&of_pairs, Kind::MirrorOfNobody) - of_pairs.examples.len() as u64,
            nobodies: nobodies(of_pairs).chain(nobodies(of_users)).collect(),
        })
    }

    async fn look_at_pairs(comparison: &Comparison<'_>, sums: &Sums) -> Result<(Report, Suspects)> {
        let (mut report, mut suspects) = (Report::new(Offset(0), 0).showing_all(), Suspects::default());
        if sums.differing.number() > 0 {
            let mut tx = comparison.db.read().await?;
            let mut conn = tx.conn();
            let parts = comparison.log.parts(EVENT_TYPES);
            let parked = Pending::parked(&mut conn, comparison.identity, &parts).await?;
            let (generation, differing) = (comparison.generation, &sums.differing);
            pairs::compare(&mut conn, generation, differing, &parked, &mut report, Some(&mut suspects)).await?;
            tx.rollback().await?;
        }
        Ok((report, suspects))
    }

    pub(super) fn is_clean(&self) -> bool {
        self.pairs.is_empty() && self.suspects.is_empty()
    }

    /// Everybody who may be concerned.
    pub(super) fn all_users(&self) -> BTreeSet<UserId> {
        self.pairs.iter().flat_map(|pair| [pair.from, pair.to]).chain(self.suspects.iter().copied()).collect()
    }
}

fn nobodies(report: Report) -> impl Iterator<Item = (Kind, Difference)> {
    let of_nobody = |kind: Kind| matches!(kind, Kind::MirrorOfNobody | Kind::CounterOfNobody);
    report.examples.into_iter().filter(move |example| of_nobody(example.kind)).map(|example| {
        let (kind, subject, expected, found) = (example.kind, example.subject, example.expected, example.found);
        (kind, Difference { kind: kind.text().into(), subject, expected, found })
    })
}
