//! The alerts, read as Prometheus reads them, on what the processes really tell.
//!
//! A test looks at /metrics now and then, and each look stands for the minutes before it: gauges were all that time
//! what they are now, counters rose evenly. So what takes seconds here takes the minutes that the rules ask for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tidings_testkit::World;

/// What was seen, one look after the other.
#[derive(Default)]
pub(super) struct Watch {
    looks: Vec<Look>,
}

struct Look {
    minutes: u32,
    /// What each process told that answered.
    told: BTreeMap<String, Told>,
}

struct Told {
    /// Each start has another one.
    url: String,
    /// By the series' name and labels.
    values: BTreeMap<String, f64>,
    /// Those of them that only rise.
    counters: BTreeSet<String>,
}

impl Watch {
    /// Looks at every process that runs; what it tells has held for `minutes`.
    pub(super) async fn look(&mut self, world: &World, minutes: u32) {
        let urls: BTreeMap<_, _> = world.addresses().into_iter().collect();
        let pages = world.metrics().await;
        let told = pages.into_iter().map(|(part, page)| (format!("{part:?}"), read(&page, urls[&part].clone())));
        self.looks.push(Look { minutes, told: told.collect() });
    }

    /// These alerts fire.
    pub(super) fn fires(&self, alerts: &[&str]) {
        self.check(alerts, 1);
    }

    /// These alerts do not, or no longer.
    pub(super) fn is_quiet(&self, alerts: &[&str]) {
        self.check(alerts, 0);
    }

    fn check(&self, alerts: &[&str], firing: u8) {
        // The last minute that the looks tell of.
        let now = self.looks.iter().map(|look| look.minutes).sum::<u32>() - 1;
        let mut text = format!(
            "rule_files: ['{}']\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n",
            root().join("ops/prometheus/alerts.yml").display()
        );
        for (series, samples) in self.series() {
            let series = series.replace('\'', "''");
            writeln!(text, "      - series: '{series}'\n        values: '{}'", samples.join(" ")).unwrap();
        }
        text.push_str("    promql_expr_test:\n");
        for alert in alerts {
            writeln!(
                text,
                "      - expr: '(count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}) > bool 0) or vector(0)'\n\
                 \x20       eval_time: {now}m\n        exp_samples: [{{labels: '{{}}', value: {firing}}}]"
            )
            .unwrap();
        }
        let file = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
        fs::write(file.path(), &text).unwrap();
        let mut promtool = Command::new(root().join("scripts/promtool"));
        let output = promtool.args(["test", "rules"]).arg(file.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success(), "{alerts:?} should be {firing}: {said}\n{}", self.last());
    }

    /// Every series with a sample for each minute, as Prometheus would have scraped them.
    fn series(&self) -> BTreeMap<String, Vec<String>> {
        let mut series = BTreeMap::new();
        let instances: BTreeSet<&String> = self.looks.iter().flat_map(|look| look.told.keys()).collect();
        for instance in instances {
            let labels = format!("instance=\"{instance}\",job=\"tidings\"");
            let told: Vec<Option<&Told>> = self.looks.iter().map(|look| look.told.get(instance)).collect();
            series.insert(format!("up{{{labels}}}"), self.is_up(&told));
            let names: BTreeSet<&String> = told.iter().flatten().flat_map(|told| told.values.keys()).collect();
            for name in names {
                let full = match name.strip_suffix('}') {
                    Some(open) => format!("{open},{labels}}}"),
                    None => format!("{name}{{{labels}}}"),
                };
                series.insert(full, self.samples(name, &told));
            }
        }
        series
    }

    fn is_up(&self, told: &[Option<&Told>]) -> Vec<String> {
        let mut is_known = false;
        let mut samples = Vec::new();
        for (look, told) in self.looks.iter().zip(told) {
            is_known |= told.is_some();
            let sample = if told.is_some() { "1" } else { "0" };
            let sample = if is_known { sample } else { "_" };
            samples.extend((0..look.minutes).map(|_| sample.to_owned()));
        }
        samples
    }

    fn samples(&self, name: &str, told: &[Option<&Told>]) -> Vec<String> {
        let mut samples = Vec::new();
        for (index, look) in self.looks.iter().enumerate() {
            let now = told[index].and_then(|told| Some((told, *told.values.get(name)?)));
            let Some((process, to)) = now else {
                // Whoever no longer answers has no series from then on.
                samples.extend((0..look.minutes).map(|minute| if minute == 0 { "stale" } else { "_" }.to_owned()));
                continue;
            };
            let before = index.checked_sub(1).and_then(|before| told[before]);
            let from = match before {
                _ if index == 0 || !process.counters.contains(name) => to,
                Some(before) if before.url == process.url => before.values.get(name).copied().unwrap_or_default(),
                // It has been started since, and has counted from nothing.
                _ => 0.0,
            };
            let at = |minute| from + (to - from) * f64::from(minute) / f64::from(look.minutes);
            samples.extend((1..=look.minutes).map(|minute| at(minute).to_string()));
        }
        samples
    }

    /// What was told at the last look, for whoever reads why a test failed.
    fn last(&self) -> String {
        let mut text = String::new();
        for (instance, told) in self.looks.last().into_iter().flat_map(|look| &look.told) {
            told.values.iter().for_each(|(series, value)| writeln!(text, "{instance} {series} {value}").unwrap());
        }
        text
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a page of metrics tells of those that some alert asks for.
fn read(page: &str, url: String) -> Told {
    let rules = fs::read_to_string(root().join("ops/prometheus/alerts.yml")).unwrap();
    let words = rules.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("tidings_")).collect();
    let (mut values, mut counters, mut only_rises) = (BTreeMap::new(), BTreeSet::new(), false);
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            only_rises = !kind.ends_with(" gauge");
            continue;
        }
        let Some((series, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        if asked.contains(series.split('{').next().unwrap_or_default()) {
            values.insert(series.to_owned(), value.parse().unwrap());
            if only_rises {
                counters.insert(series.to_owned());
            }
        }
    }
    Told { url, values, counters }
}
