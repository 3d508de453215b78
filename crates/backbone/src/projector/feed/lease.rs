//! Which process runs a projector.
//!
//! Every command works on the data folder whether or not a server runs on it, so several
//! processes may hold the same projector. Compare-and-set keeps them right; the lease keeps them
//! from doing the work twice. It is a lock of the operating system: a killed process gives it up.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Db, Error, Result};

/// The right to run one projector of one embedded database.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    held: Option<File>,
}

impl Lease {
    /// Pause between tries to take a lease that another process holds.
    pub(super) const RETRY_GAP: Duration = Duration::from_millis(100);

    pub(super) fn new(db: &Db, projector: &str) -> Self {
        // Only the embedded log has leases, and it is in a file; Kafka hands out its partitions itself.
        let mut path = db.file().unwrap_or(Path::new("tidings")).as_os_str().to_owned();
        path.push(format!("-{projector}.lock"));
        Self { path: path.into(), held: None }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the lease if it is free; answers whether it is held now.
    pub(super) fn try_take(&mut self) -> Result<bool> {
        let failed = |source| Error::Lease { path: self.path.clone(), source };
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => self.held = Some(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(self.is_held())
    }
}
