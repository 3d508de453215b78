//! The arrows between the rooms, and what each room must never know.

use std::collections::BTreeMap;

use crate::{
    check,
    items::words,
    workspace::{Source, read, root, sources},
};

/// Rooms in the order of their arrows: each may know those before it.
const ROOMS: [(&str, &[&str]); 6] = [
    ("event", &[]),
    ("binlog", &[]),
    ("backbone", &["event", "binlog"]),
    ("community", &["event", "backbone"]),
    ("tidings", &["event", "backbone", "community"]),
    // Built for tests alone, so it may know every room; no room may know it but in its tests.
    ("testkit", &["event", "binlog", "backbone", "community", "tidings"]),
];

/// Crates that would bring into a room what it must never know.
const UNKNOWN_CRATES: [(&str, &[&str]); 5] = [
    ("event", IO_CRATES),
    ("binlog", IO_CRATES),
    ("backbone", &["axum", "hyper", "tower", "tower-http", "clap"]),
    ("community", &["sqlx", "axum", "http", "hyper", "tower", "tower-http", "reqwest", "clap", "rdkafka"]),
    ("tidings", &["sqlx", "rdkafka", "redis", "mysql_async"]),
];
const IO_CRATES: &[&str] = &["tokio", "sqlx", "axum", "hyper", "reqwest", "rdkafka", "redis", "mysql_async", "rand"];

/// The words of features, none of which the backbone may know.
const SOCIAL_WORDS: [&str; 12] = [
    "follow",
    "followed",
    "follower",
    "following",
    "unfollow",
    "relation",
    "account",
    "post",
    "comment",
    "reaction",
    "notice",
    "community",
];

#[test]
fn arrows_between_rooms_are_those_of_the_picture() {
    let mut findings = Vec::new();
    for room in rooms() {
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            findings.push(format!("crates/{room}: a new room; draw it in ARCHITECTURE.md and in this test"));
            continue;
        };
        for (section, dependencies) in manifest(&room) {
            for dependency in dependencies {
                let other = if dependency == "tidings" { "tidings" } else { dependency.trim_start_matches("tidings-") };
                let is_room = dependency == "tidings" || dependency.starts_with("tidings-");
                let in_tests = section == "dev-dependencies" && other == "testkit";
                if is_room && !in_tests && !allowed.contains(&other) {
                    findings.push(format!("crates/{room}/Cargo.toml: [{section}] `{dependency}` is a forbidden arrow"));
                }
            }
        }
    }
    check("event <- backbone <- community <- tidings; testkit in tests alone.", findings);
}

#[test]
fn no_room_depends_on_what_it_must_never_know() {
    let mut findings = Vec::new();
    for (room, unknown) in UNKNOWN_CRATES.iter().filter(|(room, _)| root().join("crates").join(room).is_dir()) {
        for dependency in manifest(room).remove("dependencies").unwrap_or_default() {
            if unknown.contains(&dependency.as_str()) {
                findings.push(format!("crates/{room}/Cargo.toml: `{dependency}`: move what needs it to its room"));
            }
        }
    }
    check("A room is kept by what it does not know.", findings);
}

#[test]
fn the_event_room_does_no_io() {
    let io = ["std::fs", "std::net", "std::env", "std::process", "std::thread", "tokio::"];
    let findings = find(&shipped("event"), |source| &source.code, &io, "the event room does no I/O");
    check("`event` turns bytes into events and back; whoever calls it has the bytes.", findings);
}

#[test]
fn the_backbone_knows_no_social_word() {
    let mut findings = Vec::new();
    for source in shipped("backbone") {
        // The method of HTTP is no word about what people write.
        let lower = source.bare.replace("Method::POST", "").to_lowercase().replace('_', " ");
        for word in SOCIAL_WORDS {
            let places = words(&lower, word).map(|offset| format!("{}: `{word}`", source.place(offset)));
            findings.extend(places);
        }
    }
    check("The backbone is usable by strangers: what an event means is said in `community`.", findings);
}

#[test]
fn the_community_knows_no_http_and_no_log_of_its_own() {
    let unknown = ["axum", "hyper", "StatusCode", "HeaderMap", "rdkafka", "binlog"];
    let findings = find(&shipped("community"), |source| &source.code, &unknown, "this belongs to another room");
    check("A feature is SQL on a transaction handed in; routes and logs are elsewhere.", findings);
}

#[test]
fn the_rim_knows_no_sql() {
    let sql = ["SELECT ", "INSERT INTO", "DELETE FROM", "UPDATE ", "CREATE TABLE", "PRAGMA ", "sqlx"];
    let findings = find(&shipped("tidings"), |source| &source.bare, &sql, "ask a read or a command of the feature");
    check("Routes parse, authorise, call and map.", findings);
}

/// Where any of `needles` stands in the sources.
fn find(sources: &[Source], text: fn(&Source) -> &str, needles: &[&str], advice: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources {
        for needle in needles {
            for (offset, _) in text(source).match_indices(needle) {
                findings.push(format!("{}: `{}`: {advice}", source.place(offset), needle.trim()));
            }
        }
    }
    findings
}

fn shipped(room: &str) -> Vec<Source> {
    let folder = format!("crates/{room}/src/");
    sources().into_iter().filter(|source| source.path.starts_with(&folder) && !source.is_test()).collect()
}

/// The folders under `crates`.
pub(crate) fn rooms() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let names = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    names.filter(|name| root().join("crates").join(name).join("Cargo.toml").is_file()).collect()
}

/// The names in each dependency section of a room's manifest.
pub(crate) fn manifest(room: &str) -> BTreeMap<String, Vec<String>> {
    let manifest: toml::Table = read(&format!("crates/{room}/Cargo.toml")).parse().unwrap();
    let sections = manifest.iter().filter(|(name, _)| name.ends_with("dependencies"));
    sections.map(|(name, section)| (name.clone(), section.as_table().unwrap().keys().cloned().collect())).collect()
}
