//! Which rows of an outbox are not in the log yet: a table beside it, with a row for each.

use crate::{
    Error, Result,
    relay::{
        OutboxTable,
        connection::Connection,
        definition::{self, Described},
        select,
        server::quoted,
    },
};

/// Parts into which keys are spread. Each is read and written by one poller at a time.
pub(super) const SHARDS: u32 = 16;

/// Shards of rows that are not pending, but keep a number for all: that up to which every row is noted,
pub(super) const MARK_NOTED: u32 = 65_535;
/// the [`identity`] of the row that has this number,
pub(super) const MARK_ROW: u32 = 65_534;
/// the hundredth of a second of the epoch in which the trigger was made,
pub(super) const MARK_TRIGGER: u32 = 65_533;
/// and, while there are rows to be noted that a trigger has missed, something. It is the lowest of them.
pub(super) const MARK_MISSED: u32 = 65_532;

/// The name of the table as statements have it.
pub(super) fn table(outbox: &OutboxTable) -> String {
    quoted(&outbox.database, &table_of(&outbox.name))
}

/// The name of the table for an outbox of this name.
pub(super) fn table_of(outbox: &str) -> String {
    format!("{outbox}_pending")
}

/// The name of the trigger for an outbox of this name.
pub(super) fn trigger_of(outbox: &str) -> String {
    format!("{outbox}_pending_insert")
}

/// The column that rows are spread by.
///
/// # Errors
/// When the outbox has no column to tell rows or keys by.
pub(super) fn key_column(outbox: &OutboxTable, columns: &[Described]) -> Result<String> {
    let names = &outbox.columns;
    if !has(columns, &names.seq) {
        let (table, seq) = (outbox.full_name(), &names.seq);
        return Err(Error::RelayStopped { reason: format!("`{table}` has no column `{seq}`, which polling needs") });
    }
    if let Some(reason) = definition::wrong_seq(outbox, columns) {
        return Err(Error::RelayStopped { reason });
    }
    let key = [&names.event_key, &names.aggregate_id].into_iter().find(|name| has(columns, name));
    key.map(|key| select::name(key)).ok_or_else(|| Error::RelayStopped {
        reason: format!("`{}` has no column `{}` to order rows by", outbox.full_name(), names.event_key),
    })
}

fn has(columns: &[Described], name: &str) -> bool {
    columns.iter().any(|described| described.column.name == name)
}

/// A number that tells a row of the table with that alias from another one that has had its `seq`, in a table
/// that was made anew or restored.
pub(super) fn identity(outbox: &OutboxTable, columns: &[Described], alias: &str) -> String {
    let names = &outbox.columns;
    let candidates = [&names.event_id, &names.event_key, &names.aggregate_id];
    let column = candidates.into_iter().find(|name| has(columns, name)).unwrap_or(&names.seq);
    format!("CAST(COALESCE(CRC32({alias}.{}), 0) AS UNSIGNED)", select::name(column))
}

/// The statement for the pending rows of a shard, in their order: the number of each, its [`identity`], the
/// number up to which all rows are noted, and the columns of [`select::columns`]. These are NULL where the
/// outbox does not have the row any more. There are none while missed rows are being noted: those that came
/// after would overtake them.
pub(super) fn page(outbox: &OutboxTable, columns: &[Described], rows: u64) -> String {
    let (seq, pending) = (select::name(&outbox.columns.seq), table(outbox));
    format!(
        "SELECT pending.seq, {}, \
         (SELECT CAST(COALESCE(MAX(seq), 0) AS UNSIGNED) FROM {pending} WHERE shard = {MARK_NOTED}), {} FROM \
         (SELECT seq FROM {pending} WHERE shard = ? \
         AND (SELECT COUNT(*) FROM {pending} WHERE shard = {MARK_MISSED}) = 0 ORDER BY seq LIMIT {rows}) AS pending \
         LEFT JOIN {} AS outbox ON outbox.{seq} = pending.seq ORDER BY pending.seq",
        identity(outbox, columns, "outbox"),
        select::columns_of("outbox", columns),
        quoted(&outbox.database, &outbox.name)
    )
}

/// Columns of [`page`] before those of the outbox.
pub(super) const COLUMNS_BEFORE: usize = 3;

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
