//! The default configuration, which is its own documentation, and the migrations.

use std::collections::BTreeSet;

use crate::{
    check,
    workspace::{paths, read, sources},
};

#[test]
fn every_setting_has_a_comment() {
    let mut findings = Vec::new();
    let text = read("tidings.default.toml");
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let is_setting = !line.starts_with('#') && line.contains('=');
        if is_setting && !before.starts_with("# ") {
            findings.push(format!("tidings.default.toml:{}: `{line}`: say what it means, and its unit", number + 1));
        }
        before = line;
    }
    check("The default configuration is the documentation.", findings);
}

#[test]
fn every_migration_is_registered_once() {
    let sources = sources();
    let mut numbers = BTreeSet::new();
    let mut findings = Vec::new();
    for path in paths().iter().filter(|path| path.starts_with("migrations/")) {
        let mut parts = path.split('/').skip(1);
        let (Some(engine), Some(file), None) = (parts.next(), parts.next(), parts.next()) else {
            findings.push(format!("{path}: put it at migrations/ENGINE/NNNN_name.sql"));
            continue;
        };
        let number = file.split('_').next().and_then(|number| number.parse::<u32>().ok());
        let Some(number) = number.filter(|_| file.ends_with(".sql")) else {
            findings.push(format!("{path}: name it NNNN_name.sql"));
            continue;
        };
        if !numbers.insert((engine.to_owned(), number)) {
            findings.push(format!("{path}: number {number} is taken; take the next one of the room's range"));
        }
        let is_registered = sources.iter().any(|source| {
            let included = source.bare.contains(&format!("migrations/{engine}/{file}\")"));
            included && source.code.contains(&format!("version: {number},"))
        });
        if !is_registered {
            findings.push(format!("{path}: include it in its room's MIGRATIONS as version {number}"));
        }
    }
    check("Every migration file is applied.", findings);
}
