//! Which file declares which.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    items::{identifier, words},
    workspace::Source,
};

/// Files that Cargo builds by themselves.
pub(crate) fn is_root(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let file = parts.pop().unwrap_or_default();
    let folder = parts.pop().unwrap_or_default();
    let above = parts.pop().unwrap_or_default();
    let targets = ["bin", "tests", "benches", "examples"];
    match file {
        "lib.rs" | "main.rs" if folder == "src" => true,
        "build.rs" => folder != "src",
        "main.rs" => targets.contains(&above),
        _ => folder == "fuzz_targets" || targets.contains(&folder) && above != "src" || folder == "bin",
    }
}

/// Files that no `mod` leads to, however many files are on the way.
pub(crate) fn unreachable(sources: &[Source]) -> BTreeSet<&str> {
    let by_path: BTreeMap<&str, &Source> = sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut dead: BTreeSet<&str> = by_path.keys().copied().collect();
    let mut open: Vec<String> = dead.iter().filter(|path| is_root(path)).map(|path| (*path).to_owned()).collect();
    while let Some(path) = open.pop() {
        if dead.remove(path.as_str()) {
            open.extend(children(by_path[path.as_str()]));
        }
    }
    dead
}

/// Where the modules that a file declares may be: beside it, or in the folder of its name.
fn children(source: &Source) -> Vec<String> {
    let folder = if is_root(&source.path) {
        source.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    } else {
        source.path.strip_suffix(".rs").unwrap_or(&source.path)
    };
    declared(source).into_iter().map(|name| format!("{folder}/{name}.rs")).collect()
}

/// Names in `mod name;`.
fn declared(source: &Source) -> Vec<String> {
    words(&source.code, "mod")
        .filter_map(|offset| {
            let name = identifier(source.code.get(offset + 4..)?)?;
            source.code[offset + 4 + name.len()..].trim_start().starts_with(';').then_some(name)
        })
        .collect()
}

#[test]
fn roots_are_told_from_modules() {
    for root in ["crates/a/src/lib.rs", "crates/a/tests/it/main.rs", "crates/a/benches/path.rs", "crates/a/build.rs"] {
        assert!(is_root(root), "{root}");
    }
    for module in ["crates/a/src/b.rs", "crates/a/src/b/lib.rs", "crates/a/tests/it/b.rs", "crates/a/src/tests/b.rs"] {
        assert!(!is_root(module), "{module}");
    }
}
