//! What an event means for the group of events that it belongs to: a transaction, or a statement of its
//! own.

use std::ops::Range;

use tidings_binlog::{Change, Event, Query, Statement, Xid};

use super::place::Gtid;
use crate::relay::outlet::Mark;

/// A group that has begun and not ended.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) gtid: Gtid,
    /// The same as text, empty where there are none.
    pub(super) name: String,
    /// Rows of outbox tables so far.
    pub(super) rows: u64,
    /// Where in the batch it begins.
    pub(super) mark: Mark,
    /// The outbox of each row in the batch, what happened to it, and the value of its `seq` column.
    pub(super) numbers: Vec<(usize, Change, u64)>,
    /// Why rows of it must be read from the table, if they must.
    pub(super) missing: Option<String>,
    /// It did not fit a batch: what it holds is read again once it is known to have committed.
    pub(super) is_too_large: bool,
    /// Rows that are void because of a rollback to a savepoint.
    pub(super) void: Vec<Range<u64>>,
    /// The savepoints, and how many rows there were before each.
    savepoints: Vec<(Vec<u8>, u64)>,
    /// Whether rows follow until a commit: `BEGIN` was seen, or needs not to be.
    is_transaction: bool,
}

/// What an event does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing that matters here.
    Nothing,
    /// A group begins; whether rows follow until a commit is known, or `BEGIN` tells.
    Begins(Gtid, bool),
    /// The group ends and is committed.
    Commits,
    /// The group ends, and its rows are void.
    RollsBack,
    /// The group ends, and its rows wait for their verdict under this name.
    Prepares(Xid),
    /// The group is the verdict on that name: committed, or not.
    Decides(Xid, bool),
    /// The rows since the savepoint are void.
    TakesBack,
    /// A statement that may have changed rows of which nothing else is told.
    Changes,
    /// The server says that it may have lost events.
    Loses(String),
    /// An event that this version does not know, and that may hold rows.
    Unknown(String),
}

impl Group {
    pub(super) fn new(gtid: Gtid, is_transaction: bool, mark: Mark) -> Self {
        Self {
            name: gtid.to_string(),
            is_transaction,
            gtid,
            rows: 0,
            mark,
            numbers: Vec::new(),
            missing: None,
            is_too_large: false,
            void: Vec::new(),
            savepoints: Vec::new(),
        }
    }
}

/// What an event means, `group` being the one that is open. Rows and table maps are not looked at.
pub(super) fn step(event: &Event<'_>, group: Option<&mut Group>) -> Step {
    match event {
        Event::MariadbGtid(gtid) => Step::Begins(Gtid::Mariadb(gtid.gtid), !gtid.is_standalone),
        Event::MysqlGtid(gtid) => Step::Begins(Gtid::Mysql(gtid.gtid.clone()), false),
        Event::AnonymousGtid => Step::Begins(Gtid::Anonymous, false),
        Event::Commit(_) => Step::Commits,
        Event::XaPrepare(prepare) if prepare.is_one_phase => Step::Commits,
        Event::XaPrepare(prepare) => Step::Prepares(prepare.xid.clone()),
        Event::Query(query) => of_query(query, group),
        Event::Incident { kind, message } => {
            Step::Loses(format!("incident {kind}: {}", String::from_utf8_lossy(message)))
        }
        Event::Unknown(event_type) => Step::Unknown(event_type.to_string()),
        _ => Step::Nothing,
    }
}

fn of_query(query: &Query<'_>, group: Option<&mut Group>) -> Step {
    match query.statement() {
        Statement::Begin | Statement::XaStart(_) => {
            if let Some(group) = group {
                group.is_transaction = true;
            }
            Step::Nothing
        }
        Statement::XaEnd(_) | Statement::XaOther => Step::Nothing,
        Statement::Commit => Step::Commits,
        Statement::Rollback => Step::RollsBack,
        Statement::XaCommit(xid) => Step::Decides(xid, true),
        Statement::XaRollback(xid) => Step::Decides(xid, false),
        Statement::Savepoint => {
            if let Some(group) = group {
                group.savepoints.push((savepoint(&query.sql), group.rows));
            }
            Step::Nothing
        }
        Statement::RollbackToSavepoint => {
            if let Some(group) = group {
                let name = savepoint(&query.sql);
                let since =
                    group.savepoints.iter().rev().find(|(known, _)| *known == name).map_or(0, |(_, rows)| *rows);
                group.void.push(since..group.rows);
            }
            Step::TakesBack
        }
        Statement::Other => of_other(query, group),
    }
}

/// A statement of its own ends its group. `CREATE TABLE ... SELECT` in MySQL says itself that rows follow.
fn of_other(query: &Query<'_>, group: Option<&mut Group>) -> Step {
    if changes_rows(&query.sql) {
        return Step::Changes;
    }
    let Some(group) = group else { return Step::Nothing };
    let ending = b"START TRANSACTION";
    let text = query.sql.trim_ascii_end();
    let begins = text.len().checked_sub(ending.len()).is_some_and(|at| text[at..].eq_ignore_ascii_case(ending));
    group.is_transaction |= begins;
    match group.is_transaction || group.rows > 0 {
        true => Step::Nothing,
        false => Step::Commits,
    }
}

/// The last word of a statement, which is the name of a savepoint.
fn savepoint(sql: &[u8]) -> Vec<u8> {
    let text = sql.trim_ascii().trim_ascii_end();
    let name = text.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    name.iter().filter(|byte| !b"`;".contains(byte)).map(u8::to_ascii_lowercase).collect()
}

/// Whether a statement changes rows, so that it should have come as rows.
fn changes_rows(sql: &[u8]) -> bool {
    // A server writes a function that was called, in a SET say, as a SELECT of it.
    const WORDS: [&[u8]; 10] =
        [b"INSERT", b"REPLACE", b"UPDATE", b"DELETE", b"LOAD", b"WITH", b"CALL", b"EXECUTE", b"SELECT", b"DO"];
    let text = without_preamble(sql);
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    WORDS.iter().any(|word| text[..end].eq_ignore_ascii_case(word))
}

fn without_preamble(sql: &[u8]) -> &[u8] {
    let mut text = sql.trim_ascii_start();
    while let Some(hint) = text.strip_prefix(b"/*") {
        let Some(end) = hint.windows(2).position(|pair| pair == b"*/") else { break };
        text = hint[end + 2..].trim_ascii_start();
    }
    text
}

/// Whether a text has the name as a word of its own.
pub(super) fn names(sql: &[u8], table: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$' || *byte >= 0x80;
    let (name, length) = (table.as_bytes(), table.len());
    (0..sql.len().saturating_sub(length.saturating_sub(1))).any(|at| {
        sql[at..at + length].eq_ignore_ascii_case(name)
            && !at.checked_sub(1).is_some_and(|before| is_word(&sql[before]))
            && !sql.get(at + length).is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_change_rows_are_told_from_those_that_do_not() {
        for sql in [
            "INSERT INTO t VALUES (1)",
            " /* hint */ insert ignore t",
            "LOAD DATA INFILE 'x'",
            "replace t",
            "UPDATE t",
            "SELECT `a`.`f`()",
            "DO f()",
        ] {
            assert!(changes_rows(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT",
            "INSERTION",
            "/* open",
            "",
            "GRANT ALL",
            "DROP TABLE t",
        ] {
            assert!(!changes_rows(sql.as_bytes()), "{sql}");
        }
    }

    #[test]
    fn a_table_is_named_as_a_word_of_its_own() {
        for sql in ["INSERT INTO outbox (a)", "insert into `shop`.`OUTBOX`(a)", "outbox", "x outbox"] {
            assert!(names(sql.as_bytes(), "outbox"), "{sql}");
        }
        for sql in ["INSERT INTO outbox_old VALUES", "INSERT INTO myoutbox", "outbo", ""] {
            assert!(!names(sql.as_bytes(), "outbox"), "{sql}");
        }
    }

    #[test]
    fn names_of_savepoints_do_not_depend_on_quotes_and_case() {
        assert_eq!(savepoint(b"SAVEPOINT `Sp1`"), savepoint(b"ROLLBACK TO SAVEPOINT sp1;"));
        assert_ne!(savepoint(b"SAVEPOINT sp1"), savepoint(b"ROLLBACK TO sp2"));
    }
}
