//! What is kept: the database, and the files in the data folder. Shared by all commands, whether or not a
//! server works on the same data.
//!
//! Embedded, the database is a file in the folder. Distributed, it is a server's, and the folder holds what
//! several `tidings api` share: the signing key, console logins and login links.

mod claim;
mod services;

use std::path::{Path, PathBuf};

use tidings_backbone::{Clock, Db, EventIds, db::BACKBONE_MIGRATIONS, log::KafkaLog, log::Log};
use tidings_community::relation::hot::Hot;

pub use claim::{ServerClaim, server_address};
pub use services::kafka_options;

use crate::{
    Error, Result,
    auth::{KeyFile, LOGIN_LINKS, SESSIONS, Secrets, create_private_folder, private_file},
    config::{self, Config, Mode, RelayMode},
};

const DATABASE_FILE: &str = "tidings.db";
const KEYS_FOLDER: &str = "keys";

/// What is kept, opened. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    /// The database, with every migration applied.
    pub db: Db,
    /// The one clock.
    pub clock: Clock,
    /// Makes event ids.
    pub ids: EventIds,
    /// What is kept in Redis, where there is one.
    pub hot: Option<Hot>,
    log: Log,
    folder: PathBuf,
}

impl Store {
    /// Opens what the configuration names, with the machine's clock. The data folder is created at need.
    ///
    /// # Errors
    /// When the folder or the database cannot be used.
    pub async fn open(config: &Config) -> Result<Self> {
        Self::open_with(config, Clock::system(), EventIds::from_os()).await
    }

    /// Opens what has data; for commands that only look, which must not make a mistyped name a new,
    /// empty folder.
    ///
    /// # Errors
    /// When there is no database in the folder, or it cannot be used.
    pub async fn open_existing(config: &Config) -> Result<Self> {
        require_data(config)?;
        Self::open(config).await
    }

    /// Opens an embedded database in a folder, whatever the configuration of a server would be.
    ///
    /// # Errors
    /// When the folder or its database cannot be used.
    pub async fn open_embedded(folder: &Path) -> Result<Self> {
        let db = open_file(folder).await?;
        let log = Log::Embedded(db.clone());
        Self::on(db, log, folder, Clock::system(), EventIds::from_os()).await
    }

    /// Opens with the clock and ids that are passed in.
    ///
    /// # Errors
    /// When the folder or the database cannot be used.
    pub async fn open_with(config: &Config, clock: Clock, ids: EventIds) -> Result<Self> {
        let folder = &config.data.dir;
        let (db, log) = match config.mode() {
            Mode::Embedded => {
                let db = open_file(folder).await?;
                (db.clone(), Log::Embedded(db))
            }
            Mode::Distributed => {
                let db = services::open_database(config).await?;
                let log = KafkaLog::new(db.clone(), kafka_options(config)).relayed_by(config.relay_group());
                let is_polled = config.relay.mode == RelayMode::Poll;
                (db, Log::Kafka(if is_polled { log.polled() } else { log }))
            }
        };
        let store = Self::on(db, log, folder, clock, ids).await?;
        Ok(Self { hot: services::open_hot(config)?, ..store })
    }

    async fn on(db: Db, log: Log, folder: &Path, clock: Clock, ids: EventIds) -> Result<Self> {
        let migrations: Vec<_> = BACKBONE_MIGRATIONS.iter().chain(tidings_community::MIGRATIONS).copied().collect();
        db.migrate(&migrations).await?;
        Ok(Self { db, clock, ids, hot: None, log, folder: folder.to_owned() })
    }

    /// The log: committed events in order.
    pub fn log(&self) -> Log {
        self.log.clone()
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The database of a folder, which is created at need.
async fn open_file(folder: &Path) -> Result<Db> {
    create_private_folder(folder)?;
    let file = folder.join(DATABASE_FILE);
    // The database gives its companions the mode it has itself. A folder that was there before may
    // be open to everybody.
    private_file().create(true).append(true).open(&file).map_err(Error::file("creating", &file))?;
    Ok(Db::open_sqlite(&file).await?)
}

/// An error where there is no data: a mistyped name must not become a new, empty folder. A database server
/// says by itself what it does not have.
///
/// # Errors
/// When there is no database in the folder.
pub fn require_data(config: &Config) -> Result<()> {
    let folder = &config.data.dir;
    match config.mode() {
        Mode::Embedded => require(folder, &folder.join(DATABASE_FILE)),
        Mode::Distributed => Ok(()),
    }
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

    use std::fs;

    use super::*;

    #[tokio::test]
    async fn in_a_folder_that_everybody_may_enter_every_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let store = Store::open_embedded(folder.path()).await.unwrap();
        let _claim = store.claim_for_server(Mode::Embedded).unwrap();
        store.log().extent().await.unwrap();
        let mut seen = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
            seen.push(entry.file_name().into_string().unwrap());
        }
        seen.sort();
        assert_eq!(seen, ["server.lock", DATABASE_FILE, "tidings.db-shm", "tidings.db-turn", "tidings.db-wal"]);
    }
}
