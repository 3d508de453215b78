//! MySQL and MariaDB: many writers at a time, in several processes.
//!
//! Writers read what is committed at each statement (READ COMMITTED), so that what they lock is
//! what they see, and no gap between rows is locked that nobody wrote to. Readers get one snapshot
//! (REPEATABLE READ). Each has connections of its own: many readers never keep a writer waiting.

mod connect;
mod migrate;
mod pool;
mod session;

use std::{str::FromStr as _, sync::Arc};

use sqlx::{ConnectOptions as _, Connection as _, Row as _, mysql::MySqlConnectOptions};
use tokio::sync::watch;

use self::connect::Connect;
use self::pool::{Health, Pool, Pooled, within};
use self::session::Kind as ServerKind;
pub(super) use self::session::{Session, int};
use super::Engine;
use crate::{
    Error, Result,
    error::mysql,
    limits::{
        MYSQL_CONNECT_TIME_MAX, MYSQL_LOCK_TIME_MAX, MYSQL_READERS_MAX, MYSQL_SILENCE_TIME_MAX, MYSQL_WRITERS_MAX,
    },
};

/// Prepared statements a connection keeps. A server counts those of all its connections together
/// (`max_prepared_stmt_count`, 16,382 unless raised), and each multi-row text comes in some forty lengths.
const STATEMENTS_MAX: usize = 256;

/// Parameters of an address that have a meaning. Any other is a mistake, not to be passed over.
const PARAMETERS: [&str; 9] =
    ["ssl-mode", "sslmode", "ssl-ca", "sslca", "ssl-cert", "sslcert", "ssl-key", "sslkey", "socket"];

/// How a MySQL or MariaDB database is reached.
#[derive(Clone)]
pub struct MysqlOptions {
    connect: Connect,
    /// Connections for writing, at most: [`MYSQL_WRITERS_MAX`] unless set.
    pub writers_max: u32,
    /// Connections for reading, at most: [`MYSQL_READERS_MAX`] unless set.
    pub readers_max: u32,
}

impl MysqlOptions {
    /// Reads an address: `mysql://user:password@host:3306/database`, with `?ssl-mode=VERIFY_IDENTITY`,
    /// `ssl-ca=FILE`, `ssl-cert=FILE`, `ssl-key=FILE` and `socket=FILE` as needed. Without a mode, TLS
    /// is used where the server offers it, and its certificate is not checked; to the same machine it
    /// is not used, since it would cost time and keep nobody out, but to send a password that MySQL has not
    /// seen since it started.
    ///
    /// # Errors
    /// When it cannot be read, names no database, or has an unknown parameter.
    pub fn from_url(url: &str) -> Result<Self> {
        let refused = |reason: &str| {
            Error::database("reading the address of the database")(sqlx::Error::Configuration(reason.into()))
        };
        let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
        for name in parameters.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty()) {
            if !PARAMETERS.contains(&name) {
                return Err(refused(&format!("unknown parameter `{name}`; known are {}", PARAMETERS.join(", "))));
            }
        }
        if !url.starts_with("mysql://") && !url.starts_with("mariadb://") {
            return Err(refused("it begins with mysql:// or mariadb://"));
        }
        let connect = MySqlConnectOptions::from_str(url)
            .map_err(|_| refused("it has the form mysql://user:password@host:port/database"))?;
        if connect.get_database().is_none() {
            return Err(refused("it names no database: mysql://user:password@host:port/database"));
        }
        let has_mode = ["ssl-mode=", "sslmode="].iter().any(|name| parameters.contains(name));
        let is_near = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&connect.get_host());
        let connect = connect
            .statement_cache_capacity(STATEMENTS_MAX)
            // All of it is said in one statement of our own.
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            // A statement that waits for another writer is not slow; what is slow shows in the metrics.
            .disable_statement_logging();
        let connect = Connect::new(connect, is_near, has_mode);
        Ok(Self { connect, writers_max: MYSQL_WRITERS_MAX, readers_max: MYSQL_READERS_MAX })
    }
}

impl std::fmt::Debug for MysqlOptions {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connect = self.connect.options();
        f.debug_struct("MysqlOptions")
            .field("host", &connect.get_host())
            .field("port", &connect.get_port())
            .field("database", &connect.get_database())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct Mysql {
    options: MysqlOptions,
    kind: ServerKind,
    readers: Pool,
    writers: Pool,
}

/// What is done on MySQL until a commit.
#[derive(Debug)]
pub struct MysqlTx {
    /// `None` once it is given back.
    pooled: Option<Pooled>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Reading,
    Glancing,
    Writing(watch::Sender<u64>),
}

impl Mysql {
    /// Connects once, to learn which engine it is and whether it is fit to hold facts.
    pub(super) async fn open(options: MysqlOptions) -> Result<Self> {
        let kind = within(MYSQL_CONNECT_TIME_MAX, look(&options.connect))
            .await
            .and_then(|looked| looked)
            .map_err(Error::database("opening the database"))?;
        let health = Arc::new(Health::default());
        let pool =
            |isolation, max| Pool::new(options.connect.clone(), settings(isolation), kind, Arc::clone(&health), max);
        let readers = pool("REPEATABLE READ", options.readers_max);
        let writers = pool("READ COMMITTED", options.writers_max);
        Ok(Self { options, kind, readers, writers })
    }

    pub(super) fn engine(&self) -> Engine {
        self.kind.engine
    }

    pub(super) async fn read(&self) -> Result<MysqlTx> {
        let begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
        begin_on(&self.readers, begin, Kind::Reading).await
    }

    pub(super) async fn glance(&self) -> Result<MysqlTx> {
        Ok(MysqlTx { pooled: Some(self.readers.acquire().await?), kind: Kind::Glancing })
    }

    pub(super) async fn write(&self, commits: watch::Sender<u64>) -> Result<MysqlTx> {
        begin_on(&self.writers, "START TRANSACTION", Kind::Writing(commits)).await
    }

    pub(super) async fn migrate(&self, migrations: &[super::Migration]) -> Result<()> {
        migrate::run(&self.options.connect, migrations).await
    }

    /// Connections in use, and how many there may be: for writing, for reading.
    pub(super) fn used(&self) -> [(usize, usize); 2] {
        [self.writers.used(), self.readers.used()]
    }

    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writers.close().await;
    }
}

async fn begin_on(pool: &Pool, begin: &'static str, kind: Kind) -> Result<MysqlTx> {
    let mut pooled = pool.acquire().await?;
    pooled.session().say(begin).await.map_err(Error::database("beginning a transaction"))?;
    Ok(MysqlTx { pooled: Some(pooled), kind })
}

impl MysqlTx {
    #[expect(clippy::expect_used, reason = "only commit, rollback and drop take it, and each ends this")]
    pub(super) fn session(&mut self) -> Session<'_> {
        self.pooled.as_mut().expect("a transaction has its connection until it ends").session()
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        if let Kind::Glancing = self.kind {
            return Ok(());
        }
        let said = self.session().say("COMMIT").await;
        if let (Err(_), Kind::Writing(_)) = (&said, &self.kind) {
            // Nothing but the server's own "no" says that nothing was committed.
            let is_refused = matches!(&said, Err(sqlx::Error::Database(error))
                if mysql::code(&**error).is_some_and(|code| !mysql::leaves_commit_open(code)));
            if !is_refused {
                return said.map_err(|source| Error::CommitUnknown { source });
            }
        }
        said.map_err(Error::database("committing"))?;
        if let Some(pooled) = self.pooled.take() {
            pooled.give_back();
        }
        if let Kind::Writing(commits) = &self.kind {
            commits.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    pub(super) async fn rollback(mut self) -> Result<()> {
        let Some(pooled) = self.pooled.take() else { return Ok(()) };
        match self.kind {
            Kind::Glancing => {
                pooled.give_back();
                Ok(())
            }
            Kind::Reading | Kind::Writing(_) => roll_back(pooled).await.map_err(Error::database("rolling back")),
        }
    }
}

impl Drop for MysqlTx {
    /// A clean connection is rolled back beside and used again. One that was abandoned in the middle
    /// of a statement is closed; the server then rolls back what it had begun.
    fn drop(&mut self) {
        let Some(pooled) = self.pooled.take().filter(Pooled::is_clean) else { return };
        if let Kind::Glancing = self.kind {
            pooled.give_back();
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = roll_back(pooled).await {
                    tracing::debug!(%error, "a transaction was ended by closing its connection");
                }
            });
        }
    }
}

async fn roll_back(mut pooled: Pooled) -> Result<(), sqlx::Error> {
    pooled.session().say("ROLLBACK").await?;
    pooled.give_back();
    Ok(())
}

/// What is said once on each connection. A client that is frozen in a transaction loses it, with
/// its locks, after a time that others can wait for.
fn settings(isolation: &str) -> String {
    format!(
        "SET SESSION TRANSACTION ISOLATION LEVEL {isolation}; \
         SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
                                 NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION', \
             SESSION autocommit = 1, SESSION wait_timeout = {}, \
             SESSION innodb_lock_wait_timeout = {}, SESSION lock_wait_timeout = {}, \
             SESSION group_concat_max_len = {GATHERED_BYTES_MAX}",
        MYSQL_SILENCE_TIME_MAX.as_secs(),
        MYSQL_LOCK_TIME_MAX.as_secs(),
        MYSQL_LOCK_TIME_MAX.as_secs(),
    )
}

/// Bytes that rows gathered into one value may have; MariaDB cuts off what is longer.
const GATHERED_BYTES_MAX: u32 = 16 << 20;

/// Which engine it is; says what makes it unfit to hold facts.
async fn look(connect: &Connect) -> Result<ServerKind, sqlx::Error> {
    let mut connection = connect.connect().await?;
    let sql = "SELECT VERSION(), CAST(@@innodb_flush_log_at_trx_commit AS SIGNED), CAST(@@sync_binlog AS SIGNED), \
               CAST(@@log_bin AS SIGNED)";
    let row = sqlx::query(sql).fetch_one(&mut connection).await?;
    let version: String = row.try_get_unchecked(0)?;
    let setting = |column: usize| int(&row, column).map(Option::unwrap_or_default);
    let engine = if version.contains("MariaDB") { Engine::Mariadb } else { Engine::Mysql };
    let (least, needs) = match engine {
        Engine::Mariadb => ((10, 6), "MariaDB 10.6"),
        Engine::Mysql | Engine::Sqlite => ((8, 0), "MySQL 8.0"),
    };
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    if (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) < least {
        return Err(sqlx::Error::Configuration(format!("{version} is too old; {needs} or newer is needed").into()));
    }
    if setting(1)? != 1 {
        tracing::warn!("innodb_flush_log_at_trx_commit is not 1: a power cut may lose what was acknowledged");
    }
    if setting(3)? != 0 && setting(2)? != 1 {
        tracing::warn!("sync_binlog is not 1: after a power cut the binlog may lack what was acknowledged");
    }
    let cipher = sqlx::query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").fetch_optional(&mut connection).await?;
    let cipher = cipher.map(|row| row.try_get_unchecked::<String, _>(1)).transpose()?;
    connection.close().await?;
    Ok(ServerKind { engine, is_encrypted: cipher.is_some_and(|cipher| !cipher.is_empty()) })
}
