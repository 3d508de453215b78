//! Names of files and modules, and files that nothing leads to.

use crate::{
    check,
    items::{identifier, words},
    modules::unreachable,
    workspace::{paths, sources},
};

/// Names that say nothing of what is inside, so that everything ends up there.
const EMPTY_NAMES: [&str; 10] =
    ["utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "stuff", "types"];

#[test]
fn names_say_what_is_inside() {
    let mut findings = Vec::new();
    for path in paths() {
        for part in path.split('/') {
            let name = part.split('.').next().unwrap_or_default();
            if EMPTY_NAMES.contains(&name) {
                findings.push(format!("{path}: `{name}` may hold anything; name it after what it knows"));
            }
        }
    }
    for source in sources() {
        for offset in words(&source.code, "mod") {
            let name = source.code.get(offset + 4..).and_then(identifier).unwrap_or_default();
            if EMPTY_NAMES.contains(&name.as_str()) {
                findings.push(format!("{}: `mod {name}`: name it after what it knows", source.place(offset)));
            }
        }
    }
    check("A name says what is inside.", findings);
}

#[test]
fn no_file_is_called_mod() {
    let findings = paths()
        .into_iter()
        .filter(|path| path.ends_with("/mod.rs"))
        .map(|path| format!("{path}: move it to the file named after its folder, beside the folder"))
        .collect();
    check("A module is `name.rs` with its parts in `name/`: ten tabs called mod.rs help nobody.", findings);
}

#[test]
fn no_file_is_dead() {
    let sources = sources();
    let dead = unreachable(&sources);
    let mut findings: Vec<String> =
        dead.iter().map(|path| format!("{path}: no `mod` leads to it; declare or delete it")).collect();
    let pathed = sources.iter().flat_map(|source| {
        source.code.match_indices("#[path").map(|(offset, _)| format!("{}: drop `#[path]`", source.place(offset)))
    });
    findings.extend(pathed);
    check("Every Rust file is built.", findings);
}
