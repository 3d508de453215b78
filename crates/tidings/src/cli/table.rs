//! Tables for people: columns as wide as their widest cell, numbers to the right.

/// Writes `rows` under `header`. A column is numeric if each of its cells is digits or `-`.
pub(super) fn table<const COLUMNS: usize>(header: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let cells = |column: usize| rows.iter().map(move |row| row[column].as_str());
    let is_numeric = |column| cells(column).all(|cell| cell == "-" || cell.bytes().all(|byte| byte.is_ascii_digit()));
    let columns: [(usize, bool); COLUMNS] = std::array::from_fn(|column| {
        let width = cells(column).chain([header[column]]).map(|cell| cell.chars().count()).max();
        (width.unwrap_or(0), is_numeric(column))
    });
    let line = |cells: [&str; COLUMNS]| {
        let padded = cells.iter().zip(columns).map(|(cell, (width, is_numeric))| {
            if is_numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let lines = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(header)).chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [["a".to_owned(), "7".to_owned()], ["long name".to_owned(), "12345".to_owned()]];
        assert_eq!(table(["what", "count"], &rows), "what       count\na              7\nlong name  12345");
    }

    #[test]
    fn a_table_without_rows_is_its_header() {
        assert_eq!(table(["a", "b"], &[]), "a  b");
    }
}
