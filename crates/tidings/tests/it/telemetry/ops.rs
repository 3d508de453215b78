//! The dashboard and the alerts in `ops/`, read as their tools read them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tidings::telemetry::metrics;
use tidings_backbone::telemetry::Kind;

use super::pages::read;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn promtool(arguments: &[&str]) {
    let output = Command::new(root().join("scripts/promtool")).args(arguments).current_dir(root()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&said));
}

/// Words of `text` that are names of metrics.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let words = text.split(|char: char| !is_part(char));
    words.filter(|word| word.starts_with("tidings_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The metric behind a name, as expressions have it.
fn is_told(name: &str) -> bool {
    metrics().any(|metric| match metric.kind {
        Kind::Histogram(_) => {
            name.strip_prefix(metric.name).is_some_and(|rest| ["_bucket", "_sum", "_count"].contains(&rest))
        }
        Kind::Counter | Kind::Gauge => name == metric.name,
    })
}

#[test]
fn the_alerts_are_read_by_prometheus_and_each_fires_where_it_must() {
    promtool(&["check", "rules", "ops/prometheus/alerts.yml"]);
    promtool(&["check", "config", "--syntax-only", "ops/prometheus/prometheus.yml"]);
    promtool(&["test", "rules", "ops/prometheus/alerts.test.yml"]);
}

#[test]
fn each_alert_says_what_it_is_what_to_do_and_is_tried() {
    let (alerts, tests) = (read("ops/prometheus/alerts.yml"), read("ops/prometheus/alerts.test.yml"));
    for name in names(&alerts).union(&names(&tests)) {
        assert!(is_told(name), "no process tells `{name}`");
    }
    let runbook = fs::read_to_string(root().join("docs/runbook.md")).ok();
    let anchors: Option<BTreeSet<String>> = runbook.map(|page| {
        let headings = page.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-")).collect()
    });
    let mut seen = BTreeSet::new();
    for alert in alerts.split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap();
        assert!(seen.insert(name), "{name} is there twice");
        let severity = alert.split_once("severity: ").unwrap().1.split('}').next().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        for part in ["summary: ", "description: ", "runbook_url: docs/runbook.md#"] {
            assert_eq!(alert.matches(part).count(), 1, "{name}: {part}");
        }
        let anchor = alert.split_once("runbook.md#").unwrap().1.lines().next().unwrap();
        if let Some(anchors) = &anchors {
            assert!(anchors.contains(anchor), "{name}: docs/runbook.md has no section `{anchor}`");
        }
        for how in ["fires", "is quiet"] {
            assert!(tests.contains(&format!("- name: {name} {how}\n")), "alerts.test.yml: `{name} {how}` is not tried");
        }
    }
    assert!(seen.len() > 30, "{}", seen.len());
}

/// Every panel of the dashboard, those within rows too.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let listed = |of: &'_ Value| of["panels"].as_array().cloned().unwrap_or_default().len();
    let outer = dashboard["panels"].as_array().unwrap();
    assert!(outer.iter().all(|panel| listed(panel) == 0), "rows are not collapsed");
    outer.iter().collect()
}

#[test]
fn the_dashboard_is_one_that_grafana_can_show() {
    let dashboard: Value = serde_json::from_str(&read("ops/grafana/tidings.json")).unwrap();
    for (field, is_right) in [
        ("uid", dashboard["uid"] == "tidings"),
        ("title", dashboard["title"].is_string()),
        ("schemaVersion", dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 36)),
        ("id", dashboard.get("id").is_none_or(Value::is_null)),
        ("refresh", dashboard["refresh"].is_string()),
        ("time", dashboard["time"]["from"].is_string() && dashboard["time"]["to"].is_string()),
    ] {
        assert!(is_right, "{field}: {}", dashboard[field]);
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<&str> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(variables, ["datasource", "job"]);
    let mut ids = BTreeSet::new();
    let mut taken: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for panel in panels(&dashboard) {
        let (id, title) = (panel["id"].as_u64().unwrap(), panel["title"].as_str().unwrap());
        assert!(ids.insert(id), "{title}: the id {id} is there twice");
        let place = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        let (x, y, w, h) = (place("x"), place("y"), place("w"), place("h"));
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}: {}", panel["gridPos"]);
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert_eq!(taken.insert(cell, id), None, "{title} lies over another panel");
        }
        let kind = panel["type"].as_str().unwrap();
        assert!(["row", "stat", "timeseries"].contains(&kind), "{title}: {kind}");
        if kind == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
        let targets = panel["targets"].as_array().unwrap();
        let letters: BTreeSet<&str> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert_eq!((letters.len(), targets.is_empty()), (targets.len(), false), "{title}");
    }
}

#[test]
fn every_expression_of_the_dashboard_is_one_of_metrics_that_are_told() {
    let dashboard: Value = serde_json::from_str(&read("ops/grafana/tidings.json")).unwrap();
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    let (mut shown, mut number) = (BTreeSet::new(), 0);
    for panel in panels(&dashboard) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            // As Grafana does before it asks.
            let asked = expression.replace("$__rate_interval", "1m").replace("$job", "tidings");
            writeln!(rules, "      - record: panel:{number}\n        expr: {}", Value::from(asked)).unwrap();
            number += 1;
            for name in names(expression) {
                assert!(is_told(&name), "{}: no process tells `{name}`", panel["title"]);
                shown.insert(name.trim_end_matches("_bucket").to_owned());
            }
        }
    }
    assert!(number > 80, "{number}");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), rules).unwrap();
    promtool(&["check", "rules", file.path().to_str().unwrap()]);
    let all: BTreeSet<String> = metrics().map(|metric| metric.name.to_owned()).collect();
    let hidden: Vec<&String> = all.difference(&shown).collect();
    assert!(hidden.is_empty(), "no panel shows {hidden:?}");
}
