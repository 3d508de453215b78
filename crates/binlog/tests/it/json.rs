//! MySQL's JSON.

use serde_json::{Value as Document, json};
use tidings_binlog::{Event, Value};

use crate::samples::{find, rows};

#[test]
fn documents_are_written_as_mysql_itself_writes_them() {
    let rows = rows("mysql/json");
    // As `SELECT j FROM documents` answers.
    let expected = [
        "+ 1 | json {\"\": null, \"f\": false, \"t\": true, \"bb\": {\"o\": {}, \"ä\": []}, \
         \"text\": \"a\\\"b\\\\c\\n\\u0001 🚀\"} | 1 | json 1",
        "+ 2 | json [0, -1, 32767, -32768, 65535, 65536, 2147483647, -2147483648, 4294967295, 4294967296, \
         9223372036854775807, -9223372036854775808, 18446744073709551615] | 2 | json 2",
        r#"+ 3 | json [0.1, 1.0, -1.5e300, 1e20, 123456789.25] | 3 | json "s""#,
        "+ 4 | json [12.340, -0.50000000000000000000, \"2024-02-29\", \"-12:34:56.500000\", \
         \"2024-02-29 23:59:59.123456\", \"base64:type15:AP8=\"] | 4 | null",
    ];
    assert_eq!(rows[..4], expected.map(|row| row.replace("\\u0001", "\\u0001\u{7f}")));
    let nested = format!("+ 5 | json {}{} | 5 | null", "[".repeat(100), "]".repeat(100));
    assert_eq!(rows[4], nested);
}

#[test]
fn partial_updates_come_as_differences() {
    let rows = rows("mysql/json");
    let afters: Vec<&str> = rows[6..].iter().map(|row| row.split(" => ").nth(1).unwrap()).collect();
    let expected = [
        r#"6 | diffs Replace $.a[1] "two"; | 6 | diffs"#,
        r#"6 | diffs Remove $.c ; Insert $.d {"e": null}; | 8 | diffs"#,
        r#"6 | diffs | 8 | diffs Replace $.x 22;"#,
        r#"6 | diffs | 9 | diffs"#,
    ];
    assert_eq!(afters.len(), expected.len());
    for (after, expected) in afters.iter().zip(expected) {
        // In which order the differences of one statement come is the server's choice.
        let sorted = |row: &str| {
            let mut words: Vec<String> = row.split([' ', ';']).map(str::to_owned).collect();
            words.sort_unstable();
            words
        };
        assert_eq!(sorted(after), sorted(expected), "{after}");
    }
    // The image before an update is whole.
    assert!(rows[6].starts_with(r#"~ 6 | json {"a": [1, 2, 3], "b": "bbb"#));
}

#[test]
fn documents_of_more_than_64_kib_are_read() {
    let texts = find("mysql/large_json", |event| {
        let Event::Rows(rows) = event else {
            return None;
        };
        match rows.reader().next()?.unwrap().after[1] {
            Value::Json(json) => Some(json.to_text().unwrap()),
            _ => None,
        }
    });
    let document: Document = serde_json::from_str(&texts[0]).unwrap();
    let expected = json!({ "long": "x".repeat(70_000), "n": [100_000, 70_000], "o": { "small": -1 } });
    assert_eq!(document, expected);
}
