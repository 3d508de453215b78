//! Crates from outside: each is used, has its reason, and comes from the default registry.

use std::collections::BTreeSet;

use crate::{
    check,
    rooms::{manifest, rooms},
    workspace::read,
};

#[test]
fn every_dependency_is_used_and_has_a_reason() {
    let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
    let declared = workspace["workspace"]["dependencies"].as_table().unwrap();
    let declared: BTreeSet<String> = declared.keys().filter(|name| !name.starts_with("tidings")).cloned().collect();
    let used: BTreeSet<String> = rooms().iter().flat_map(|room| manifest(room).into_values().flatten()).collect();
    let architecture = read("ARCHITECTURE.md");
    let reasons = architecture.split("\n## ").find(|section| section.starts_with("Crates")).unwrap_or_default();
    let named: BTreeSet<String> = reasons.split('`').skip(1).step_by(2).map(str::to_owned).collect();

    let mut findings = Vec::new();
    for name in &declared {
        if !used.contains(name) {
            findings.push(format!("Cargo.toml: `{name}` is used by no room; take it out"));
        } else if !named.contains(name) {
            findings.push(format!("ARCHITECTURE.md: say under \"Crates\" why `{name}` and no other"));
        }
    }
    for name in named.difference(&declared) {
        findings.push(format!("ARCHITECTURE.md: `{name}` is no longer a dependency; take it out"));
    }
    check("A crate from outside is worth a line.", findings);
}

#[test]
fn every_dependency_comes_from_the_default_registry() {
    let findings = read("Cargo.lock")
        .lines()
        .filter(|line| line.starts_with("source = ") && !line.contains("registry+https://github.com/rust-lang/"))
        .map(|line| format!("Cargo.lock: {line}"))
        .collect();
    check("A build needs nothing but Cargo's default registry.", findings);
}
