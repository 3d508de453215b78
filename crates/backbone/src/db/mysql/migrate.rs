//! Migrations on MySQL and MariaDB, where a schema change commits by itself and cannot be undone.
//!
//! So progress is kept by statement: that one is begun is stored before it, that it is done after
//! it. A process that ends in between leaves one statement of which it is not known whether it took
//! effect; the next run tries it again, and takes "it is there already" for a yes. A lock of the
//! server, which ends with its connection, keeps processes that start together apart.

use sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection,
    migrate::{MigrateError, Migration as SqlxMigration, MigrationType},
};

use super::{connect::Connect, pool::within, session::int, settings};
use crate::{
    Error, Result,
    db::Migration,
    error::mysql,
    limits::{MYSQL_CONNECT_TIME_MAX, MYSQL_MIGRATION_TIME_MAX},
};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS _tidings_migrations (\
         version BIGINT NOT NULL PRIMARY KEY, description VARCHAR(255) NOT NULL, checksum VARBINARY(64) NOT NULL, \
         begun BIGINT NOT NULL, done BIGINT NOT NULL, statements BIGINT NOT NULL\
     ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// The lock of the database in use; names of locks are the server's and have at most 64 characters.
const LOCK: &str = "CONCAT('tidings-migration-', LEFT(SHA2(DATABASE(), 256), 40))";

const BEGUN: &str = "UPDATE _tidings_migrations SET begun = ? WHERE version = ?";
const DONE: &str = "UPDATE _tidings_migrations SET done = ? WHERE version = ?";

/// A table, column or index is there already, or is gone already.
const DONE_BEFORE: [u16; 5] = [1050, 1051, 1060, 1061, 1091];
const NO_SUCH_TABLE: u16 = 1146;

pub(super) async fn run(connect: &Connect, migrations: &[Migration]) -> Result<()> {
    run_all(connect, migrations).await.map_err(Error::Migration)
}

async fn run_all(connect: &Connect, migrations: &[Migration]) -> Result<(), MigrateError> {
    let mut connection = within(MYSQL_CONNECT_TIME_MAX, connect.connect()).await??;
    sqlx::raw_sql(AssertSqlSafe(settings("READ COMMITTED"))).execute(&mut connection).await?;
    let mut migrations: Vec<&Migration> = migrations.iter().collect();
    migrations.sort_by_key(|migration| migration.version);
    if !are_done(&mut connection, &migrations).await? {
        lock(&mut connection).await?;
        sqlx::raw_sql(TABLE).execute(&mut connection).await?;
        for migration in migrations {
            apply(&mut connection, migration).await?;
        }
    }
    // With the connection goes the lock.
    connection.close().await?;
    Ok(())
}

/// Whether nothing is to be done, told without the lock.
async fn are_done(connection: &mut MySqlConnection, migrations: &[&Migration]) -> Result<bool, MigrateError> {
    for migration in migrations {
        match progress(connection, migration).await {
            Ok(Some(progress)) if progress.done == progress.statements => {}
            Ok(_) => return Ok(false),
            Err(MigrateError::Execute(error)) if code(&error) == Some(NO_SUCH_TABLE) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

async fn lock(connection: &mut MySqlConnection) -> Result<(), MigrateError> {
    let sql = AssertSqlSafe(format!("SELECT GET_LOCK({LOCK}, {})", MYSQL_MIGRATION_TIME_MAX.as_secs()));
    let row = sqlx::query(sql).fetch_one(&mut *connection).await?;
    if int(&row, 0)? == Some(1) {
        return Ok(());
    }
    let message = "another process has been migrating this database for too long";
    Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, message)).into())
}

/// How far a migration has come, in statements.
struct Progress {
    begun: i64,
    done: i64,
    statements: i64,
}

async fn progress(connection: &mut MySqlConnection, migration: &Migration) -> Result<Option<Progress>, MigrateError> {
    use sqlx::Row as _;
    let sql = "SELECT begun, done, statements, checksum FROM _tidings_migrations WHERE version = ?";
    let row = sqlx::query(sql).bind(migration.version).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    let checksum: Vec<u8> = row.try_get_unchecked(3)?;
    if checksum != self::checksum(migration) {
        return Err(MigrateError::VersionMismatch(migration.version));
    }
    let number = |column: usize| int(&row, column).map(Option::unwrap_or_default);
    Ok(Some(Progress { begun: number(0)?, done: number(1)?, statements: number(2)? }))
}

async fn apply(connection: &mut MySqlConnection, migration: &Migration) -> Result<(), MigrateError> {
    let statements = statements(migration.mysql);
    let count = i64::try_from(statements.len()).unwrap_or(i64::MAX);
    let before = match progress(connection, migration).await? {
        Some(progress) => progress,
        None => {
            let sql = "INSERT INTO _tidings_migrations (version, description, checksum, begun, done, statements) \
                       VALUES (?, ?, ?, 0, 0, ?)";
            let query = sqlx::query(sql).bind(migration.version).bind(migration.name);
            query.bind(checksum(migration)).bind(count).execute(&mut *connection).await?;
            Progress { begun: 0, done: 0, statements: count }
        }
    };
    for (number, statement) in (1..).zip(statements) {
        if number <= before.done {
            continue;
        }
        let was_begun = number <= before.begun;
        note(connection, BEGUN, number, migration).await?;
        fail::fail_point!("migration-before-statement", |_| std::process::abort());
        match sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await {
            Ok(_) => {}
            Err(error) if was_begun && code(&error).is_some_and(|code| DONE_BEFORE.contains(&code)) => {}
            Err(error) => {
                if error.as_database_error().is_some() {
                    // It certainly did nothing: what it found in its way is not its own.
                    note(connection, BEGUN, number - 1, migration).await?;
                }
                return Err(MigrateError::ExecuteMigration(error, migration.version));
            }
        }
        fail::fail_point!("migration-after-statement", |_| std::process::abort());
        note(connection, DONE, number, migration).await?;
    }
    Ok(())
}

async fn note(
    connection: &mut MySqlConnection,
    sql: &'static str,
    number: i64,
    migration: &Migration,
) -> Result<(), MigrateError> {
    sqlx::query(sql).bind(number).bind(migration.version).execute(connection).await?;
    Ok(())
}

fn checksum(migration: &Migration) -> Vec<u8> {
    let text = sqlx::SqlSafeStr::into_sql_str(migration.mysql);
    let migration = SqlxMigration::new(migration.version, migration.name.into(), MigrationType::Simple, text, true);
    migration.checksum.into_owned()
}

fn code(error: &sqlx::Error) -> Option<u16> {
    error.as_database_error().and_then(mysql::code)
}

/// The statements of a text, each ended by `;` at the end of a line; comments have lines of their own.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    text.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::statements;

    #[test]
    fn statements_end_with_lines_and_comments_are_none() {
        let text = "-- first; not a statement;\nCREATE TABLE a (b TEXT DEFAULT ';');\n\n-- last\nDROP TABLE a\n;\n";
        assert_eq!(statements(text), ["CREATE TABLE a (b TEXT DEFAULT ';')", "DROP TABLE a"]);
        assert!(statements("-- nothing here\n").is_empty());
    }
}
