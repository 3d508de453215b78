//! The few texts that engines write differently.

/// A database engine. MySQL and MariaDB take their place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite 3, embedded.
    Sqlite,
}

impl Engine {
    /// A table of `rows` × `columns` placeholders to stand in a FROM or WITH clause.
    pub fn values(self, rows: usize, columns: usize) -> String {
        match self {
            Self::Sqlite => format!("VALUES {}", row_placeholders(rows, columns)),
        }
    }

    /// An aggregate that gathers rows into one JSON array of arrays, `[[a,b],[a,b]]`; bytes must be
    /// given through `HEX`. A thousand rows that arrive one by one wake the reader a thousand times.
    pub fn json_rows(self, columns: &str) -> String {
        match self {
            Self::Sqlite => format!("json_group_array(json_array({columns}))"),
        }
    }

    /// `expression` as a whole number, whatever a damaged column holds.
    pub fn as_int(self, expression: &str) -> String {
        match self {
            Self::Sqlite => format!("CAST({expression} AS INTEGER)"),
        }
    }

    /// The clause that turns an INSERT into an upsert on the unique columns `key`: each of
    /// `assignments` is `column = expression`.
    pub fn on_conflict(self, key: &str, assignments: &str) -> String {
        match self {
            Self::Sqlite => format!("ON CONFLICT ({key}) DO UPDATE SET {assignments}"),
        }
    }

    /// In an upsert's assignment, the value that the INSERT would have written to `column`.
    pub fn inserted(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("excluded.{column}"),
        }
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
const EXACT_ROWS_MAX: usize = 32;

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
    fn placeholders_have_the_asked_shape() {
        assert_eq!(row_placeholders(2, 3), "(?,?,?),(?,?,?)");
    }
}
