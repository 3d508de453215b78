//! What a statement does to transactions.

use super::Xid;

/// What a statement does to transactions. Servers write these in a fixed form, which is told apart
/// from what clients write only by being read leniently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `BEGIN`: a transaction of MySQL, or of MariaDB for old replicas.
    Begin,
    /// `COMMIT`: of a transaction in which tables without transactions were changed.
    Commit,
    /// `ROLLBACK`: the rows since the begin are void, but for tables without transactions.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint,
    /// `ROLLBACK TO name`: the rows since that savepoint are void.
    RollbackToSavepoint,
    /// `XA START`: rows follow that are prepared under the name.
    XaStart(Xid),
    /// `XA END`: those were the rows.
    XaEnd(Xid),
    /// `XA COMMIT`: the rows prepared under the name are committed.
    XaCommit(Xid),
    /// `XA ROLLBACK`: the rows prepared under the name are void.
    XaRollback(Xid),
    /// Begins with `XA`, but is none of the known.
    XaOther,
    /// Anything else: DDL, or changes in statement format.
    Other,
}

/// The longest text that is looked at: `XA ROLLBACK` with the longest name, and some.
const BYTES_MAX: usize = 400;

impl Statement {
    pub(super) fn of(sql: &[u8]) -> Self {
        let trimmed = sql.trim_ascii();
        let Some(Ok(text)) = (trimmed.len() <= BYTES_MAX).then(|| std::str::from_utf8(trimmed)) else {
            return Self::Other;
        };
        let (word, rest) = split_word(text.trim_end_matches(';'));
        let is = |expected: &str| word.eq_ignore_ascii_case(expected);
        match rest {
            "" if is("BEGIN") => Self::Begin,
            "" if is("COMMIT") => Self::Commit,
            "" if is("ROLLBACK") => Self::Rollback,
            _ if is("START") && rest.eq_ignore_ascii_case("TRANSACTION") => Self::Begin,
            _ if is("SAVEPOINT") => Self::Savepoint,
            _ if is("ROLLBACK") && split_word(rest).0.eq_ignore_ascii_case("TO") => Self::RollbackToSavepoint,
            _ if is("XA") => Self::xa(rest),
            _ => Self::Other,
        }
    }

    fn xa(rest: &str) -> Self {
        let (word, name) = split_word(rest);
        let is = |expected: &str| word.eq_ignore_ascii_case(expected);
        let Some(xid) = Xid::parse(one_phase(name)) else {
            return Self::XaOther;
        };
        match () {
            () if is("START") || is("BEGIN") => Self::XaStart(xid),
            () if is("END") => Self::XaEnd(xid),
            () if is("COMMIT") => Self::XaCommit(xid),
            () if is("ROLLBACK") => Self::XaRollback(xid),
            () => Self::XaOther,
        }
    }
}

/// The name before `ONE PHASE`, which says that the rows were not prepared before.
fn one_phase(name: &str) -> &str {
    const ENDING: &str = "ONE PHASE";
    let start = name.len().saturating_sub(ENDING.len());
    match name.get(start..) {
        Some(ending) if ending.eq_ignore_ascii_case(ENDING) => name[..start].trim_end(),
        _ => name,
    }
}

/// The first word, and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| char.is_ascii_whitespace()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start())
}
