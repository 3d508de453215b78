//! How transactions begin and end, XA, savepoints, statement format.

use tidings_binlog::{Decoder, Event, EventType, Flavor, Statement, Xid};

use crate::{
    samples::{SERVERS, each, find},
    streams::header,
};

/// One word for each event that matters to transactions.
fn story(name: &str) -> Vec<String> {
    find(name, |event| {
        Some(match event {
            Event::MysqlGtid(_) => "gtid".to_owned(),
            Event::MariadbGtid(gtid) => {
                let prepares = gtid.prepares.as_ref().map(|xid| format!(" prepares {xid}"));
                let completes = gtid.completes.as_ref().map(|xid| format!(" completes {xid}"));
                let standalone = if gtid.is_standalone { " standalone" } else { "" };
                format!("gtid{standalone}{}{}", prepares.unwrap_or_default(), completes.unwrap_or_default())
            }
            Event::Query(query) => match query.statement() {
                Statement::Other => format!("query {}", query.text()),
                Statement::XaStart(xid) => format!("start {xid}"),
                Statement::XaEnd(xid) => format!("end {xid}"),
                Statement::XaCommit(xid) => format!("commit {xid}"),
                Statement::XaRollback(xid) => format!("rollback {xid}"),
                other => format!("{other:?}"),
            },
            Event::XaPrepare(prepare) => {
                format!("prepare {}{}", prepare.xid, if prepare.is_one_phase { " in one phase" } else { "" })
            }
            Event::Rows(rows) => format!("rows {}", rows.reader().count()),
            Event::Commit(_) => "commit".to_owned(),
            Event::Intvar { kind, value } => format!("intvar {kind} {value}"),
            Event::Rand { .. } => "rand".to_owned(),
            Event::UserVar { name } => format!("@{}", String::from_utf8_lossy(name)),
            _ => return None,
        })
    })
}

const GLOBAL: &str = "X'676c6f62616c',X'6272616e6368',7";

/// The events of each line, names of XA transactions written in full.
fn expected(lines: &[&str]) -> Vec<String> {
    let all = lines.join("; ");
    let all = all.replace("GLOBAL", GLOBAL).replace("UNDONE", "X'756e646f6e65',X'',1");
    all.replace("ONCE", "X'6f6e6365',X'',1").split("; ").map(str::to_owned).collect()
}

#[test]
fn mysql_tells_xa_savepoints_and_statements() {
    let expected = expected(&[
        "gtid; start GLOBAL; rows 1; end GLOBAL; prepare GLOBAL",
        "gtid; commit GLOBAL",
        "gtid; start UNDONE; rows 1; end UNDONE; prepare UNDONE",
        "gtid; rollback UNDONE",
        "gtid; start ONCE; rows 1; end ONCE; prepare ONCE in one phase",
        "gtid; Begin; rows 1; Savepoint; rows 1; commit",
        "gtid; Begin; intvar 2 7; @name; query INSERT INTO t (a) VALUES (@name); commit",
        "gtid; Begin; intvar 2 8; rand; query INSERT INTO t (a) VALUES (LEFT(RAND(), 3)); commit",
    ]);
    assert_eq!(story("mysql/transactions"), expected);
}

#[test]
fn mariadb_tells_xa_savepoints_and_statements() {
    let expected = expected(&[
        "gtid prepares GLOBAL; rows 1; end GLOBAL; prepare GLOBAL",
        "gtid standalone completes GLOBAL; commit GLOBAL",
        "gtid prepares UNDONE; rows 1; end UNDONE; prepare UNDONE",
        "gtid standalone completes UNDONE; rollback UNDONE",
        // One phase is a plain transaction here.
        "gtid; rows 1; commit",
        "gtid; rows 1; Savepoint; rows 1; commit",
        "gtid; intvar 2 7; @name; query INSERT INTO t (a) VALUES (@name); commit",
        "gtid; intvar 2 8; rand; query INSERT INTO t (a) VALUES (LEFT(RAND(), 3)); commit",
    ]);
    assert_eq!(story("mariadb/transactions"), expected);
}

#[test]
fn a_transaction_of_tables_without_transactions_ends_with_a_statement() {
    let story = story("mariadb/gtids");
    assert_eq!(story[story.len() - 3..], ["gtid", "rows 1", "Commit"]);
}

#[test]
fn the_statement_behind_rows_is_told_where_the_server_writes_it() {
    for name in ["mariadb/gtids_2", "mysql/gtids_2"] {
        let texts = find(name, |event| match event {
            Event::RowsQuery(sql) => Some(String::from_utf8_lossy(sql).into_owned()),
            _ => None,
        });
        assert_eq!(texts.len(), 1, "{name}");
        assert!(texts[0].starts_with("INSERT INTO t VALUES ("), "{name}: {texts:?}");
    }
}

#[test]
fn queries_tell_their_database_and_error() {
    each("mysql/transactions", |_, event| {
        if let Event::Query(query) = event {
            assert_eq!((query.schema, query.error_code, query.loads_file), ("tidings", 0, false));
            assert!(query.thread_id > 0);
        }
    });
}

#[test]
fn an_xid_is_written_as_xa_commit_takes_it() {
    let xid = Xid { format_id: 7, gtrid: (*b"global").into(), bqual: (*b"branch").into() };
    assert_eq!(xid.to_string(), GLOBAL);
}

#[test]
fn a_file_that_is_loaded_in_statement_format_is_a_statement_that_says_so() {
    for server in SERVERS {
        let queries = find(&format!("{server}/load_data"), |event| match event {
            Event::Query(query) if query.loads_file => Some((query.schema.to_owned(), query.text().into_owned())),
            _ => None,
        });
        let [(schema, text)] = &queries[..] else {
            panic!("{server}: {queries:?}");
        };
        assert_eq!(schema, "tidings");
        assert!(text.starts_with("LOAD DATA LOCAL INFILE 'rows.txt' IGNORE INTO TABLE `t`"), "{server}: {text}");
    }
}

/// What the decoder says of a statement.
fn statement(sql: &str) -> Statement {
    // No connection, no time, no database, no error, no variables.
    let body = [&[0; 13][..], b"\0", sql.as_bytes()].concat();
    let mut decoder = Decoder::new(Flavor::Mysql);
    match decoder.decode_inner(&header(EventType::QUERY, body.len()), &body).unwrap() {
        Event::Query(query) => query.statement(),
        other => panic!("no query: {other:?}"),
    }
}

#[test]
fn statements_are_told_apart_however_they_are_written() {
    for begin in ["BEGIN", "begin", " BEGIN ;", "START TRANSACTION", "start  transaction"] {
        assert_eq!(statement(begin), Statement::Begin, "{begin}");
    }
    assert_eq!(statement("COMMIT"), Statement::Commit);
    assert_eq!(statement("ROLLBACK"), Statement::Rollback);
    for back in ["ROLLBACK TO `a`", "rollback to a"] {
        assert_eq!(statement(back), Statement::RollbackToSavepoint, "{back}");
    }
    let xid = Xid { format_id: 1, gtrid: (*b"\0\xff").into(), bqual: (*b"").into() };
    for commit in ["XA COMMIT X'00ff',X'',1", "xa  commit x'00FF', x'', 1", "XA COMMIT X'00ff',X'',1 ONE PHASE"] {
        assert_eq!(statement(commit), Statement::XaCommit(xid.clone()), "{commit}");
    }
    for other in ["XA RECOVER", "XA COMMIT 'name'", "XA COMMIT X'0',X'',1", "XA COMMIT X'00',X'',1,1", "XA"] {
        assert_eq!(statement(other), Statement::XaOther, "{other}");
    }
    let long = format!("INSERT INTO t VALUES ('{}')", "BEGIN".repeat(200));
    for other in ["", "BEGINNING", "INSERT INTO t VALUES ('BEGIN')", "COMMITTED", "é", &long] {
        assert_eq!(statement(other), Statement::Other, "{other}");
    }
}
