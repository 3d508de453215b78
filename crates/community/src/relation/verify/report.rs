//! What a verification found.

use std::{collections::BTreeMap, fmt};

use tidings_backbone::log::Offset;

use crate::limits::{VERIFY_EXAMPLES_MAX, VERIFY_SUSPECTS_MAX};

/// A kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A fact whose mirror row is not there.
    MirrorMissing,
    /// A mirror row without a fact, or ahead of the applied events.
    MirrorExtra,
    /// A mirror row of what can be no user: of a negative id.
    MirrorOfNobody,
    /// A mirror row that says the follow holds when it does not, or the reverse.
    MirrorStatus,
    /// A mirror row with another version.
    MirrorVersion,
    /// A mirror row with another time.
    MirrorTime,
    /// A pending event of a pair that the fact knows nothing of.
    EventWithoutFact,
    /// A follower list that is longer or shorter than the facts say.
    FollowerListLength,
    /// A user with relations and no stored counters.
    CounterMissing,
    /// Stored counters that cannot be read.
    CounterMalformed,
    /// A slot of the counters that differs from its facts.
    CounterValue,
    /// Counters of what can be no user.
    CounterOfNobody,
}

impl Kind {
    /// What it is, in some words.
    pub fn text(self) -> &'static str {
        match self {
            Self::MirrorMissing => "mirror row missing",
            Self::MirrorExtra => "mirror row without fact",
            Self::MirrorOfNobody => "mirror row of no user",
            Self::MirrorStatus => "mirror status",
            Self::MirrorVersion => "mirror version",
            Self::MirrorTime => "mirror time",
            Self::EventWithoutFact => "pending event without fact",
            Self::FollowerListLength => "follower list length",
            Self::CounterMissing => "counters missing",
            Self::CounterMalformed => "counters malformed",
            Self::CounterValue => "counter value",
            Self::CounterOfNobody => "counters of no user",
        }
    }

    /// Whether it is of counters, and not of the mirror or a list.
    pub(in crate::relation) fn is_of_counters(self) -> bool {
        use Kind::{CounterMalformed, CounterMissing, CounterOfNobody, CounterValue};
        matches!(self, CounterMissing | CounterMalformed | CounterValue | CounterOfNobody)
    }

    /// Every kind, in the order of the report.
    pub const ALL: [Self; 12] = [
        Self::MirrorMissing,
        Self::MirrorExtra,
        Self::MirrorOfNobody,
        Self::MirrorStatus,
        Self::MirrorVersion,
        Self::MirrorTime,
        Self::EventWithoutFact,
        Self::FollowerListLength,
        Self::CounterMissing,
        Self::CounterMalformed,
        Self::CounterValue,
        Self::CounterOfNobody,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What kind it is.
    pub kind: Kind,
    /// The pair (`17:42`) or the user (`17`) it is about.
    pub subject: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What was looked at and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Position of the projector in the snapshot.
    pub position: Offset,
    /// Events committed and not yet applied, as taken back.
    pub pending_events: u64,
    /// Rows of `following` compared.
    pub facts: u64,
    /// Rows of the mirror compared.
    pub mirror_rows: u64,
    /// Users whose counters and list lengths were compared.
    pub users: u64,
    /// Number of differences of each kind found.
    pub differences: BTreeMap<Kind, u64>,
    /// The first differences, at most [`VERIFY_EXAMPLES_MAX`].
    pub examples: Vec<Difference>,
    /// Pairs that changed from look to look, so that nothing can be said of them.
    pub in_flight: u64,
    examples_max: usize,
}

impl Report {
    pub(in crate::relation) fn new(position: Offset, pending_events: u64) -> Self {
        Self {
            position,
            pending_events,
            facts: 0,
            mirror_rows: 0,
            users: 0,
            differences: BTreeMap::new(),
            examples: Vec::new(),
            in_flight: 0,
            examples_max: VERIFY_EXAMPLES_MAX,
        }
    }

    /// The same, showing as many differences as can be looked at again.
    pub(in crate::relation) fn showing_all(self) -> Self {
        Self { examples_max: VERIFY_SUSPECTS_MAX, ..self }
    }

    /// Number of differences of all kinds.
    pub fn total(&self) -> u64 {
        self.differences.values().sum()
    }

    /// Whether there is no difference.
    pub fn is_clean(&self) -> bool {
        self.differences.is_empty()
    }

    pub(super) fn add(
        &mut self,
        kind: Kind,
        subject: impl fmt::Display,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) {
        self.count(kind, 1);
        if self.examples.len() < self.examples_max {
            let (subject, expected, found) = (subject.to_string(), expected.to_string(), found.to_string());
            self.examples.push(Difference { kind, subject, expected, found });
        }
    }

    /// Adds the differences of a pair that was looked at alone.
    pub(super) fn absorb(&mut self, other: Self) {
        other.differences.into_iter().for_each(|(kind, number)| self.count(kind, number));
        let room = self.examples_max.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }

    pub(super) fn count(&mut self, kind: Kind, number: u64) {
        if number > 0 {
            *self.differences.entry(kind).or_default() += number;
        }
    }
}
