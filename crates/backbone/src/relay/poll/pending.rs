//! Which rows of an outbox are not in the log yet: a table beside it, with a row for each.

use crate::{
    Error, Result,
    relay::{
        FirstStart, OutboxTable,
        connection::{Connection, server_code},
        definition::{self, Described},
        select,
        server::quoted,
    },
};

/// Parts into which keys are spread. Each is read and written by one poller at a time.
pub(super) const SHARDS: u32 = 16;

/// The shard of the row that says that the table is complete.
const COMPLETE: u32 = 65_535;

const DUPLICATE_TRIGGER: u16 = 1359;

/// The name of the table.
pub(super) fn table(outbox: &OutboxTable) -> String {
    quoted(&outbox.database, &format!("{}_pending", outbox.name))
}

/// Makes the table and the trigger that fills it, and notes the rows that were there before. Several
/// pollers may do so at once.
///
/// # Errors
/// When the outbox has no column to tell rows or keys by, or the account may not make them; the error says
/// which statements somebody else can run.
pub(super) async fn prepare(connection: &mut Connection, outbox: &OutboxTable, first_start: FirstStart) -> Result<()> {
    const DOING: &str = "preparing the table of pending rows";
    let columns = definition::read(connection, outbox).await?;
    let key = key_column(outbox, &columns)?;
    let (pending, seq) = (table(outbox), select::name(&outbox.columns.seq));
    let table_sql = format!(
        "CREATE TABLE IF NOT EXISTS {pending} (shard SMALLINT UNSIGNED NOT NULL, seq BIGINT UNSIGNED NOT NULL, \
         PRIMARY KEY (shard, seq)) ENGINE = InnoDB"
    );
    let trigger = quoted(&outbox.database, &format!("{}_pending_insert", outbox.name));
    let trigger_sql = format!(
        "CREATE TRIGGER {trigger} AFTER INSERT ON {} FOR EACH ROW INSERT INTO {pending} (shard, seq) \
         VALUES (CRC32(NEW.{key}) % {SHARDS}, NEW.{seq})",
        quoted(&outbox.database, &outbox.name)
    );
    if is_complete(connection, &pending).await {
        return Ok(());
    }
    for sql in [&table_sql, &trigger_sql] {
        // Making the trigger waits for open transactions of the outbox, so none escapes it.
        match connection.text_rows(DOING, sql).await {
            Err(error) if server_code(&error) == Some(DUPLICATE_TRIGGER) => {}
            Err(error) if server_code(&error).is_some() => {
                let reason = format!(
                    "{}: let somebody who may run: {table_sql}; {trigger_sql}; (where a binlog is on, that is SUPER \
                     or `log_bin_trust_function_creators = 1`)",
                    Error::chain(&error)
                );
                return Err(Error::RelayStopped { reason });
            }
            made => drop(made?),
        }
    }
    complete(connection, outbox, &key, first_start).await
}

async fn is_complete(connection: &mut Connection, pending: &str) -> bool {
    let sql = format!("SELECT 1 FROM {pending} WHERE shard = {COMPLETE}");
    matches!(connection.text_rows("looking for the table of pending rows", &sql).await, Ok(rows) if !rows.is_empty())
}

/// Notes the rows that were there before the trigger, once: whoever comes second finds the mark.
async fn complete(connection: &mut Connection, outbox: &OutboxTable, key: &str, first_start: FirstStart) -> Result<()> {
    const DOING: &str = "noting the pending rows";
    let (pending, seq) = (table(outbox), select::name(&outbox.columns.seq));
    connection.run(DOING, "START TRANSACTION").await?;
    let mark = format!("INSERT IGNORE INTO {pending} (shard, seq) VALUES ({COMPLETE}, 0)");
    // The other one waits here until the first has committed, and then adds nothing.
    if connection.execute(DOING, &mark).await? == 1 && first_start == FirstStart::Earliest {
        let rows = format!(
            "INSERT IGNORE INTO {pending} (shard, seq) SELECT CRC32({key}) % {SHARDS}, {seq} FROM {}",
            quoted(&outbox.database, &outbox.name)
        );
        connection.execute(DOING, &rows).await?;
    }
    connection.run(DOING, "COMMIT").await
}

/// The column that rows are spread by.
fn key_column(outbox: &OutboxTable, columns: &[Described]) -> Result<String> {
    let has = |name: &&String| columns.iter().any(|described| described.column.name == **name);
    let names = &outbox.columns;
    if !has(&&names.seq) {
        let (table, seq) = (outbox.full_name(), &names.seq);
        return Err(Error::RelayStopped { reason: format!("`{table}` has no column `{seq}`, which polling needs") });
    }
    let key = [&names.event_key, &names.aggregate_id].into_iter().find(has);
    key.map(|key| select::name(key)).ok_or_else(|| Error::RelayStopped {
        reason: format!("`{}` has no column `{}` to order rows by", outbox.full_name(), names.event_key),
    })
}

/// The statement for the pending rows of a shard, in their order. Columns are those of [`select::columns`],
/// behind the number of the pending row; all are NULL where the outbox does not have the row any more.
pub(super) fn page(outbox: &OutboxTable, columns: &[Described], rows: u64) -> String {
    let seq = select::name(&outbox.columns.seq);
    format!(
        "SELECT pending.seq, {} FROM (SELECT seq FROM {} WHERE shard = ? AND seq >= ? ORDER BY seq LIMIT {rows}) AS \
         pending LEFT JOIN {} AS outbox ON outbox.{seq} = pending.seq ORDER BY pending.seq",
        select::columns_of("outbox", columns),
        table(outbox),
        quoted(&outbox.database, &outbox.name)
    )
}

/// Strikes rows off.
pub(super) async fn strike_off(
    connection: &mut Connection,
    outbox: &OutboxTable,
    shard: u32,
    rows: &[u64],
) -> Result<()> {
    const ROWS_MAX: usize = 1_000;
    for rows in rows.chunks(ROWS_MAX) {
        let numbers: Vec<String> = rows.iter().map(u64::to_string).collect();
        let sql = format!("DELETE FROM {} WHERE shard = {shard} AND seq IN ({})", table(outbox), numbers.join(", "));
        connection.execute("striking off pending rows", &sql).await?;
    }
    Ok(())
}
