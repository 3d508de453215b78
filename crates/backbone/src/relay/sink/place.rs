//! A checkpoint in a file of this machine, for sinks that cannot keep it beside the records.
//!
//! The file is replaced as a whole: written beside, put on disk, renamed. A lock of the operating system
//! on a file beside it keeps a second relay of this machine out; a killed process gives it up.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use super::WriteError;
use crate::{Error, Result};

/// The file of a checkpoint, and the lock on it.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    lock: Option<File>,
}

impl Place {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), lock: None }
    }

    pub(super) fn is_held(&self) -> bool {
        self.lock.is_some()
    }

    /// Takes the lock and reads the checkpoint.
    ///
    /// # Errors
    /// [`Error::Lease`] while another process has the lock.
    pub(super) fn take_over(&mut self) -> Result<Option<String>> {
        if self.lock.is_none() {
            self.lock = Some(lock(&self.beside("lock"))?);
        }
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::File { path: self.path.clone(), source }),
        }
    }

    /// Puts dead letters, one JSON object a line, on disk beside the checkpoint.
    pub(super) fn append_dead_letters(&self, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.beside("dead-letters.jsonl");
        let append = || {
            let mut file = options().append(true).open(&path)?;
            file.write_all(lines)?;
            file.sync_all()
        };
        append().map_err(|source| Error::File { path: path.clone(), source })
    }

    /// Replaces the checkpoint, on disk when this returns.
    pub(super) fn store(&self, checkpoint: &str) -> Result<()> {
        let new = self.beside("new");
        let store = || {
            let mut file = options().write(true).truncate(true).open(&new)?;
            file.write_all(checkpoint.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)?;
            // The rename is on disk when the folder is.
            match self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                Some(folder) => File::open(folder)?.sync_all(),
                None => File::open(".")?.sync_all(),
            }
        };
        store().map_err(|source| Error::File { path: self.path.clone(), source })
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.path.as_os_str().to_owned();
        path.push(".");
        path.push(ending);
        path.into()
    }
}

/// What a failure to use the files means for a write: nothing moves until they can be used again.
pub(super) fn retriable(error: Error) -> WriteError {
    WriteError::Retriable(error)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn lock(path: &Path) -> Result<File> {
    let failed = |source| Error::Lease { path: path.to_owned(), source };
    let file = options().append(true).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(failed(std::io::Error::new(ErrorKind::WouldBlock, "another relay of this machine has it")))
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
