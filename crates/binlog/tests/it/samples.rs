//! The binlogs in `tests/data`, and what is in them as text.

use std::fmt::Write;

use tidings_binlog::{Change, ColumnType, Decoder, Event, Events, Flavor, Header, MAGIC, Row, Rows, Value};

/// Every binlog and stream of a real server that there is: its name, who wrote it, and its events.
pub(crate) const ALL: &[(&str, Flavor, &[u8])] = &[
    ("mariadb/compressed", Flavor::Mariadb, include_bytes!("../data/mariadb/compressed.binlog")),
    ("mariadb/gtids", Flavor::Mariadb, include_bytes!("../data/mariadb/gtids.binlog")),
    ("mariadb/gtids_2", Flavor::Mariadb, include_bytes!("../data/mariadb/gtids_2.binlog")),
    ("mariadb/images", Flavor::Mariadb, include_bytes!("../data/mariadb/images.binlog")),
    ("mariadb/load_data", Flavor::Mariadb, include_bytes!("../data/mariadb/load_data.binlog")),
    ("mariadb/numbers", Flavor::Mariadb, include_bytes!("../data/mariadb/numbers.binlog")),
    ("mariadb/numbers_no_log", Flavor::Mariadb, include_bytes!("../data/mariadb/numbers_no_log.binlog")),
    ("mariadb/old_times", Flavor::Mariadb, include_bytes!("../data/mariadb/old_times.binlog")),
    ("mariadb/partitions", Flavor::Mariadb, include_bytes!("../data/mariadb/partitions.binlog")),
    ("mariadb/stream", Flavor::Mariadb, include_bytes!("../data/mariadb/stream.events")),
    ("mariadb/stream_none", Flavor::Mariadb, include_bytes!("../data/mariadb/stream_none.events")),
    ("mariadb/texts", Flavor::Mariadb, include_bytes!("../data/mariadb/texts.binlog")),
    ("mariadb/texts_minimal", Flavor::Mariadb, include_bytes!("../data/mariadb/texts_minimal.binlog")),
    ("mariadb/times", Flavor::Mariadb, include_bytes!("../data/mariadb/times.binlog")),
    ("mariadb/transactions", Flavor::Mariadb, include_bytes!("../data/mariadb/transactions.binlog")),
    ("mariadb/two_tables", Flavor::Mariadb, include_bytes!("../data/mariadb/two_tables.binlog")),
    ("mariadb/own_types", Flavor::Mariadb, include_bytes!("../data/mariadb/own_types.binlog")),
    ("mysql/compressed", Flavor::Mysql, include_bytes!("../data/mysql/compressed.binlog")),
    ("mysql/gtids", Flavor::Mysql, include_bytes!("../data/mysql/gtids.binlog")),
    ("mysql/gtids_2", Flavor::Mysql, include_bytes!("../data/mysql/gtids_2.binlog")),
    ("mysql/images", Flavor::Mysql, include_bytes!("../data/mysql/images.binlog")),
    ("mysql/json", Flavor::Mysql, include_bytes!("../data/mysql/json.binlog")),
    ("mysql/large_json", Flavor::Mysql, include_bytes!("../data/mysql/large_json.binlog")),
    ("mysql/load_data", Flavor::Mysql, include_bytes!("../data/mysql/load_data.binlog")),
    ("mysql/numbers", Flavor::Mysql, include_bytes!("../data/mysql/numbers.binlog")),
    ("mysql/numbers_minimal", Flavor::Mysql, include_bytes!("../data/mysql/numbers_minimal.binlog")),
    ("mysql/partitions", Flavor::Mysql, include_bytes!("../data/mysql/partitions.binlog")),
    ("mysql/stream", Flavor::Mysql, include_bytes!("../data/mysql/stream.events")),
    ("mysql/stream_none", Flavor::Mysql, include_bytes!("../data/mysql/stream_none.events")),
    ("mysql/stream_v2", Flavor::Mysql, include_bytes!("../data/mysql/stream_v2.events")),
    ("mysql/texts", Flavor::Mysql, include_bytes!("../data/mysql/texts.binlog")),
    ("mysql/texts_minimal", Flavor::Mysql, include_bytes!("../data/mysql/texts_minimal.binlog")),
    ("mysql/times", Flavor::Mysql, include_bytes!("../data/mysql/times.binlog")),
    ("mysql/transactions", Flavor::Mysql, include_bytes!("../data/mysql/transactions.binlog")),
    ("mysql/two_tables", Flavor::Mysql, include_bytes!("../data/mysql/two_tables.binlog")),
    ("mysql/own_types", Flavor::Mysql, include_bytes!("../data/mysql/own_types.binlog")),
];

/// Both servers' names.
pub(crate) const SERVERS: [&str; 2] = ["mariadb", "mysql"];

/// Who wrote a sample, and its events without the file's first bytes.
pub(crate) fn sample(name: &str) -> (Flavor, &'static [u8]) {
    let (_, flavor, bytes) = ALL.iter().find(|(known, ..)| *known == name).unwrap();
    (*flavor, bytes.strip_prefix(&MAGIC).unwrap_or(bytes))
}

/// Decodes all events of a sample, those inside of payloads in their place.
pub(crate) fn each(name: &str, mut see: impl FnMut(&Header, &Event<'_>)) {
    let (flavor, bytes) = sample(name);
    let mut decoder = Decoder::new(flavor);
    for event in Events::new(bytes) {
        let (header, body) = event.unwrap();
        let event = decoder.decode(&header, body).unwrap();
        see(&header, &event);
        if let Event::TransactionPayload(payload) = event {
            let events = payload.events(1 << 20).unwrap();
            for event in Events::new(&events) {
                let (header, body) = event.unwrap();
                see(&header, &decoder.decode_inner(&header, body).unwrap());
            }
        }
    }
}

/// What `see` finds in the events of a sample.
pub(crate) fn find<T>(name: &str, mut see: impl FnMut(&Event<'_>) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    each(name, |_, event| found.extend(see(event)));
    found
}

/// One line for each row of a sample: `+` for an insert, `-` for a delete, `~` for an update, and the
/// values, an update's before and after parted by `=>`.
pub(crate) fn rows(name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    each(name, |_, event| {
        if let Event::Rows(rows) = event {
            lines.extend(rows.reader().map(|row| line(rows, &row.unwrap())));
        }
    });
    lines
}

pub(crate) fn line(rows: &Rows<'_>, row: &Row<'_>) -> String {
    let values = |values: &[Value<'_>]| {
        let kinds = rows.table().columns().iter().map(|column| column.kind);
        let texts: Vec<String> = kinds.zip(values).map(|(kind, value)| text(kind, value)).collect();
        texts.join(" | ")
    };
    match rows.change() {
        Change::Insert => format!("+ {}", values(&row.after)),
        Change::Delete => format!("- {}", values(&row.before)),
        Change::Update => format!("~ {} => {}", values(&row.before), values(&row.after)),
    }
}

/// A value as text that tells values of different types apart.
pub(crate) fn text(kind: ColumnType, value: &Value<'_>) -> String {
    let digits = usize::from(kind.fraction_digits());
    match value {
        Value::Absent => "absent".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => format!("{number}u"),
        Value::Float(number) => format!("{number:?}f"),
        Value::Double(number) => format!("{number:?}"),
        Value::Decimal(number) => format!("{number}d"),
        Value::Bytes(bytes) => quoted(bytes),
        Value::Compressed(compressed) => format!("compressed {}", quoted(&compressed.value(1 << 20).unwrap())),
        Value::Bit(bits) => format!("b{bits:b}"),
        Value::Year(year) => format!("year {year}"),
        Value::Date(date) => date.to_string(),
        Value::Time(time) => format!("{time:.digits$}"),
        Value::DateTime(moment) => format!("{moment:.digits$}"),
        Value::Timestamp(moment) => format!("{:.digits$}Z", moment.to_utc()),
        Value::Enum(number) => format!("enum {number}"),
        Value::Set(bits) => format!("set {bits:b}"),
        Value::Json(json) => format!("json {}", json.to_text().unwrap()),
        Value::JsonDiffs(diffs) => {
            let mut text = "diffs".to_owned();
            for diff in diffs.iter() {
                let diff = diff.unwrap();
                let value = diff.value.map_or(String::new(), |value| value.to_text().unwrap());
                write!(text, " {:?} {} {value};", diff.operation, diff.path).unwrap();
            }
            text
        }
        Value::Geometry(bytes) => format!("geometry {}", hex(bytes)),
        Value::Vector(bytes) => format!("vector {}", hex(bytes)),
    }
}

/// Text in quotes; bytes that are no text, or have zero bytes, in hexadecimal digits. Long repetitions
/// are cut.
fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) && text.chars().count() <= 40 => format!("'{text}'"),
        Ok(text) if !bytes.contains(&0) => {
            let start: String = text.chars().take(4).collect();
            format!("'{start}...' of {}", text.chars().count())
        }
        _ => format!("x{}", hex(bytes)),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
