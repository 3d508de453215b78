//! Connections to the source, each of which answers in time or counts as broken.

mod address;

use std::time::Duration;

use mysql_async::{BinaryProtocol, Conn, Params, QueryResult, Row, prelude::Queryable};
use tidings_binlog::Flavor;

pub(super) use address::Address;

use crate::{Error, Result, limits::RELAY_QUESTION_TIME_MAX};

/// A connection that asks and is answered.
#[derive(Debug)]
pub(super) struct Connection {
    conn: Conn,
    pub(super) flavor: Flavor,
    pub(super) version: String,
}

impl Connection {
    /// Asks who answers.
    async fn begin(conn: Conn) -> Result<Self> {
        let mut connection = Self { conn, flavor: Flavor::Mysql, version: String::new() };
        let row: Option<(String,)> = connection.first("asking for the version", "SELECT VERSION()", ()).await?;
        connection.version = row.map(|(version,)| version).unwrap_or_default();
        if connection.version.to_ascii_lowercase().contains("mariadb") {
            connection.flavor = Flavor::Mariadb;
        }
        Ok(connection)
    }

    pub(super) async fn run(&mut self, doing: &'static str, sql: &str) -> Result<()> {
        in_time(RELAY_QUESTION_TIME_MAX, self.conn.query_drop(sql)).await?.map_err(failed(doing))
    }

    /// Lets statements lock no more than the rows they change, where the binlog of the server allows that.
    pub(super) async fn lock_little(&mut self) -> Result<()> {
        const DOING: &str = "asking for the binlog's format";
        let sql = "SELECT @@log_bin AND @@binlog_format = 'STATEMENT'";
        let needs_more: Option<(i64,)> = self.first(DOING, sql, ()).await?;
        if needs_more == Some((1,)) {
            return Ok(());
        }
        self.run("preparing to poll an outbox", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await
    }

    /// Runs a statement, and answers how many rows it changed.
    pub(super) async fn execute(&mut self, doing: &'static str, sql: &str) -> Result<u64> {
        self.run(doing, sql).await?;
        Ok(self.conn.affected_rows())
    }

    pub(super) async fn first<T>(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: impl Into<Params> + Send,
    ) -> Result<Option<T>>
    where
        T: mysql_async::prelude::FromRow + Send + 'static,
    {
        let params = params.into();
        in_time(RELAY_QUESTION_TIME_MAX, self.conn.exec_first(sql, params)).await?.map_err(failed(doing))
    }

    pub(super) async fn rows(
        &mut self,
        doing: &'static str,
        sql: &str,
        params: impl Into<Params> + Send,
    ) -> Result<Vec<Row>> {
        let params = params.into();
        in_time(RELAY_QUESTION_TIME_MAX, self.conn.exec(sql, params)).await?.map_err(failed(doing))
    }

    /// The same for statements that servers do not prepare, such as some kinds of SHOW.
    pub(super) async fn text_rows(&mut self, doing: &'static str, sql: &str) -> Result<Vec<Row>> {
        in_time(RELAY_QUESTION_TIME_MAX, self.conn.query(sql)).await?.map_err(failed(doing))
    }

    /// A page of rows, such as [`super::select::page`] asks for.
    pub(super) async fn page(&mut self, sql: &str, params: impl Into<Params> + Send) -> Result<Page<'_>> {
        const DOING: &str = "reading rows of an outbox";
        let params = params.into();
        let asked = in_time(RELAY_QUESTION_TIME_MAX, self.conn.exec_iter(sql, params)).await?;
        asked.map(Page).map_err(failed(DOING))
    }

    /// Gives the bare connection away, for a stream.
    pub(super) fn into_conn(self) -> Conn {
        self.conn
    }
}

/// Rows that are read one by one, so that a page takes no more memory than its largest row.
pub(super) struct Page<'c>(QueryResult<'c, 'static, BinaryProtocol>);

impl Page<'_> {
    pub(super) async fn next(&mut self) -> Result<Option<Row>> {
        let row = in_time(RELAY_QUESTION_TIME_MAX, self.0.next()).await?;
        row.map_err(failed("reading rows of an outbox"))
    }
}

pub(super) fn failed(doing: &'static str) -> impl FnOnce(mysql_async::Error) -> Error {
    move |source| Error::Source { doing, source }
}

/// A frozen server accepts connections and questions, and never answers.
pub(super) async fn in_time<T>(time: Duration, future: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(time, future).await.map_err(|_| Error::SourceSilent { time })
}

/// What servers say to whom they do not let in: to the database, by password, no database, from that host, without a
/// password, with one that has expired, to an account that is locked (MySQL, MariaDB).
const DENIED: [u16; 8] = [1044, 1045, 1049, 1130, 1698, 1862, 3118, 4151];

/// The error of who connects: if he was not let in, and `was_let_in` never before, he needs somebody's decision.
pub(super) fn denied(was_let_in: bool) -> impl FnOnce(Error) -> Error {
    move |error| match server_code(&error) {
        Some(code) if !was_let_in && DENIED.contains(&code) => Error::SourceDenied(Box::new(error)),
        _ => error,
    }
}

/// The number of the server's error, if the server said it.
pub(super) fn server_code(error: &Error) -> Option<u16> {
    match error {
        Error::Source { source: mysql_async::Error::Server(error), .. } => Some(error.code),
        _ => None,
    }
}
