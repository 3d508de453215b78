//! What the source must be set up like, and what to change where it is not.

mod names;

use std::{collections::HashMap, sync::Arc};

use tidings_binlog::Flavor;

use super::{
    Position,
    connection::{Connection, server_code},
    options::OutboxTable,
};
use crate::{Error, Result};

/// Error codes of both servers: the user may not do that, or the thing is not there.
const ACCESS_DENIED: u16 = 1227;
const DATABASE_DENIED: u16 = 1044;
const TABLE_DENIED: u16 = 1142;
const NO_DATABASE: u16 = 1049;
const NO_TABLE: u16 = 1146;
const SYNTAX: u16 = 1064;

/// A binlog that goes after less than this may be gone before a relay that was down is back.
const EXPIRY_SECONDS_MIN: u64 = 3_600;

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', \
     'binlog_row_image', 'binlog_row_metadata', 'binlog_row_value_options', 'gtid_mode', 'server_id', \
     'binlog_expire_logs_seconds', 'sync_binlog', 'log_slave_updates', 'log_replica_updates')";

/// What was found.
#[derive(Debug, Default)]
struct Findings {
    /// What makes the relay impossible, and how to change it.
    changes: Vec<String>,
    /// What works, but not as well as it could.
    advice: Vec<String>,
}

impl Findings {
    /// The tables, if nothing must be changed.
    fn answer(self, tables: Vec<OutboxTable>) -> Result<Arc<[OutboxTable]>> {
        match self.changes.is_empty() {
            true => Ok(tables.into()),
            false => Err(Error::SourceSettings { changes: self.changes }),
        }
    }
}

/// Looks whether the source can feed the relay. What only could be better is logged.
///
/// Answers the tables by the names that the server has for them.
///
/// # Errors
/// [`Error::SourceSettings`] with all that must be changed at once; or the source cannot be reached.
pub(super) async fn check(connection: &mut Connection, tables: &[OutboxTable]) -> Result<Arc<[OutboxTable]>> {
    let mut findings = Findings::default();
    let variables = variables(connection).await?;
    let value = |name: &str| variables.get(name).map_or("", String::as_str);
    settings(value, connection.flavor, &mut findings);
    if value("log_bin").eq_ignore_ascii_case("ON") {
        rights(connection, &mut findings).await?;
        filters(connection, tables, &mut findings).await?;
    }
    let named = named(connection, tables, &mut findings).await?;
    for advice in std::mem::take(&mut findings.advice) {
        tracing::warn!(advice, "the relay's source could be set up better");
    }
    findings.answer(named)
}

/// Looks whether the tables can be read and are what the configuration says, which is all that a relay needs to know
/// that asks for rows; nothing is made in the database before. Answers them by the names that the server has for them.
///
/// # Errors
/// As [`check`].
pub(super) async fn check_tables(connection: &mut Connection, tables: &[OutboxTable]) -> Result<Arc<[OutboxTable]>> {
    let mut findings = Findings::default();
    let named = named(connection, tables, &mut findings).await?;
    findings.answer(named)
}

async fn named(
    connection: &mut Connection,
    tables: &[OutboxTable],
    findings: &mut Findings,
) -> Result<Vec<OutboxTable>> {
    let mut named = Vec::with_capacity(tables.len());
    for table in tables {
        if readable(connection, table, findings).await? {
            named.push(names::of_the_server(connection, table, &mut findings.changes).await?);
        }
    }
    Ok(named)
}

async fn variables(connection: &mut Connection) -> Result<HashMap<String, String>> {
    let rows = connection.text_rows("reading the source's settings", VARIABLES).await?;
    Ok(rows.iter().filter_map(|row| Some((row.get::<String, _>(0)?, row.get::<String, _>(1)?))).collect())
}

fn settings<'v>(value: impl Fn(&str) -> &'v str, flavor: Flavor, findings: &mut Findings) {
    let is = |name: &str, wanted: &str| value(name).eq_ignore_ascii_case(wanted);
    let mut change = |text: &str| findings.changes.push(text.to_owned());
    if !is("log_bin", "ON") {
        change("the binlog is off: put `log_bin = mysql-bin` under [mysqld] and restart the server");
    } else if !is("binlog_format", "ROW") && !value("binlog_format").is_empty() {
        change(
            "`binlog_format` is not ROW: run `SET GLOBAL binlog_format = 'ROW'`, put it under [mysqld], \
             reconnect clients",
        );
    }
    if is("server_id", "0") {
        change("`server_id` is 0: run `SET GLOBAL server_id = 1`, and put it under [mysqld]");
    }
    let mut advise = |text: &str| findings.advice.push(text.to_owned());
    if !is("binlog_row_image", "FULL") {
        advise("`binlog_row_image` is not FULL, so unset columns are absent: `SET GLOBAL binlog_row_image = 'FULL'`");
    }
    if !is("binlog_row_metadata", "FULL") {
        advise(
            "`binlog_row_metadata` is not FULL, so names are guessed after an ALTER: \
             `SET GLOBAL binlog_row_metadata = 'FULL'`",
        );
    }
    if flavor == Flavor::Mysql && !is("gtid_mode", "ON") {
        advise(
            "`gtid_mode` is not ON, so the relay cannot go on after a failover: \
             see the server's manual for turning it on",
        );
    }
    if is("binlog_row_value_options", "PARTIAL_JSON") {
        advise("`binlog_row_value_options` is PARTIAL_JSON, so updates of JSON are not whole: set it to ''");
    }
    if is("log_slave_updates", "OFF") || is("log_replica_updates", "OFF") {
        advise(
            "should this server become a replica, its binlog would lack what it replicates: \
             turn `log_slave_updates` on",
        );
    }
    if value("sync_binlog") != "1" {
        advise(
            "`sync_binlog` is not 1, so a crash of the server may lose what was published: \
             `SET GLOBAL sync_binlog = 1`",
        );
    }
    match value("binlog_expire_logs_seconds").parse() {
        Ok(seconds) if (1..EXPIRY_SECONDS_MIN).contains(&seconds) => {
            advise("the binlog is kept for less than an hour: `SET GLOBAL binlog_expire_logs_seconds = 86400`");
        }
        _ => {}
    }
}

/// Whether the user may read the binlog, and may ask where it ends.
async fn rights(connection: &mut Connection, findings: &mut Findings) -> Result<()> {
    let monitor = match connection.flavor {
        Flavor::Mariadb => "BINLOG MONITOR",
        Flavor::Mysql => "REPLICATION CLIENT",
    };
    let grants = connection.text_rows("reading the relay's rights", "SHOW GRANTS").await?;
    let grants: Vec<String> = grants.iter().filter_map(|row| row.get::<String, _>(0)).collect();
    let has = |right: &str| grants.iter().any(|grant| grant.contains(right));
    let is_all = grants.iter().any(|grant| grant.starts_with("GRANT ALL PRIVILEGES ON *.*"));
    // What a role gives is not always listed, so a user with roles is believed.
    let has_roles = grants.iter().any(|grant| !grant.contains(" ON ") && grant.contains(" TO "));
    if !is_all && !has_roles && !has("REPLICATION SLAVE") {
        findings.changes.push("the user may not read the binlog: `GRANT REPLICATION SLAVE ON *.* TO ...`".to_owned());
    }
    match end(connection).await {
        Err(error) if server_code(&error) == Some(ACCESS_DENIED) => {
            findings
                .changes
                .push(format!("the user may not ask where the binlog ends: `GRANT {monitor} ON *.* TO ...`"));
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Whether the server leaves databases with outbox tables out of its binlog.
async fn filters(connection: &mut Connection, tables: &[OutboxTable], findings: &mut Findings) -> Result<()> {
    let Ok(row) = status_row(connection).await else { return Ok(()) };
    let list = |column| row.get::<Option<String>, usize>(column).flatten().unwrap_or_default();
    let (only, ignored) = (list(2), list(3));
    let names = |list: &str, database: &str| list.split(',').any(|name| name.trim() == database);
    for OutboxTable { database, .. } in tables {
        if names(&ignored, database) || (!only.is_empty() && !names(&only, database)) {
            findings.changes.push(format!(
                "the binlog leaves `{database}` out: remove `binlog_do_db` and `binlog_ignore_db` and restart the server"
            ));
        }
    }
    Ok(())
}

/// Whether the user may read an outbox table.
async fn readable(connection: &mut Connection, table: &OutboxTable, findings: &mut Findings) -> Result<bool> {
    let (database, name) = (&table.database, &table.name);
    let look = format!("SELECT 1 FROM {} LIMIT 1", quoted(database, name));
    let change = match connection.text_rows("looking for an outbox table", &look).await {
        Ok(_) => return Ok(true),
        Err(error) => match server_code(&error) {
            Some(DATABASE_DENIED | TABLE_DENIED) => {
                format!("the user may not read the outbox: `GRANT SELECT ON {} TO ...`", quoted(database, name))
            }
            Some(NO_TABLE | NO_DATABASE) => {
                format!("there is no table `{database}`.`{name}`: make it, or name another")
            }
            _ => return Err(error),
        },
    };
    findings.changes.push(change);
    Ok(false)
}

/// A name for a statement.
pub(super) fn quoted(database: &str, name: &str) -> String {
    format!("`{}`.`{}`", database.replace('`', "``"), name.replace('`', "``"))
}

async fn status_row(connection: &mut Connection) -> Result<mysql_async::Row> {
    const DOING: &str = "asking where the source's binlog ends";
    let rows = match connection.text_rows(DOING, "SHOW BINARY LOG STATUS").await {
        // MariaDB, and MySQL before 8.2, know the former name only.
        Err(error) if server_code(&error) == Some(SYNTAX) => connection.text_rows(DOING, "SHOW MASTER STATUS").await?,
        rows => rows?,
    };
    rows.into_iter().next().ok_or_else(|| Error::SourceSettings {
        changes: vec!["the binlog is off: put `log_bin = mysql-bin` under [mysqld] and restart the server".to_owned()],
    })
}

/// Whether the source gives its binlog by GTID.
pub(super) async fn has_gtids(connection: &mut Connection) -> Result<bool> {
    if connection.flavor == Flavor::Mariadb {
        return Ok(true);
    }
    let mode: Option<(String,)> = connection.first("asking for GTIDs", "SELECT @@GLOBAL.gtid_mode", ()).await?;
    Ok(mode.is_some_and(|(mode,)| mode == "ON"))
}

/// A place in the source's binlog before which all that was committed can be seen in its tables.
///
/// A transaction is in the binlog before its rows can be seen, and may be so for long: the server could be waiting
/// for a replica's word. MariaDB tells the place that goes with a snapshot. MySQL counts a GTID as executed once its
/// rows can be seen; without GTIDs it does not tell at all, and whoever reads tables has to look twice.
///
/// # Errors
/// As [`end`].
pub(super) async fn visible(connection: &mut Connection) -> Result<Position> {
    if connection.flavor == Flavor::Mysql {
        return end(connection).await;
    }
    const DOING: &str = "asking how far the source's tables are";
    connection.run(DOING, "START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let rows = connection.text_rows(DOING, "SHOW STATUS LIKE 'binlog_snapshot_%'").await;
    connection.run(DOING, "COMMIT").await?;
    let rows = rows?;
    let value = |name: &str| {
        let is_it =
            |row: &&mysql_async::Row| row.get::<String, _>(0).is_some_and(|found| found.eq_ignore_ascii_case(name));
        rows.iter().find(is_it).and_then(|row| row.get::<String, _>(1)).filter(|value| !value.is_empty())
    };
    let place = (value("binlog_snapshot_file"), value("binlog_snapshot_position").and_then(|text| text.parse().ok()));
    let (Some(file), Some(offset)) = place else {
        // Nothing was committed since the server was started: what is in its binlog can be seen.
        return end(connection).await;
    };
    let gtid = gtid_of_mariadb(connection, &file, offset).await?;
    Ok(Position { gtid, file, offset })
}

/// What MariaDB had executed at a place. Its variable could be ahead of that by now.
async fn gtid_of_mariadb(connection: &mut Connection, file: &str, offset: u64) -> Result<String> {
    let sql = "SELECT BINLOG_GTID_POS(?, ?)";
    let gtid: Option<(Option<String>,)> = connection.first("asking for a GTID", sql, (file, offset)).await?;
    Ok(gtid.and_then(|(gtid,)| gtid).unwrap_or_default())
}

/// Where the source's binlog ends now: all that is written to it later comes after it.
///
/// # Errors
/// When the source cannot be reached, the user may not ask, or the binlog is off.
pub(super) async fn end(connection: &mut Connection) -> Result<Position> {
    let row = status_row(connection).await?;
    let file: String = row.get(0).unwrap_or_default();
    let offset: u64 = row.get(1).unwrap_or_default();
    let has_gtids = has_gtids(connection).await?;
    let gtid = match connection.flavor {
        // Where GTIDs were turned off, the set is still told, and says nothing any more.
        Flavor::Mysql if !has_gtids => String::new(),
        Flavor::Mysql => row.get::<Option<String>, usize>(4).flatten().unwrap_or_default().replace(['\n', ' '], ""),
        Flavor::Mariadb => gtid_of_mariadb(connection, &file, offset).await?,
    };
    Ok(Position { gtid, file, offset })
}
