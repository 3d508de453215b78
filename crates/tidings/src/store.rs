//! What is kept: the database in the data folder, and the files beside it. Shared by all commands,
//! whether or not a server works on the same folder.

use std::{
    fs::{self, File, TryLockError},
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use tidings_backbone::{Clock, Db, EventIds, db::BACKBONE_MIGRATIONS, log::Log};

use crate::{
    Error, Result,
    auth::{KeyFile, LOGIN_LINKS, SESSIONS, Secrets, create_private_folder, private_file},
    config,
};

const DATABASE_FILE: &str = "tidings.db";
const KEYS_FOLDER: &str = "keys";
const SERVER_LOCK_FILE: &str = "server.lock";

/// The data folder, opened. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    /// The database, with every migration applied.
    pub db: Db,
    /// The one clock.
    pub clock: Clock,
    /// Makes event ids.
    pub ids: EventIds,
    folder: PathBuf,
}

impl Store {
    /// Opens the folder, which is created at need, with the machine's clock.
    ///
    /// # Errors
    /// When the folder or its database cannot be used.
    pub async fn open(folder: &Path) -> Result<Self> {
        Self::open_with(folder, Clock::system(), EventIds::from_os()).await
    }

    /// Opens a folder that has data; for commands that only look, which must not make a mistyped
    /// name a new, empty folder.
    ///
    /// # Errors
    /// When there is no database in the folder, or it cannot be used.
    pub async fn open_existing(folder: &Path) -> Result<Self> {
        require_data(folder)?;
        Self::open(folder).await
    }

    /// Opens the folder with the clock and ids that are passed in.
    ///
    /// # Errors
    /// When the folder or its database cannot be used.
    pub async fn open_with(folder: &Path, clock: Clock, ids: EventIds) -> Result<Self> {
        create_private_folder(folder)?;
        let file = folder.join(DATABASE_FILE);
        // The database gives its companions the mode it has itself. A folder that was there before may
        // be open to everybody.
        private_file().create(true).append(true).open(&file).map_err(Error::file("creating", &file))?;
        let db = Db::open_sqlite(&file).await?;
        let migrations: Vec<_> = BACKBONE_MIGRATIONS.iter().chain(tidings_community::MIGRATIONS).copied().collect();
        db.migrate(&migrations).await?;
        Ok(Self { db, clock, ids, folder: folder.to_owned() })
    }

    /// The log: committed events in order.
    pub fn log(&self) -> Log {
        Log::Embedded(self.db.clone())
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Claims the folder for a server; one server works on a folder at a time, since buckets and
    /// caches live in its process. The claim ends with the process, however it ends.
    ///
    /// # Errors
    /// When another server works on the folder.
    pub fn claim_for_server(&self) -> Result<ServerClaim> {
        let path = self.folder.join(SERVER_LOCK_FILE);
        let doing = "claiming";
        // Not truncated: it may tell where the server is that holds it.
        let file = private_file().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(Error::file(doing, &path))?;
        match file.try_lock() {
            Ok(()) => Ok(ServerClaim { file, path }),
            Err(TryLockError::WouldBlock) => Err(Error::AlreadyServing { folder: self.folder.clone() }),
            Err(TryLockError::Error(source)) => Err(Error::file(doing, path)(source)),
        }
    }
}

/// An error where the folder has no data: a mistyped name must not become a new, empty folder.
///
/// # Errors
/// When there is no database in the folder.
pub fn require_data(folder: &Path) -> Result<()> {
    require(folder, &folder.join(DATABASE_FILE))
}

/// An error where there is no such folder, unless it is the one that is used when nothing else is said.
///
/// # Errors
/// When the folder is another, and not there.
pub fn require_folder(folder: &Path) -> Result<()> {
    let is_default = config::load(None, [])?.data.dir == folder;
    if is_default { Ok(()) } else { require(folder, folder) }
}

fn require(folder: &Path, wanted: &Path) -> Result<()> {
    if wanted.try_exists().map_err(Error::file("looking for", wanted))? {
        return Ok(());
    }
    let shown = folder.display();
    Err(Error::Usage(format!("there is no data in `{shown}`; `--data DIR` says where to look")))
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
        let told = self.file.set_len(0).and_then(|()| self.file.write_all(line.as_bytes()));
        told.map_err(Error::file("telling the address in", &self.path))
    }
}

/// Where the server on a data folder is, or was when it last ran. The claim is not tried here: that
/// could keep a server from starting.
pub fn server_address(folder: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(folder.join(SERVER_LOCK_FILE)).ok()?;
    text.trim().parse().ok()
}

/// The signing key of a data folder.
pub fn signing_key(folder: &Path) -> KeyFile {
    KeyFile::in_folder(folder.join(KEYS_FOLDER))
}

/// The one-time login links of a data folder.
pub fn login_links(folder: &Path, clock: &Clock) -> Secrets {
    Secrets::in_folder(folder.join(LOGIN_LINKS), clock.clone())
}

/// The console logins of a data folder.
pub fn sessions(folder: &Path, clock: &Clock) -> Secrets {
    Secrets::in_folder(folder.join(SESSIONS), clock.clone())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn in_a_folder_that_everybody_may_enter_every_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        let _claim = store.claim_for_server().unwrap();
        store.log().extent().await.unwrap();
        let mut seen = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
            seen.push(entry.file_name().into_string().unwrap());
        }
        seen.sort();
        assert_eq!(seen, [SERVER_LOCK_FILE, DATABASE_FILE, "tidings.db-shm", "tidings.db-wal"]);
    }
}
