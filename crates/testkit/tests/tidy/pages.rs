//! ARCHITECTURE.md and the pages of problems, checked against the code.

use std::collections::BTreeSet;

use crate::{
    check,
    workspace::{paths, read, root, sources, texts},
};

const ARCHITECTURE_LINES_MAX: usize = 340;

#[test]
fn the_architecture_is_short_and_its_invariants_are_tests() {
    let text = read("ARCHITECTURE.md");
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > ARCHITECTURE_LINES_MAX {
        findings.push(format!("ARCHITECTURE.md: {lines} lines; at most {ARCHITECTURE_LINES_MAX} are read"));
    }
    for name in tests_named(&text) {
        if !is_test(&name) {
            findings.push(format!("ARCHITECTURE.md: there is no test `{name}`; write [test: path::function]"));
        }
    }
    let invariants = text.split("\n## ").find(|section| section.starts_with("Invariants"));
    for item in invariants.unwrap_or_default().split("\n- ").skip(1) {
        if !item.contains("[test: ") {
            let first = item.lines().next().unwrap_or_default();
            findings.push(format!("ARCHITECTURE.md: `{first}`: name its test, as [test: path::function]"));
        }
    }
    check("ARCHITECTURE.md promises only what a test holds.", findings);
}

/// What stands in `[test: ...]`.
fn tests_named(text: &str) -> Vec<String> {
    text.split("[test: ").skip(1).filter_map(|rest| Some(rest.split_once(']')?.0.to_owned())).collect()
}

/// Whether there is a test of this name: `path::function`.
pub(crate) fn is_test(name: &str) -> bool {
    let Some((path, function)) = name.rsplit_once("::") else { return false };
    let Ok(text) = std::fs::read_to_string(root().join(path)) else { return false };
    let Some(offset) = text.find(&format!("fn {function}(")) else { return false };
    // A macro makes tests of those it lists.
    let unindented: String = text.split_inclusive('\n').map(str::trim_start).collect();
    let listed = unindented
        .split("\non_")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("!(")?.1))
        .filter_map(|rest| rest.split(')').next());
    if listed.flat_map(|list| list.split(',')).any(|name| name.trim() == function) {
        return true;
    }
    let mut above = text[..offset].lines().rev().map(str::trim);
    // `async` may stand before `fn`, comments and other attributes above it.
    let is_other = |line: &&str| ["//", "#[expect", "async", "pub"].iter().any(|start| line.starts_with(start));
    above.find(|line| !line.is_empty() && !is_other(line)).is_some_and(|line| line.contains("test"))
}

#[test]
fn every_problem_has_a_page_and_every_page_a_problem() {
    let declared = problems();
    let pages: BTreeSet<String> = paths()
        .iter()
        .filter_map(|path| Some(path.strip_prefix("docs/errors/")?.strip_suffix(".md")?.to_owned()))
        .filter(|page| page != "README")
        .collect();
    let mut findings = Vec::new();
    for name in declared.difference(&pages) {
        findings.push(format!("docs/errors/{name}.md: write it: what happened, and what to do as client and operator"));
    }
    for name in pages.difference(&declared) {
        findings
            .push(format!("docs/errors/{name}.md: no problem has this name; delete the page or declare the problem"));
    }
    for name in &pages {
        if !read(&format!("docs/errors/{name}.md")).contains(&format!("/problems/{name}`")) {
            findings.push(format!("docs/errors/{name}.md: say that its type is `/problems/{name}`"));
        }
    }
    // A test may ask for a page that is not there.
    for file in texts().iter().filter(|file| !file.path.contains("/tests/")) {
        for name in file.text.split("/problems/").skip(1).map(slug).filter(|name| !name.is_empty()) {
            if !pages.contains(&name) {
                findings.push(format!("{}: `/problems/{name}` has no page in docs/errors", file.path));
            }
        }
    }
    check("The `type` of every problem leads to a page.", findings);
}

/// The names that the server declares, as in `Busy "busy" SERVICE_UNAVAILABLE "Title",`.
fn problems() -> BTreeSet<String> {
    let sources = sources();
    let declaring = sources.iter().filter(|source| source.path.starts_with("crates/tidings/src/http/problem"));
    let names: BTreeSet<String> = declaring
        .flat_map(|source| source.bare.lines())
        .filter(|line| line.ends_with("\","))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let variant = words.next()?.chars().next()?.is_ascii_uppercase();
            let name = words.next()?.strip_prefix('"')?.strip_suffix('"')?.to_owned();
            let status = words.next()?.chars().all(|char| char.is_ascii_uppercase() || char == '_');
            (variant && status && slug(&name) == name).then_some(name)
        })
        .collect();
    assert!(!names.is_empty(), "the declarations of problems are no longer where this test reads them");
    names
}

/// The name at the start of `text`.
fn slug(text: &str) -> String {
    text.chars().take_while(|char| char.is_ascii_lowercase() || *char == '-').collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut findings = Vec::new();
    for page in texts().iter().filter(|file| file.path.ends_with(".md")) {
        let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let links = page.text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains(':')) {
            if !root().join(folder).join(link).exists() {
                findings.push(format!("{}: `{link}` is not there; mend the link or make what it leads to", page.path));
            }
        }
    }
    check("A link leads somewhere.", findings);
}
