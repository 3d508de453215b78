//! One connection to MySQL or MariaDB while statements run on it.

use std::{borrow::Cow, sync::Arc};

use futures::TryStreamExt;
use sqlx::{
    AssertSqlSafe, MySql, MySqlConnection,
    mysql::{MySqlArguments, MySqlRow},
};

use super::pool::{Health, within};
use crate::{
    Error, Result,
    db::{Engine, Row, Value},
    error::mysql,
    limits::{MYSQL_ENCRYPTED_STATEMENT_BYTES_MAX, MYSQL_STATEMENT_TIME_MAX},
};

/// A connection inside a transaction.
#[derive(Debug)]
pub struct Session<'c> {
    connection: &'c mut MySqlConnection,
    kind: Kind,
    watch: Option<Watch<'c>>,
}

/// What all connections to one server have in common.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Kind {
    pub(super) engine: Engine,
    pub(super) is_encrypted: bool,
}

/// What the pool wants to know of a connection of its own.
#[derive(Debug)]
struct Watch<'c> {
    in_flight: &'c mut bool,
    health: &'c Arc<Health>,
}

impl<'c> Session<'c> {
    /// A connection of an application's own. Its texts are the same for both engines.
    pub(in crate::db) fn foreign(connection: &'c mut MySqlConnection) -> Self {
        Self { connection, kind: Kind { engine: Engine::Mysql, is_encrypted: true }, watch: None }
    }

    pub(super) fn watched(
        connection: &'c mut MySqlConnection,
        kind: Kind,
        in_flight: &'c mut bool,
        health: &'c Arc<Health>,
    ) -> Self {
        Self { connection, kind, watch: Some(Watch { in_flight, health }) }
    }

    pub(in crate::db) fn engine(&self) -> Engine {
        self.kind.engine
    }

    /// Bytes of arguments that one statement should have at most. What is encrypted leaves in pieces of
    /// 16 KiB, and the driver's sockets do not send a second small piece before the first is
    /// acknowledged, which servers take 40 ms to do: so a statement is to be one piece.
    pub(in crate::db) fn statement_bytes_max(&self) -> usize {
        if self.kind.is_encrypted { MYSQL_ENCRYPTED_STATEMENT_BYTES_MAX } else { usize::MAX }
    }

    pub(in crate::db) fn reborrow(&mut self) -> Session<'_> {
        let watch = self.watch.as_mut().map(|watch| Watch { in_flight: watch.in_flight, health: watch.health });
        Session { connection: self.connection, kind: self.kind, watch }
    }

    /// Says what cannot be prepared, such as the beginning or end of a transaction.
    pub(super) async fn say(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        let said = within(MYSQL_STATEMENT_TIME_MAX, sqlx::raw_sql(sql).execute(self.depart()));
        let said = said.await.and_then(|said| said.map(drop));
        self.arrive(said)
    }

    pub(in crate::db) async fn execute(
        &mut self,
        doing: &'static str,
        sql: Cow<'static, str>,
        args: Vec<Value>,
    ) -> Result<u64> {
        let connection = self.depart();
        let executing = async {
            match args.is_empty() {
                // MySQL prepares neither savepoints nor triggers.
                true => sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await,
                false => query(sql, args).execute(connection).await,
            }
        };
        let done = within(MYSQL_STATEMENT_TIME_MAX, executing).await;
        let done = done.and_then(|done| done.map(|done| done.rows_affected()));
        self.arrive(done).map_err(Error::database(doing))
    }

    pub(in crate::db) async fn fetch(
        &mut self,
        doing: &'static str,
        sql: Cow<'static, str>,
        args: Vec<Value>,
    ) -> Result<Vec<Row>> {
        let rows = within(MYSQL_STATEMENT_TIME_MAX, query(sql, args).fetch_all(self.depart()));
        let rows = rows.await.and_then(|rows| rows);
        self.arrive(rows).map(|rows| rows.into_iter().map(Row::Mysql).collect()).map_err(Error::database(doing))
    }

    pub(in crate::db) async fn fetch_while(
        &mut self,
        doing: &'static str,
        sql: Cow<'static, str>,
        args: Vec<Value>,
        mut wanted: impl FnMut(&Row) -> Result<bool>,
    ) -> Result<()> {
        let mut ended = Ok(());
        let reading = async {
            let mut rows = query(sql, args).fetch(self.depart());
            while let Some(row) = rows.try_next().await? {
                match wanted(&Row::Mysql(row)) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        ended = Err(error);
                        break;
                    }
                }
            }
            Ok(())
        };
        let read = within(MYSQL_STATEMENT_TIME_MAX, reading).await.and_then(|read| read);
        // Rows that nobody wanted are passed over by the driver before the next statement.
        self.arrive(read).map_err(Error::database(doing))?;
        ended
    }

    /// A statement leaves; until its answer has arrived, the connection is fit for nothing else.
    fn depart(&mut self) -> &mut MySqlConnection {
        if let Some(watch) = &mut self.watch {
            *watch.in_flight = true;
        }
        self.connection
    }

    fn arrive<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        let Some(watch) = &mut self.watch else { return answer };
        let is_broken = answer.as_ref().is_err_and(|error| !matches!(error, sqlx::Error::Database(_)));
        *watch.in_flight = is_broken;
        if answer.as_ref().is_err_and(is_lost) {
            *watch.in_flight = true;
            watch.health.fail();
        }
        answer
    }
}

/// Whether an error says that the server is gone or no longer the one to write to, so that every
/// other connection to it is as good as lost.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => mysql::code(&**error).is_some_and(mysql::is_lost),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_) => true,
        _ => false,
    }
}

/// Values travel as arguments only; that no value is written into a text is up to its author.
fn query(sql: Cow<'static, str>, args: Vec<Value>) -> sqlx::query::Query<'static, MySql, MySqlArguments> {
    args.into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Int(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
    })
}

/// A number of a result, whatever whole type its column has. A DECIMAL, such as a SUM, is refused:
/// its digits would be taken for a number's bytes.
pub(in crate::db) fn int(row: &MySqlRow, column: usize) -> Result<Option<i64>, sqlx::Error> {
    use sqlx::Row as _;
    row.try_get(column)
}
