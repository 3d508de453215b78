//! The runbook has a section for each alert, and each section's commands are run by a test.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    check,
    pages::is_test,
    workspace::{read, root},
};

const RUNBOOK: &str = "docs/runbook.md";

/// The sections by their anchors.
fn sections(text: &str) -> BTreeMap<String, &str> {
    let sections = text.split("\n## ").skip(1).map(|section| section.split("\n# ").next().unwrap_or_default());
    let anchor = |section: &str| section.lines().next().unwrap_or_default().to_lowercase().replace(' ', "-");
    sections.map(|section| (anchor(section), section)).collect()
}

#[test]
fn each_alert_has_a_section_whose_procedure_a_test_does() {
    let (alerts, text) = (read("ops/prometheus/alerts.yml"), read(RUNBOOK));
    let asked: BTreeSet<&str> =
        alerts.split("runbook_url: docs/runbook.md#").skip(1).filter_map(|rest| rest.lines().next()).collect();
    let sections = sections(&text);
    let mut findings = Vec::new();
    for anchor in asked.iter().filter(|anchor| !sections.contains_key(**anchor)) {
        findings.push(format!("{RUNBOOK}: an alert leads to `{anchor}`; write the section"));
    }
    for (anchor, section) in sections {
        let mut say = |what: &str| findings.push(format!("{RUNBOOK}: `{anchor}`: {what}"));
        if !asked.contains(&*anchor) {
            say("no alert leads here");
        }
        let named = section.split("<!-- test: ").skip(1).filter_map(|rest| Some(rest.split_once(" -->")?.0));
        let named: Vec<&str> = named.collect();
        if named.is_empty() {
            say("name the test that does what it says: <!-- test: path::function -->");
        }
        for name in named {
            let path = name.split("::").next().unwrap_or_default();
            let code = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            if !is_test(name) {
                say(&format!("there is no test `{name}`"));
            } else if !code.contains(&format!("Section::of(\"{anchor}\")")) {
                say(&format!("`{path}` does not do it: Section::of(\"{anchor}\")"));
            }
        }
        // Between fences stands what the test runs.
        let mut parts = section.split("```");
        while let (Some(prose), Some(block)) = (parts.next(), parts.next()) {
            if prose.contains("`tidings ") {
                say("commands stand in a block, so that the test runs them");
            }
            if !block.starts_with("sh\n") {
                say("a block of commands begins with ```sh");
            }
        }
        if section.rsplit("```").next().is_some_and(|prose| prose.contains("`tidings ")) {
            say("commands stand in a block, so that the test runs them");
        }
    }
    check("What the runbook says is what a test does.", findings);
}
