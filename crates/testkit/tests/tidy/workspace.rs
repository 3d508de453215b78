//! The files of this repository.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::mask::{Masks, mask};

/// A text file and where it is, from the root, with `/`.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text without its comments.
    pub(crate) bare: String,
    /// The text without its comments and literals.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(file: Text) -> Self {
        let Masks { bare, code } = mask(&file.text);
        Self { path: file.path, text: file.text, bare, code }
    }

    /// Whether the file is only built for tests, benchmarks or fuzzing.
    pub(crate) fn is_test(&self) -> bool {
        let path = &self.path;
        path.starts_with("fuzz/")
            || path.starts_with("crates/testkit/")
            || path.contains("/tests/")
            || path.contains("/benches/")
            || path.ends_with("/tests.rs")
    }

    /// `path:line` of an offset, as editors understand it.
    pub(crate) fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.line(offset))
    }

    /// The line of an offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
    }
}

/// The root of the workspace. Asked at run time, since a cached build may come from another checkout.
pub(crate) fn root() -> PathBuf {
    let crate_folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&crate_folder).ancestors().nth(2).unwrap().to_owned()
}

/// A file that the repository must have.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path} cannot be read: {error}"))
}

/// Every Rust file: those under version control, and new ones that are not ignored.
pub(crate) fn sources() -> Vec<Source> {
    let sources: Vec<_> = texts().into_iter().filter(|file| file.path.ends_with(".rs")).map(Source::new).collect();
    assert!(!sources.is_empty(), "no Rust file was found under {}", root().display());
    sources
}

/// Every text file: those under version control, and new ones that are not ignored.
pub(crate) fn texts() -> Vec<Text> {
    let root = root();
    // A file that is not text (a picture) is none of tidy's business.
    let read = |path: String| Some(Text { text: std::fs::read_to_string(root.join(&path)).ok()?, path });
    paths().into_iter().filter_map(read).collect()
}

/// Every file: those under version control, and new ones that are not ignored.
pub(crate) fn paths() -> Vec<String> {
    let root = root();
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let listed = Command::new("git").args(arguments).current_dir(&root).output();
    let mut paths: Vec<String> = match listed {
        Ok(listed) if listed.status.success() => {
            String::from_utf8(listed.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect()
        }
        // An archive without its history.
        _ => {
            let mut found = Vec::new();
            walk(&root, "", &mut found);
            found
        }
    };
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    paths.dedup();
    paths
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let built = ["target", "corpus", "artifacts", "tidings-data", ".git"].contains(&name.as_str());
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            if !built {
                walk(&entry.path(), &format!("{path}/"), found);
            }
        } else {
            found.push(path);
        }
    }
}
