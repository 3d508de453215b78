//! What differed at one look and may be only on its way: looked at again, alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use tidings_backbone::{Conn, Db, Result, db::Value, log::Offset};

use super::{Report, pairs, users};
use crate::{Pair, UserId, limits::VERIFY_SUSPECTS_MAX};

/// What a difference is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Pair(Pair),
    User(UserId),
}

/// The pairs and users of the differences of a report: at most [`VERIFY_SUSPECTS_MAX`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspects(BTreeSet<Subject>);

impl Suspects {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, subject: Subject) {
        if self.0.len() < VERIFY_SUSPECTS_MAX {
            self.0.insert(subject);
        }
    }

    fn pairs(&self) -> Vec<Pair> {
        let pair = |subject: &Subject| if let Subject::Pair(pair) = subject { Some(*pair) } else { None };
        self.0.iter().filter_map(pair).collect()
    }

    fn users(&self) -> Vec<UserId> {
        let user = |subject: &Subject| if let Subject::User(user) = subject { Some(*user) } else { None };
        self.0.iter().filter_map(user).collect()
    }
}

/// Compares the suspects of an earlier report alone, in one snapshot. What still differs although
/// everything that was on its way at the earlier look has been applied since, is wrong.
///
/// # Errors
/// When the database fails. Differences are not errors: they are in the report.
pub async fn compare_again(db: &Db, suspects: &Suspects) -> Result<Report> {
    let mut tx = db.read().await?;
    let mut conn = tx.conn();
    let mut report = Report::new(Offset(0), 0);
    compare_pairs(&mut conn, &suspects.pairs(), &mut report).await?;
    users::compare_some(&mut conn, &suspects.users(), &mut report).await?;
    tx.rollback().await?;
    Ok(report)
}

async fn compare_pairs(conn: &mut Conn<'_>, suspects: &[Pair], report: &mut Report) -> Result<()> {
    let rows: Vec<[Value; 2]> = suspects.iter().map(|pair| [pair.from.into(), pair.to.into()]).collect();
    let sql = |input: &str| {
        format!(
            "WITH pair (from_id, to_id) AS ({input}) \
             SELECT pair.from_id, pair.to_id, f.rel_status, f.version, f.created_at, f.updated_at, \
                    m.rel_status, m.version, m.created_at, m.updated_at \
             FROM pair LEFT JOIN following f ON f.from_user_id = pair.from_id AND f.to_user_id = pair.to_id \
             LEFT JOIN follower m ON m.to_user_id = pair.to_id AND m.from_user_id = pair.from_id"
        )
    };
    let mut states = BTreeMap::new();
    for row in conn.fetch_rows("comparing pairs again", sql, rows).await? {
        let (pair, fact, found) = pairs::read_both(&row)?;
        states.insert(pair, (fact, found));
    }
    for (pair, (fact, found)) in states {
        report.facts += u64::from(fact.is_some());
        report.mirror_rows += u64::from(found.is_some());
        pairs::compare_row(pair, fact, found, false, report);
    }
    Ok(())
}

impl From<Pair> for Subject {
    fn from(pair: Pair) -> Self {
        Self::Pair(pair)
    }
}

impl From<UserId> for Subject {
    fn from(user: UserId) -> Self {
        Self::User(user)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair(pair) => pair.fmt(f),
            Self::User(user) => user.fmt(f),
        }
    }
}
