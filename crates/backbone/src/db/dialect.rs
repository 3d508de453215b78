//! The few texts that engines write differently.

use super::Value;
use crate::{Error, Result, limits::STATEMENT_ROWS_MAX};

/// A database engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite 3, embedded.
    Sqlite,
    /// MySQL 8.0 or later.
    Mysql,
    /// MariaDB 10.6 or later.
    Mariadb,
}

impl Engine {
    /// An aggregate that gathers rows into one JSON array of arrays, `[[a,b],[a,b]]`, or NULL or `[]`
    /// of none; bytes must be given through `HEX`. A thousand rows that arrive one by one wake the
    /// reader a thousand times.
    pub fn json_rows(self, columns: &str) -> String {
        match self {
            Self::Sqlite => format!("json_group_array(json_array({columns}))"),
            Self::Mysql | Self::Mariadb => format!("JSON_ARRAYAGG(JSON_ARRAY({columns}))"),
        }
    }

    /// `expression` as a whole number, whatever a damaged column holds.
    pub fn as_int(self, expression: &str) -> String {
        match self {
            Self::Sqlite => format!("CAST({expression} AS INTEGER)"),
            Self::Mysql | Self::Mariadb => format!("CAST({expression} AS SIGNED)"),
        }
    }

    /// The clause that turns an INSERT into an upsert on the unique columns `key`: each of
    /// `assignments` is `column = expression`. MySQL and MariaDB assign from left to right, each
    /// seeing what the ones before it wrote, and take any unique columns of the table for the key.
    pub fn on_conflict(self, key: &str, assignments: &str) -> String {
        match self {
            Self::Sqlite => format!("ON CONFLICT ({key}) DO UPDATE SET {assignments}"),
            Self::Mysql | Self::Mariadb => format!("ON DUPLICATE KEY UPDATE {assignments}"),
        }
    }

    /// In an upsert's assignment, the value that the INSERT would have written to `column`.
    pub fn inserted(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("excluded.{column}"),
            Self::Mysql | Self::Mariadb => format!("VALUES({column})"),
        }
    }

    /// The clause at the end of a SELECT that keeps its rows for this transaction: others wait who
    /// want to change them, or to keep them too. Empty on SQLite, where one writer at a time works.
    /// Rows must be asked for in one order by everybody, or two may wait for each other.
    pub fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Mysql | Self::Mariadb => "FOR UPDATE",
        }
    }

    /// The database's own moment, in milliseconds of the epoch.
    pub fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
            Self::Mysql | Self::Mariadb => "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
        }
    }

    /// After the name of a table: its rows are looked up by the primary key. MySQL may take an index whose first
    /// columns are as good by what it knows of a table that has just grown, and reads all of it for each row then.
    pub fn by_primary_key(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Mysql | Self::Mariadb => "FORCE INDEX (PRIMARY)",
        }
    }

    /// The same by another index, of which the statement must give the first columns. SQLite too prefers the primary
    /// key, as long as it knows nothing of how many rows have the same first column.
    pub(crate) fn by_index(self, index: &'static str) -> String {
        match self {
            Self::Sqlite => format!("INDEXED BY {index}"),
            Self::Mysql | Self::Mariadb => format!("FORCE INDEX ({index})"),
        }
    }

    /// As [`Engine::for_update`], but rows that others hold are left out instead of being waited for.
    pub(crate) fn for_update_if_free(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Mysql | Self::Mariadb => "FOR UPDATE SKIP LOCKED",
        }
    }

    /// The operator that joins tables in the order in which they are written, whatever the engine knows of
    /// their sizes.
    pub fn join_in_order(self) -> &'static str {
        match self {
            Self::Sqlite => "CROSS JOIN",
            Self::Mysql | Self::Mariadb => "STRAIGHT_JOIN",
        }
    }

    /// The clause at the end of a SELECT that keeps its rows as they are until the transaction ends; others may
    /// keep them too. Empty on SQLite, where one writer at a time works.
    pub fn for_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Mysql | Self::Mariadb => "LOCK IN SHARE MODE",
        }
    }
}

/// Input rows as a query of placeholders, with its arguments. There are few distinct texts: some
/// rows may be there twice.
pub(super) fn input_values<const COLUMNS: usize>(rows: &[[Value; COLUMNS]]) -> (String, Vec<Value>) {
    let count = padded(rows.len(), STATEMENT_ROWS_MAX);
    let padding = rows.iter().cycle().skip(rows.len()).take(count - rows.len());
    let args = rows.iter().chain(padding).flatten().cloned().collect();
    (format!("VALUES {}", row_placeholders(count, COLUMNS)), args)
}

/// Input rows as a query of one placeholder, whose argument is all of them as JSON. So the text is
/// one for any number of rows, each column has the type of its values (a placeholder in VALUES has
/// none on MySQL, and its comparison no index), and MySQL and MariaDB read it alike.
pub(super) fn input_json<const COLUMNS: usize>(rows: &[[Value; COLUMNS]]) -> Result<(String, Vec<Value>)> {
    let types: [&str; COLUMNS] =
        std::array::from_fn(|column| match rows.iter().map(|row| &row[column]).find(|value| **value != Value::Null) {
            Some(Value::Text(_)) => "VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            Some(Value::Bytes(_)) => "VARCHAR(2048) CHARACTER SET ascii COLLATE ascii_bin",
            Some(Value::Int(_) | Value::Null) | None => "BIGINT",
        });
    let is_bytes = |column: usize| rows.iter().any(|row| matches!(row[column], Value::Bytes(_)));
    let read: Vec<String> = (0..COLUMNS)
        .map(|column| if is_bytes(column) { format!("UNHEX(c{column})") } else { format!("c{column}") })
        .collect();
    let columns: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(column, of_type)| format!("c{column} {of_type} PATH '$[{column}]' ERROR ON ERROR"))
        .collect();
    let text =
        format!("SELECT {} FROM JSON_TABLE(?, '$[*]' COLUMNS ({})) AS input_rows", read.join(", "), columns.join(", "));
    let rows: Vec<Vec<serde_json::Value>> = rows.iter().map(|row| row.iter().map(json).collect()).collect();
    let json = serde_json::to_string(&rows).map_err(Error::json("writing the input rows of a query"))?;
    Ok((text, vec![json.into()]))
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Int(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}

/// `(?,?),(?,?)` for 2 rows of 2 columns.
pub(super) fn row_placeholders(rows: usize, columns: usize) -> String {
    let mut text = String::with_capacity(rows * (2 * columns + 2));
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ",(" });
        for column in 0..columns {
            text.push_str(if column == 0 { "?" } else { ",?" });
        }
        text.push(')');
    }
    text
}

/// Statements of up to this many rows have a text of their own for each number.
pub(super) const EXACT_ROWS_MAX: usize = 32;

/// Splits `total` rows into statements: `max` rows each as long as they last, then powers of two,
/// then whatever is left when that is little. Only few distinct texts arise, so that prepared
/// statements are found again, and a small batch is one trip.
pub(super) fn chunks(total: usize, max: usize) -> impl Iterator<Item = usize> {
    let mut left = total;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let count = if left <= EXACT_ROWS_MAX { left } else { max.min(1 << left.ilog2()) };
        left -= count;
        Some(count)
    })
}

/// Rows of one statement whose arguments shall have `bytes_max`, by the size of a middling row: a power
/// of two, so that few texts arise.
pub(super) fn rows_within<const COLUMNS: usize>(bytes_max: usize, rows: &[[Value; COLUMNS]]) -> usize {
    let bytes: usize = rows.iter().flatten().map(Value::wire_bytes).sum();
    let fitting = bytes_max / (bytes / rows.len().max(1)).max(1);
    1 << fitting.clamp(1, STATEMENT_ROWS_MAX).ilog2()
}

/// The number of rows of a statement that is to hold `count`, at most `max`, and may hold some twice.
pub(super) fn padded(count: usize, max: usize) -> usize {
    if count <= EXACT_ROWS_MAX { count } else { count.next_power_of_two().min(max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_row_with_few_distinct_sizes() {
        let mut distinct = std::collections::BTreeSet::new();
        for total in 0..2_000 {
            let sizes: Vec<_> = chunks(total, 512).collect();
            assert_eq!(sizes.iter().sum::<usize>(), total);
            assert!(sizes.iter().all(|size| *size <= 512));
            distinct.extend(sizes);
        }
        assert_eq!(distinct.len(), 32 + 4);
    }

    #[test]
    fn a_padded_statement_holds_all_its_rows() {
        for count in 1..=512 {
            assert!((count..=512).contains(&padded(count, 512)));
        }
        assert_eq!(padded(300, 300), 300);
    }

    #[test]
    fn rows_of_a_statement_keep_to_its_bytes() {
        let rows = |count: usize, bytes: usize| vec![[Value::Bytes(vec![0; bytes])]; count];
        assert_eq!(rows_within(usize::MAX, &rows(9, 1_000)), 512);
        assert_eq!(rows_within(48 * 1024, &rows(600, 300)), 128);
        assert_eq!(rows_within(48 * 1024, &rows(3, 200_000)), 1);
        assert_eq!(rows_within(48 * 1024, &rows(0, 0)), 512);
    }

    #[test]
    fn placeholders_have_the_asked_shape() {
        assert_eq!(row_placeholders(2, 3), "(?,?,?),(?,?,?)");
    }
}
