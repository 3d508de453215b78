//! The pages about metrics say what the code does.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use tidings::telemetry::metrics;
use tidings_backbone::telemetry::Kind;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(super) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// To write it anew: `TIDINGS_WRITE_PAGES=1 cargo test -p tidings --test it pages`.
#[test]
fn the_page_of_metrics_lists_what_the_code_has() {
    let mut rows = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for metric in metrics() {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(rows, "| `{}` | {kind} | {} | {} |", metric.name, labels.join(", "), metric.help).unwrap();
    }
    let page = read("docs/metrics.md");
    let (before, rest) = page.split_once("| metric |").expect("the page has the table");
    let (_, after) = rest.split_once("\n\n").expect("a line after it");
    let expected = format!("{before}{rows}\n{after}");
    if std::env::var_os("TIDINGS_WRITE_PAGES").is_some() {
        fs::write(root().join("docs/metrics.md"), &expected).unwrap();
    }
    assert_eq!(read("docs/metrics.md"), expected, "docs/metrics.md differs from the code; write it anew");
}

#[test]
fn every_name_in_the_code_is_described_once() {
    let mut named = BTreeSet::new();
    for entry in [
        "crates/backbone/src/telemetry.rs",
        "crates/community/src/telemetry.rs",
        "crates/tidings/src/http/telemetry.rs",
        "crates/tidings/src/http/process.rs",
    ] {
        let text = read(entry);
        for call in ["counter!(\"", "gauge!(\"", "histogram!(\""] {
            let names = text.split(call).skip(1).filter_map(|rest| rest.split_once('"'));
            named.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
    let described: Vec<String> = metrics().map(|metric| metric.name.to_owned()).collect();
    let once: BTreeSet<String> = described.iter().cloned().collect();
    assert_eq!(described.len(), once.len(), "a metric is described twice");
    // Named by a constant.
    named.insert("tidings_http_requests_in_flight".to_owned());
    assert_eq!(named, once);
}

#[test]
fn names_end_with_their_unit() {
    for metric in metrics() {
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| metric.name.ends_with(suffix));
        match metric.kind {
            Kind::Counter => assert!(ends(&["_total"]), "{}", metric.name),
            Kind::Histogram(_) => {
                assert!(ends(&["_seconds", "_bytes", "_commands", "_events", "_records"]), "{}", metric.name);
            }
            Kind::Gauge => assert!(!ends(&["_total"]), "{}", metric.name),
        }
    }
}
