//! The names that the server has for what the configuration names.
//!
//! A server may take names of tables in any case, always takes those of columns so, and writes its own into the
//! binlog: compared byte for byte, a name that a SELECT understands could name nothing there.

use super::super::{change::ColumnNames, connection::Connection, definition, options::OutboxTable};
use crate::Result;

const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES \
     WHERE LOWER(TABLE_SCHEMA) = LOWER(?) AND LOWER(TABLE_NAME) = LOWER(?)";

/// The table and its columns as the server has them. What cannot be is added to `changes`.
pub(super) async fn of_the_server(
    connection: &mut Connection,
    table: &OutboxTable,
    changes: &mut Vec<String>,
) -> Result<OutboxTable> {
    let rows = connection.rows("looking for the name of an outbox", TABLES, (&table.database, &table.name)).await?;
    let found = rows.into_iter().filter_map(|row| mysql_async::from_row_opt::<(String, String, String)>(row).ok());
    let mut found: Vec<_> = found.collect();
    // Where names differ by case alone, the one that was written is meant.
    found.sort_by_key(|(database, name, _)| (*database != table.database, *name != table.name));
    let Some((database, name, kind)) = found.into_iter().next() else {
        changes.push(format!("`{}` is not among the tables of the server: name another", table.full_name()));
        return Ok(table.clone());
    };
    let mut table = OutboxTable { database, name, columns: table.columns.clone() };
    if kind == "VIEW" {
        changes.push(format!("`{}` is a view, and nothing tells of its rows: name its table", table.full_name()));
        return Ok(table);
    }
    let columns = definition::read(connection, &table).await?;
    let (full_name, mut defaults) = (table.full_name(), ColumnNames::default());
    for ((role, name), (_, default)) in table.columns.each_mut().zip(defaults.each_mut()) {
        let is_it = |column: &&str| column.to_lowercase() == name.to_lowercase();
        match columns.iter().map(|described| described.column.name.as_str()).find(is_it) {
            Some(column) => column.clone_into(name),
            // A table need not have each of the columns that Tidings' own has.
            None if name == default => {}
            None => changes
                .push(format!("`{full_name}` has no column `{name}`: name another as `{role}`, or leave that out")),
        }
    }
    changes.extend(definition::wrong_seq(&table, &columns));
    Ok(table)
}
