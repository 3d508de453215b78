//! Lines that are too wide, and words that have no place in the repository.

use crate::{
    check,
    workspace::{sources, texts},
};

const COLUMNS_MAX: usize = 120;

/// Folders of one machine. Each is in pieces, so that this file does not contain it.
const MACHINE_PATHS: [&[&str]; 5] =
    [&["/wo", "rk/"], &["/ro", "ot/"], &["/ho", "me/"], &["/Us", "ers/"], &["/tmp/", "team"]];

/// Hosts of package registries: which one is used is the machine's affair.
const REGISTRY_HOSTS: [&[&str]; 7] = [
    &["crates", ".io"],
    &["npmjs", ".org"],
    &["pypi", ".org"],
    &["golang", ".org"],
    &["maven", ".org"],
    &["deb.debian", ".org"],
    &["artifact", "ory"],
];

#[test]
fn lines_fit_the_window() {
    let mut findings = Vec::new();
    for source in sources() {
        for (number, (line, (bare, code))) in
            source.text.lines().zip(source.bare.lines().zip(source.code.lines())).enumerate()
        {
            let columns = line.chars().count();
            // An inline snapshot is what the program wrote, so it cannot be broken.
            let is_inside_text = !bare.trim().is_empty() && code.trim().is_empty() && !bare.ends_with('\\');
            let is_snapshot = is_inside_text || [" @\"", " @r"].iter().any(|start| bare.contains(start));
            if columns > COLUMNS_MAX && !is_snapshot {
                findings.push(format!("{}:{}: {columns} columns; break it", source.path, number + 1));
            }
        }
    }
    check(&format!("Lines have at most {COLUMNS_MAX} columns."), findings);
}

#[test]
fn the_repository_speaks_of_the_product_alone() {
    let mut findings = Vec::new();
    // What lists packages by the names that they have there.
    let is_list = |path: &str| ["Cargo.lock", "go.mod", "go.sum"].iter().any(|name| path.ends_with(name));
    for file in texts().iter().filter(|file| !is_list(&file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, number + 1);
            for word in MACHINE_PATHS.map(<[_]>::concat) {
                if line.match_indices(&word).any(|(offset, _)| begins_a_path(&line[..offset])) {
                    findings.push(format!("{place}: `{word}` is a folder of one machine; use a path from the root"));
                }
            }
            for word in REGISTRY_HOSTS.map(<[_]>::concat) {
                if line.contains(&word) {
                    findings.push(format!("{place}: `{word}` is a package registry; name the package alone"));
                }
            }
        }
    }
    check("A clone works on any machine.", findings);
}

/// Whether a `/` after `before` is the first of its path.
fn begins_a_path(before: &str) -> bool {
    !before.ends_with(|char: char| char.is_alphanumeric() || ".-_*$}/".contains(char))
}
