//! Connections, on whatever engine: here the text of a statement meets its arguments.

use std::borrow::Cow;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, MySqlConnection, Sqlite, SqliteConnection, sqlite::SqliteArguments};

use super::{Engine, Row, Value, dialect, mysql::Session};
use crate::{
    Error, Result,
    limits::{INPUT_ROWS_MAX, STATEMENT_ROWS_MAX},
};

/// A connection inside a transaction, whoever began it: `Conn::from(&mut *sqlx_transaction)` lets
/// an application emit events in a transaction of its own.
#[derive(Debug)]
pub enum Conn<'c> {
    /// A connection to SQLite.
    Sqlite(&'c mut SqliteConnection),
    /// A connection to MySQL or MariaDB.
    #[doc(hidden)]
    Mysql(Session<'c>),
}

impl<'c> From<&'c mut SqliteConnection> for Conn<'c> {
    fn from(connection: &'c mut SqliteConnection) -> Self {
        Self::Sqlite(connection)
    }
}

impl<'c> From<&'c mut MySqlConnection> for Conn<'c> {
    fn from(connection: &'c mut MySqlConnection) -> Self {
        Self::Mysql(Session::foreign(connection))
    }
}

impl Conn<'_> {
    /// The engine behind the connection, for the few texts that differ.
    pub fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Mysql(session) => session.engine(),
        }
    }

    /// The same connection for a shorter time.
    pub fn reborrow(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(connection) => Conn::Sqlite(connection),
            Self::Mysql(session) => Conn::Mysql(session.reborrow()),
        }
    }

    /// Runs one statement; answers the number of rows it changed. `doing` is a participle for
    /// the error, such as "storing a bookmark". Of an upsert the engines count differently: a row
    /// that was there counts twice on MySQL and MariaDB.
    pub async fn execute(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
    ) -> Result<u64> {
        match self {
            Self::Sqlite(connection) => query(sql.into(), args)
                .execute(&mut **connection)
                .await
                .map(|done| done.rows_affected())
                .map_err(Error::database(doing)),
            Self::Mysql(session) => session.execute(doing, sql.into(), args).await,
        }
    }

    /// Runs one query; answers all its rows, so the query itself must bound them.
    pub async fn fetch(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
    ) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(connection) => query(sql.into(), args)
                .fetch_all(&mut **connection)
                .await
                .map(|rows| rows.into_iter().map(Row::Sqlite).collect())
                .map_err(Error::database(doing)),
            Self::Mysql(session) => session.fetch(doing, sql.into(), args).await,
        }
    }

    /// Runs one query and reads its rows while `wanted` says yes: for results bounded by more than
    /// their number.
    pub(crate) async fn fetch_while(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
        mut wanted: impl FnMut(&Row) -> Result<bool>,
    ) -> Result<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut rows = query(sql.into(), args).fetch(&mut **connection);
                while let Some(row) = rows.try_next().await.map_err(Error::database(doing))? {
                    if !wanted(&Row::Sqlite(row))? {
                        break;
                    }
                }
                Ok(())
            }
            Self::Mysql(session) => session.fetch_while(doing, sql.into(), args, wanted).await,
        }
    }

    /// Runs one query; answers its first row, if any.
    pub async fn fetch_optional(
        &mut self,
        doing: &'static str,
        sql: impl Into<Cow<'static, str>>,
        args: Vec<Value>,
    ) -> Result<Option<Row>> {
        match self {
            Self::Sqlite(connection) => query(sql.into(), args)
                .fetch_optional(&mut **connection)
                .await
                .map(|row| row.map(Row::Sqlite))
                .map_err(Error::database(doing)),
            Self::Mysql(session) => Ok(session.fetch(doing, sql.into(), args).await?.into_iter().next()),
        }
    }

    /// Runs one statement for many rows, in as few round trips as the limits allow.
    ///
    /// `head` ends before the rows (`INSERT INTO t (a, b) VALUES`), `tail` begins after them
    /// (`ON CONFLICT ...`, or empty). Answers the number of rows changed.
    pub async fn execute_rows<const COLUMNS: usize>(
        &mut self,
        doing: &'static str,
        head: &str,
        rows: Vec<[Value; COLUMNS]>,
        tail: &str,
    ) -> Result<u64> {
        let mut changed = 0;
        let mut rows = rows.into_iter();
        let rows_max = self.statement_rows_max(rows.as_slice());
        for count in dialect::chunks(rows.len(), rows_max) {
            let args = rows.by_ref().take(count).flatten().collect();
            let sql = format!("{head} {} {tail}", dialect::row_placeholders(count, COLUMNS));
            changed += self.execute(doing, sql, args).await?;
        }
        Ok(changed)
    }

    /// As [`Conn::execute_rows`], for rows of numbers and NULLs alone: servers take any number of them as one input, so
    /// that no further trip is made while the rows of the one before are locked. The statement must be right when it
    /// selects its rows: an INSERT that counts an AUTO_INCREMENT on would lock the table.
    pub async fn execute_numbers<const COLUMNS: usize>(
        &mut self,
        doing: &'static str,
        head: &str,
        rows: Vec<[Value; COLUMNS]>,
        tail: &str,
    ) -> Result<u64> {
        let into = match (&self, head.strip_suffix("VALUES")) {
            (Self::Mysql(_), Some(into)) if rows.len() > dialect::EXACT_ROWS_MAX => into,
            _ => return self.execute_rows(doing, head, rows, tail).await,
        };
        let mut changed = 0;
        for part in rows.chunks(self.input_rows_max(&rows)) {
            let (input, args) = dialect::input_json(part)?;
            changed += self.execute(doing, format!("{into} {input} {tail}"), args).await?;
        }
        Ok(changed)
    }

    /// Runs one query for many rows of input; answers the rows of all its round trips together.
    ///
    /// `sql` is given the text of the input rows, a query to stand in an IN or WITH clause, for each
    /// trip. A row of the input may be asked for several times, so the query must not count them.
    /// All rows hold values of the same types in the same columns; texts have at most 1,024
    /// characters.
    pub async fn fetch_rows<const COLUMNS: usize>(
        &mut self,
        doing: &'static str,
        sql: impl Fn(&str) -> String,
        rows: Vec<[Value; COLUMNS]>,
    ) -> Result<Vec<Row>> {
        self.fetch_rows_and(doing, sql, rows, &[]).await
    }

    /// As [`Conn::fetch_rows`], with arguments of placeholders that come after the input rows in the text.
    pub async fn fetch_rows_and<const COLUMNS: usize>(
        &mut self,
        doing: &'static str,
        sql: impl Fn(&str) -> String,
        rows: Vec<[Value; COLUMNS]>,
        rest: &[Value],
    ) -> Result<Vec<Row>> {
        let mut found = Vec::with_capacity(rows.len());
        for part in rows.chunks(self.input_rows_max(&rows)) {
            let (input, mut args) = match self {
                Self::Sqlite(_) => dialect::input_values(part),
                Self::Mysql(_) => dialect::input_json(part)?,
            };
            args.extend_from_slice(rest);
            found.append(&mut self.fetch(doing, sql(&input), args).await?);
        }
        Ok(found)
    }

    fn statement_rows_max<const COLUMNS: usize>(&self, rows: &[[Value; COLUMNS]]) -> usize {
        match self {
            Self::Sqlite(_) => STATEMENT_ROWS_MAX,
            Self::Mysql(session) => dialect::rows_within(session.statement_bytes_max(), rows),
        }
    }

    /// Rows of one input: as JSON they are one argument, of as many bytes as the connection takes at once.
    fn input_rows_max<const COLUMNS: usize>(&self, rows: &[[Value; COLUMNS]]) -> usize {
        match self {
            Self::Mysql(session) if session.statement_bytes_max() == usize::MAX => INPUT_ROWS_MAX,
            _ => self.statement_rows_max(rows),
        }
    }

    /// Marks a point inside the transaction to which [`Conn::rollback_to_savepoint`] can return. It
    /// is the runtime's own: returning to it undoes whatever savepoints were set after it.
    pub(crate) async fn savepoint(&mut self) -> Result<()> {
        self.execute("setting a savepoint", "SAVEPOINT tidings_apply", Vec::new()).await.map(drop)
    }

    /// Undoes what was done since the last [`Conn::savepoint`] and forgets it.
    pub(crate) async fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.execute("returning to a savepoint", "ROLLBACK TO SAVEPOINT tidings_apply", Vec::new()).await?;
        self.release_savepoint().await
    }

    /// Keeps what was done since the last [`Conn::savepoint`] and forgets it.
    pub(crate) async fn release_savepoint(&mut self) -> Result<()> {
        self.execute("releasing a savepoint", "RELEASE SAVEPOINT tidings_apply", Vec::new()).await.map(drop)
    }
}

/// Values travel as arguments only; that no value is written into a text is up to its author.
fn query(sql: Cow<'static, str>, args: Vec<Value>) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
    #[cfg(test)]
    SAID.with_borrow_mut(|said| said.push(sql.clone().into_owned()));
    args.into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Int(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
    })
}

#[cfg(test)]
thread_local! {
    /// The statements of this thread, for tests of how they are run.
    pub(crate) static SAID: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}
