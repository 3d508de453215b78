//! Where an import is, noted after each batch, so that the next run continues there.
//!
//! A note is about one file with one choice of columns and directions, and about one history of
//! the database: it holds the last event that was committed, and counts only while the log has that
//! event at that place. A data folder that was restored or emptied meanwhile is imported anew.
//! The note is written after the commit, so it never claims more than there is.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tidings_backbone::log::Log;

use super::source::Source;
use crate::{
    Error, Result,
    auth::{create_private_folder, private_file},
    store::Store,
};

const FOLDER: &str = "imports";

/// The place for the note of one import.
pub(super) struct Resume {
    log: Log,
    /// `None` for what can be read only once, so that there is nothing to continue.
    path: Option<PathBuf>,
    /// For people who look into the folder.
    file: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    file: String,
    next_line: u64,
    last_event: Option<LastEvent>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastEvent {
    offset: i64,
    id: String,
}

impl Resume {
    pub(super) fn of(store: &Store, source: &Source, mutual: bool) -> Self {
        let (from, to) = source.csv.columns();
        let path = source.digest.map(|digest| {
            let name = Sha256::new().chain_update(digest).chain_update(format!("{from},{to},{mutual}")).finalize();
            let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
            store.folder().join(FOLDER).join(name).with_extension("json")
        });
        Self { log: store.log(), path, file: source.path.display().to_string() }
    }

    /// Whether the next run can continue where this one ends.
    pub(super) fn is_possible(&self) -> bool {
        self.path.is_some()
    }

    /// The line to begin at; 0 for the beginning.
    pub(super) async fn next_line(&self) -> Result<u64> {
        let Some(note) = self.path.as_deref().map(read).transpose()?.flatten() else {
            return Ok(0);
        };
        let is_of_this_history = match &note.last_event {
            // With no event there is nothing to know the history by.
            None => false,
            Some(event) => match event.id.parse() {
                Ok(id) => self.log.find(id).await?.is_some_and(|found| found.offset.0 == event.offset),
                Err(_) => false,
            },
        };
        Ok(if is_of_this_history { note.next_line } else { 0 })
    }

    /// Notes that every line before `next_line` is dealt with, durably.
    pub(super) async fn note(&self, next_line: u64) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let last = self.log.tail(1).await?.pop();
        let last_event = last.map(|last| LastEvent { offset: last.offset.0, id: last.event.id.to_string() });
        write(path, &Note { file: self.file.clone(), next_line, last_event })
    }

    /// The import is finished: the next run begins at the beginning.
    pub(super) fn forget(&self) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file("removing", path)(error)),
            _ => Ok(()),
        }
    }
}

/// A note that cannot be understood is none: then the import begins at the beginning, which is safe.
fn read(path: &Path) -> Result<Option<Note>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("reading", path)(error)),
    }
}

/// Renaming replaces the old note whole, whenever the process is killed.
fn write(path: &Path, note: &Note) -> Result<()> {
    if let Some(folder) = path.parent() {
        create_private_folder(folder)?;
    }
    let text = serde_json::to_vec_pretty(note).map_err(|error| Error::file("writing", path)(error.into()))?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = private_file().create(true).truncate(true).write(true).open(&new);
    written.and_then(|mut file| file.write_all(&text)).map_err(Error::file("writing", &new))?;
    fs::rename(&new, path).map_err(Error::file("replacing", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ledgers::Ledgers, load::Loader};

    async fn register_somebody(store: &Store) {
        let (ledgers, running) = Ledgers::start(store);
        Loader::new(store.db.clone(), ledgers).register(["1".parse().unwrap()]).await.unwrap();
        running.drain().await;
    }

    fn note(next_line: u64) -> Note {
        let last_event = Some(LastEvent { offset: 7, id: "0190b36e-0000-7000-8000-000000000000".to_owned() });
        Note { file: "follows.csv".to_owned(), next_line, last_event }
    }

    #[test]
    fn a_note_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("imports/abc.json");
        assert_eq!(read(&path).unwrap(), None);
        for line in [4_098, 8_194] {
            write(&path, &note(line)).unwrap();
            assert_eq!(read(&path).unwrap(), Some(note(line)));
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_torn_note_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc.json");
        for text in ["", "{", "{\"file\":\"f\"}", "{\"file\":\"f\",\"next_line\":-1,\"last_event\":null}"] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), None, "{text}");
        }
    }

    #[tokio::test]
    async fn a_note_counts_only_in_the_history_it_was_made_in() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("follows.csv");
        fs::write(&csv, "from,to\n1,2\n").unwrap();
        let source = Source::open(&csv, &crate::follows_csv::Columns::Usual).unwrap();
        let store = Store::open_embedded(&folder.path().join("data")).await.unwrap();
        let resume = Resume::of(&store, &source, false);
        assert_eq!(resume.next_line().await.unwrap(), 0);
        resume.note(3).await.unwrap();
        assert_eq!(resume.next_line().await.unwrap(), 0, "an empty log could be that of any history");

        register_somebody(&store).await;
        resume.note(3).await.unwrap();
        assert_eq!(resume.next_line().await.unwrap(), 3);
        // The same file with both directions is another import.
        assert_eq!(Resume::of(&store, &source, true).next_line().await.unwrap(), 0);

        write(resume.path.as_ref().unwrap(), &note(3)).unwrap();
        assert_eq!(resume.next_line().await.unwrap(), 0, "the log has no such event");

        resume.forget().unwrap();
        resume.forget().unwrap();
        assert_eq!(resume.next_line().await.unwrap(), 0);
    }
}
