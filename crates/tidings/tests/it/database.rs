//! A hand in the fact database, for damage that no request could do.

use sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection, SqliteConnection, mysql::MySqlConnectOptions,
    sqlite::SqliteConnectOptions,
};
use tidings_testkit::{World, database::end_connections, world::Database};

/// A connection beside those of the server, which may run.
pub(crate) enum Hand {
    Sqlite(SqliteConnection),
    Mysql(MySqlConnection),
}

impl Hand {
    pub(crate) async fn on_server(url: &str) -> Self {
        Self::Mysql(MySqlConnection::connect(url).await.unwrap())
    }

    pub(crate) async fn in_database_of(world: &World) -> Self {
        match world.capabilities().database {
            Database::Sqlite(file) => {
                let patience = std::time::Duration::from_secs(60);
                let options = SqliteConnectOptions::new().filename(file).busy_timeout(patience);
                Self::Sqlite(SqliteConnection::connect_with(&options).await.unwrap())
            }
            Database::Mysql(url) => {
                // Statements are written as SQLite takes them too: `||` puts texts together.
                let options: MySqlConnectOptions = url.parse().unwrap();
                Self::Mysql(MySqlConnection::connect_with(&options.pipes_as_concat(true)).await.unwrap())
            }
        }
    }

    /// Runs a statement, and answers how many rows it changed.
    pub(crate) async fn run(&mut self, sql: impl Into<String>) -> u64 {
        let sql = AssertSqlSafe(sql.into());
        match self {
            Self::Sqlite(connection) => sqlx::raw_sql(sql).execute(connection).await.unwrap().rows_affected(),
            Self::Mysql(connection) => sqlx::raw_sql(sql).execute(connection).await.unwrap().rows_affected(),
        }
    }

    /// Sixteen bytes that no other row has, as an expression.
    pub(crate) fn random_id(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "randomblob(16)",
            Self::Mysql(_) => "RANDOM_BYTES(16)",
        }
    }

    /// Lets the database refuse new rows of a table for which a condition on `NEW` holds.
    pub(crate) async fn refuse(&mut self, table: &str, condition: &str) {
        let trigger = format!("CREATE TRIGGER refuse BEFORE INSERT ON {table}");
        self.run(match self {
            Self::Sqlite(_) => {
                format!("{trigger} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'poison, out of order'); END")
            }
            Self::Mysql(_) => format!(
                "{trigger} FOR EACH ROW BEGIN IF {condition} THEN \
                 SIGNAL SQLSTATE '23000' SET MESSAGE_TEXT = 'poison, out of order', MYSQL_ERRNO = 1048; END IF; END"
            ),
        })
        .await;
    }

    /// Ends what [`Hand::refuse`] began.
    pub(crate) async fn admit(&mut self) {
        self.run("DROP TRIGGER refuse").await;
    }

    /// Ends the connection that holds a lock of `GET_LOCK`.
    pub(crate) async fn end_holder_of(&mut self, lock: &str) {
        let Self::Mysql(connection) = self else { panic!("only a server has such locks") };
        let sql = "SELECT CAST(COALESCE(IS_USED_LOCK(?), 0) AS SIGNED)";
        let holder: i64 = sqlx::query_scalar(sql).bind(lock).fetch_one(connection).await.unwrap();
        assert_ne!(holder, 0, "somebody holds {lock}");
        self.run(format!("KILL CONNECTION {holder}")).await;
    }

    /// Ends all connections of an account.
    pub(crate) async fn end_connections_of(&mut self, account: &str) {
        let Self::Mysql(connection) = self else { panic!("only a server has accounts") };
        end_connections(connection, &format!("user = '{account}'")).await.unwrap();
    }

    /// The number that a statement answers.
    pub(crate) async fn number(&mut self, sql: &'static str) -> i64 {
        match self {
            Self::Sqlite(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
            Self::Mysql(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
        }
    }

    /// How many pairs have a version that is not the number of their events, or not the newest's.
    pub(crate) async fn uneven_pairs(&mut self) -> i64 {
        self.number(
            "SELECT COUNT(*) FROM (
                 SELECT pair
                 FROM (SELECT from_user_id || ':' || to_user_id AS pair, version AS fact, 0 AS event, 0 AS newest
                       FROM following
                       UNION ALL
                       SELECT aggregate_id, 0, 1, version FROM outbox WHERE aggregate_type = 'relation') AS rows_of
                 GROUP BY pair HAVING SUM(fact) <> SUM(event) OR SUM(fact) <> MAX(newest)) AS uneven",
        )
        .await
    }
}
