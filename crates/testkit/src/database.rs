//! A database of its own for a test, on each engine, gone when the test ends.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};
use tempfile::TempDir;

/// An engine that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite, in a temporary folder.
    Sqlite,
    /// The MariaDB server that `TIDINGS_TEST_MARIADB` names.
    Mariadb,
    /// The MySQL server that `TIDINGS_TEST_MYSQL` names.
    Mysql,
}

/// Services that may be missing, by name and a comma between two. Without it a test that needs a
/// service and does not find it fails: what was not tried must not look tried.
const WITHOUT: &str = "TIDINGS_TEST_WITHOUT";

impl Engine {
    /// Whether the tests on this engine were called off.
    pub fn is_left_out(self) -> bool {
        let without = std::env::var(WITHOUT).unwrap_or_default();
        let name = match self {
            Self::Sqlite => return false,
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
        };
        without.split(',').any(|left_out| left_out.trim() == name)
    }

    /// The variable that names its server, and the server's name for `scripts/services`.
    pub(crate) fn service(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Sqlite => None,
            Self::Mariadb => Some(("TIDINGS_TEST_MARIADB", "mariadb")),
            Self::Mysql => Some(("TIDINGS_TEST_MYSQL", "mysql")),
        }
    }

    /// The address of the server, `mysql://user:password@host:port`.
    fn server(self) -> Option<String> {
        let (variable, name) = self.service()?;
        let address = std::env::var(variable).unwrap_or_else(|_| {
            panic!(
                "{variable} is not set: run `scripts/services up {name}` and `eval \"$(scripts/services env)\"`, \
                 or leave these tests out by {WITHOUT}={name}"
            )
        });
        Some(address.trim_end_matches('/').to_owned())
    }
}

/// Where a test's database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file of SQLite's.
    File(PathBuf),
    /// The address of a database on a server.
    Url(String),
}

/// An empty database, dropped with this.
#[derive(Debug)]
pub struct Database {
    /// Where it is.
    pub place: Place,
    /// A temporary folder that belongs to the test.
    pub folder: TempDir,
    on_server: Option<(String, String)>,
}

impl Database {
    /// Makes an empty database.
    ///
    /// # Panics
    /// When the engine's server is not named or cannot be reached.
    pub async fn new(engine: Engine) -> Self {
        if let Some(server) = engine.server() {
            return Self::on(server).await;
        }
        let folder = temporary_folder();
        Self { place: Place::File(folder.path().join("test.db")), folder, on_server: None }
    }

    /// Makes an empty database on a server.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn on(server: String) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = temporary_folder();
        // The folder's random name keeps databases of several runs apart.
        let random = folder.path().file_name().unwrap_or_default().to_string_lossy().replace(['.', '-'], "");
        let name = format!("test_{random}_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let done = say(&server, format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4")).await;
        done.unwrap_or_else(|error| panic!("no database on {server}: {error}"));
        Self { place: Place::Url(format!("{server}/{name}")), folder, on_server: Some((server, name)) }
    }
}

fn temporary_folder() -> TempDir {
    tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some((server, name)) = self.on_server.take() else { return };
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(drop_database(&server, &name)).map_err(std::io::Error::other)
        });
        // A test that killed its server has nothing left to drop.
        drop(dropping.join());
    }
}

/// Ends who is still connected, since an open transaction would keep its tables, and drops it.
async fn drop_database(server: &str, name: &str) -> Result<(), sqlx::Error> {
    let mut connection = MySqlConnection::connect(server).await?;
    end_connections(&mut connection, &format!("db = '{name}'")).await?;
    let sql = format!("DROP DATABASE IF EXISTS `{name}`");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// Ends the connections that a server has beside this one, and for which a condition on its list of them holds; answers
/// how many.
///
/// # Errors
/// When the server cannot be reached.
pub async fn end_connections(connection: &mut MySqlConnection, condition: &str) -> Result<usize, sqlx::Error> {
    let sql = format!(
        "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND {condition}"
    );
    let ids: Vec<i64> = loop {
        match sqlx::query_scalar(AssertSqlSafe(sql.clone())).fetch_all(&mut *connection).await {
            // MySQL tells nothing while a statement that is under way has bytes that are no text.
            Err(sqlx::Error::Database(error)) if error.message().contains("Cannot convert string") => {}
            ids => break ids?,
        }
    };
    for id in &ids {
        // It may have ended by itself.
        drop(sqlx::raw_sql(AssertSqlSafe(format!("KILL CONNECTION {id}"))).execute(&mut *connection).await);
    }
    Ok(ids.len())
}

/// Says one statement to a server, on a connection of its own.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub async fn say(server: &str, sql: String) -> Result<(), sqlx::Error> {
    let mut connection = MySqlConnection::connect(server).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// Makes a test of each function on each engine: `on_every_engine!(first, second)` for
/// `async fn first(engine: Engine)`. They are found as `on_sqlite::first`, `on_mariadb::first`, ...
#[macro_export]
macro_rules! on_every_engine {
    (@one $module:ident, $engine:ident, $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let engine = $crate::database::Engine::$engine;
                    if engine.is_left_out() {
                        eprintln!("not run: this engine was left out");
                        return;
                    }
                    super::$name(engine).await;
                }
            )+
        }
    };
    ($($name:ident),+ $(,)?) => {
        $crate::on_every_engine!(@one on_sqlite, Sqlite, $($name),+);
        $crate::on_every_engine!(@one on_mariadb, Mariadb, $($name),+);
        $crate::on_every_engine!(@one on_mysql, Mysql, $($name),+);
    };
}

/// As [`on_every_engine!`], for what only a server can do.
#[macro_export]
macro_rules! on_every_server {
    ($($name:ident),+ $(,)?) => {
        $crate::on_every_engine!(@one only_on_mariadb, Mariadb, $($name),+);
        $crate::on_every_engine!(@one only_on_mysql, Mysql, $($name),+);
    };
}
