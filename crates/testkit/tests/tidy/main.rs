//! The style of this repository as a test: `cargo test -p tidings-testkit --test tidy`.
//!
//! What can be counted is counted here, so that reviews can speak of the rest. Each finding says
//! where it is and what to do. STYLE.md has the reasons. The numbers are a ratchet: what is over
//! may shrink, never grow, and nothing new may be over.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod numbers;

mod dashboard;
mod dependencies;
mod names;
mod pages;
mod read_me;
mod rooms;
mod runbook;
mod settings;
mod words;

mod items;
mod mask;
mod modules;
mod workspace;

/// Fails with every finding at once, so that one run is enough to mend them all.
fn check(rule: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{rule}\n  {}\n", findings.join("\n  "));
}
