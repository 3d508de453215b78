//! Who waits to write, told between processes.
//!
//! SQLite's write lock goes to whoever asks when it is free, and a process that writes without a pause has taken it
//! again before another one asks: a command beside a busy server could wait for ever. So whoever waits holds a shared
//! lock on a file beside the database, and who is about to write looks at that lock first and lets others go before.
//! It is a lock of the operating system: a killed process gives it up. One that is frozen costs the others a short
//! pause before each transaction, and nothing more: the file decides nothing about who may write.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use crate::{Error, Result, limits::SQLITE_TURN_GAP};

/// The file beside a database.
#[derive(Debug)]
pub(super) struct Turnstile {
    path: PathBuf,
    file: File,
}

/// Somebody who waits is seen by others until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'t>(&'t Turnstile);

impl Turnstile {
    pub(super) fn open(database: &Path) -> Result<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-turn");
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// Waits for a moment where another process waits, longer than its pause between two tries.
    pub(super) async fn let_others_go_before(&self) -> Result<()> {
        match self.file.try_lock() {
            Ok(()) => self.file.unlock().map_err(|source| self.failed(source)),
            Err(TryLockError::WouldBlock) => {
                tokio::time::sleep(SQLITE_TURN_GAP).await;
                Ok(())
            }
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    /// Tells that this process waits; `None` while another one just looks, so that it is to be told once more.
    pub(super) fn wait(&self) -> Result<Option<Waiting<'_>>> {
        match self.file.try_lock_shared() {
            Ok(()) => Ok(Some(Waiting(self))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.path.clone(), source }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.file.unlock() {
            tracing::warn!(%error, "others believe that this process waits to write");
        }
    }
}
