//! The claim of a server on its data folder, and where that server is.

use std::{
    fs::{self, File, TryLockError},
    io::{Seek as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::Store;
use crate::{
    Error, Result,
    auth::{create_private_folder, private_file},
    config::Mode,
};

const SERVER_LOCK_FILE: &str = "server.lock";

impl Store {
    /// Claims the folder for a server. Embedded, one server works on a folder at a time, since buckets and
    /// caches live in its process. Distributed, any number may. The claim ends with the process, however it
    /// ends.
    ///
    /// # Errors
    /// When another server works on the folder, and may not.
    pub fn claim_for_server(&self, mode: Mode) -> Result<ServerClaim> {
        create_private_folder(&self.folder)?;
        let path = self.folder.join(SERVER_LOCK_FILE);
        let doing = "claiming";
        // Not truncated: it may tell where the server is that holds it.
        let file = private_file().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(Error::file(doing, &path))?;
        if mode == Mode::Distributed {
            return Ok(ServerClaim { file, path });
        }
        match file.try_lock() {
            Ok(()) => Ok(ServerClaim { file, path }),
            Err(TryLockError::WouldBlock) => Err(Error::AlreadyServing { folder: self.folder.clone() }),
            Err(TryLockError::Error(source)) => Err(Error::file(doing, path)(source)),
        }
    }
}

/// A folder claimed for a server, until it is dropped.
#[derive(Debug)]
pub struct ServerClaim {
    file: File,
    path: PathBuf,
}

impl ServerClaim {
    /// Tells other commands on the folder where the server is.
    ///
    /// # Errors
    /// When the file of the claim cannot be written.
    pub fn tell_address(&mut self, address: SocketAddr) -> Result<()> {
        let line = format!("{address}\n");
        let told = self.file.set_len(0).and_then(|()| self.file.rewind());
        let told = told.and_then(|()| self.file.write_all(line.as_bytes()));
        told.map_err(Error::file("telling the address in", &self.path))
    }
}

/// Where the server on a data folder is, or was when it last ran; of several, the one that started last.
/// The claim is not tried here: that could keep a server from starting.
pub fn server_address(folder: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(folder.join(SERVER_LOCK_FILE)).ok()?;
    text.trim().parse().ok()
}
