//! Who waits to write, told between processes.
//!
//! SQLite's write lock goes to whoever asks when it is free, and a process that writes without a pause has taken it
//! again before another one asks: a command beside a busy server could wait for ever. So whoever waits holds a shared
//! lock on a file beside the database, and who is about to write looks at that lock first and lets others go before.
//! It is a lock of the operating system: a killed process gives it up. One that is frozen costs the others a short
//! pause before each transaction, and nothing more: the file decides nothing about who may write.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::limits::SQLITE_TURN_GAP;

/// The file beside a database; none where it cannot be used.
#[derive(Debug)]
pub(super) struct Turnstile {
    file: Option<File>,
    has_failed: AtomicBool,
}

/// Somebody who waits is seen by others until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'t>(&'t Turnstile);

impl Turnstile {
    pub(super) fn open(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-turn");
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut turnstile = Self { file: None, has_failed: AtomicBool::new(false) };
        match options.open(path) {
            Ok(file) => turnstile.file = Some(file),
            Err(error) => turnstile.note(&error),
        }
        turnstile
    }

    /// Waits for a moment where another process waits, longer than its pause between two tries.
    pub(super) async fn let_others_go_before(&self) {
        let Some(file) = &self.file else { return };
        match file.try_lock() {
            Ok(()) => unlock(self, file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(SQLITE_TURN_GAP).await,
            Err(TryLockError::Error(error)) => self.note(&error),
        }
    }

    /// Tells that this process waits; `None` while another one just looks, so that it is to be told once more.
    pub(super) fn wait(&self) -> Option<Waiting<'_>> {
        match self.file.as_ref()?.try_lock_shared() {
            Ok(()) => Some(Waiting(self)),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(error)) => {
                self.note(&error);
                None
            }
        }
    }

    fn note(&self, error: &io::Error) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "processes that write to this database cannot tell each other that they wait");
        }
    }
}

fn unlock(turnstile: &Turnstile, file: &File) {
    if let Err(error) = file.unlock() {
        turnstile.note(&error);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(file) = &self.0.file {
            unlock(self.0, file);
        }
    }
}
