//! A hand in the fact database, for damage that no request could do.

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tidings_testkit::{World, world::Database};

/// A connection beside those of the server, which may run.
pub(crate) struct Hand(SqliteConnection);

impl Hand {
    pub(crate) async fn in_database_of(world: &World) -> Self {
        let Database::Sqlite = world.capabilities().database;
        let file = world.data_folder().join("tidings.db");
        let options = SqliteConnectOptions::new().filename(file).busy_timeout(std::time::Duration::from_secs(20));
        Self(SqliteConnection::connect_with(&options).await.unwrap())
    }

    /// Runs a statement, and answers how many rows it changed.
    pub(crate) async fn run(&mut self, sql: &'static str) -> u64 {
        sqlx::query(sql).execute(&mut self.0).await.unwrap().rows_affected()
    }

    /// The number that a statement answers.
    pub(crate) async fn number(&mut self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.0).await.unwrap()
    }

    /// How many pairs have a version that is not the number of their events, or not the newest's.
    pub(crate) async fn uneven_pairs(&mut self) -> i64 {
        self.number(
            "SELECT COUNT(*) FROM (
                 SELECT pair
                 FROM (SELECT from_user_id || ':' || to_user_id AS pair, version AS fact, 0 AS event, 0 AS newest
                       FROM following
                       UNION ALL
                       SELECT aggregate_id, 0, 1, version FROM outbox WHERE aggregate_type = 'relation')
                 GROUP BY pair HAVING SUM(fact) <> SUM(event) OR SUM(fact) <> MAX(newest))",
        )
        .await
    }
}
