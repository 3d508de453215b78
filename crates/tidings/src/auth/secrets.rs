//! Secrets that are handed out once and known again: console logins and one-time login links.
//!
//! Each is a file named by the digest of its secret, so that whoever reads the folder learns
//! nothing, a login survives a restart, and any process on the data folder can issue or withdraw one.
//! A secret is used up by removing its file, which only one process can do.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use tidings_backbone::Clock;
use tidings_event::Timestamp;

use super::keys::{sha256, url_text};
use crate::{Error, Result};

/// Folder of one-time login links, in the data folder.
pub const LOGIN_LINKS: &str = "login-links";
/// Folder of console logins, in the data folder.
pub const SESSIONS: &str = "sessions";
/// Lifetime of a login link, in minutes.
pub const LOGIN_LINK_MINUTES: u32 = 60;

/// Secrets of one kind that may be valid at once; issuing more removes those that end first.
const SECRETS_MAX: usize = 1_000;
/// For whom a login of an earlier version speaks, which says nothing of it.
const UNNAMED: &str = "admin";
const MILLIS_PER_MINUTE: i64 = 60_000;
/// Extension of a file that is being written; a whole one has none.
const NEW: &str = "new";
const RANDOM_BYTES: usize = 32;

/// What a secret was issued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Until when it is valid.
    pub ends: Timestamp,
    /// For whom it speaks, as the audit names him.
    pub subject: String,
}

/// Secrets of one kind. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Secrets {
    folder: PathBuf,
    clock: Clock,
}

impl Secrets {
    /// The secrets in `folder`, which is created when the first is issued.
    pub fn in_folder(folder: PathBuf, clock: Clock) -> Self {
        Self { folder, clock }
    }

    /// Whether no secret of this kind was ever issued here.
    pub fn is_new(&self) -> bool {
        !self.folder.exists()
    }

    /// Makes a secret that speaks for `subject` and is valid for `minutes`.
    pub fn issue(&self, minutes: u32, subject: &str) -> Result<String> {
        create_private_folder(&self.folder)?;
        self.clean_up()?;
        let secret = random_text();
        let ends = Timestamp(self.clock.now().0.saturating_add(i64::from(minutes) * MILLIS_PER_MINUTE));
        let file = self.file(&secret);
        // Renamed when it is whole: whoever cleans up meanwhile must not see half a file.
        let new = file.with_extension(NEW);
        let text = format!("{}\n{subject}", ends.0);
        let written = private_file()
            .create_new(true)
            .write(true)
            .open(&new)
            .and_then(|mut opened| io::Write::write_all(&mut opened, text.as_bytes()))
            .and_then(|()| fs::rename(&new, &file));
        written.map_err(Error::file("writing a login to", &file))?;
        Ok(secret)
    }

    /// What `secret` was issued for, or nothing when it is not valid.
    pub fn find(&self, secret: &str) -> Result<Option<Login>> {
        let login = read(&self.file(secret))?;
        Ok(login.filter(|login| login.ends > self.clock.now()))
    }

    /// Uses `secret` up. Of several who try at once, one is told what it was issued for.
    pub fn consume(&self, secret: &str) -> Result<Option<Login>> {
        let login = self.find(secret)?;
        Ok(if remove(&self.file(secret))? { login } else { None })
    }

    fn file(&self, secret: &str) -> PathBuf {
        self.folder.join(url_text(&sha256(secret.as_bytes())))
    }

    /// Removes what has ended, and what is too many.
    fn clean_up(&self) -> Result<()> {
        let doing = "cleaning up";
        let now = self.clock.now();
        let mut valid = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(Error::file(doing, &self.folder))? {
            let path = entry.map_err(Error::file(doing, &self.folder))?.path();
            let is_whole = path.extension().is_none();
            match read(&path)?.filter(|_| is_whole) {
                Some(login) if login.ends > now => valid.push((login.ends, path)),
                Some(_) => drop(remove(&path)?),
                // Somebody may be writing it just now, unless he was killed meanwhile.
                None if is_old(&path, now) => drop(remove(&path)?),
                None => {}
            }
        }
        valid.sort();
        let too_many = (valid.len() + 1).saturating_sub(SECRETS_MAX);
        valid.iter().take(too_many).try_for_each(|(_, path)| remove(path).map(drop))
    }
}

fn read(file: &Path) -> Result<Option<Login>> {
    match fs::read_to_string(file) {
        // What is not a number was not written here, or not completely: it admits nobody.
        Ok(text) => {
            let (ends, subject) = text.split_once('\n').unwrap_or((&text, UNNAMED));
            Ok(ends.parse().ok().map(|ends| Login { ends: Timestamp(ends), subject: subject.to_owned() }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("reading a login from", file)(error)),
    }
}

/// Whether a file was last written too long ago for anybody to be still at it.
fn is_old(file: &Path, now: Timestamp) -> bool {
    let modified = fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let millis = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    millis.is_some_and(|millis| now.0.saturating_sub(millis) > MILLIS_PER_MINUTE)
}

fn remove(file: &Path) -> Result<bool> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::file("removing", file)(error)),
    }
}

/// Text with 256 bits of randomness, fit for a URL. It is a secret, so the generator is the
/// cryptographic one and never a seeded one.
pub(super) fn random_text() -> String {
    let mut random = [0; RANDOM_BYTES];
    #[expect(clippy::expect_used, reason = "without randomness nothing secret may be made; it fails only at boot")]
    aws_lc_rs::rand::fill(&mut random).expect("the system gives randomness");
    url_text(&random)
}

/// Options to create a file that only its owner can read.
pub(crate) fn private_file() -> fs::OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "modes exist on Unix alone"))]
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder, and those above it, that only its owner can enter.
pub(crate) fn create_private_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(Error::file("creating the folder", folder))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn secrets(folder: &tempfile::TempDir) -> (Secrets, Clock) {
        let clock = Clock::manual(Timestamp(1_000_000));
        (Secrets::in_folder(folder.path().join("links"), clock.clone()), clock)
    }

    #[test]
    fn a_secret_is_used_up_by_one_of_many() {
        let folder = tempfile::tempdir().unwrap();
        let (links, _) = secrets(&folder);
        let secret = links.issue(60, "ada").unwrap();
        let admitted = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8).map(|_| scope.spawn(|| links.consume(&secret).unwrap())).collect();
            tries.into_iter().map(|tried| tried.join().unwrap()).filter(Option::is_some).count()
        });
        assert_eq!(admitted, 1);
        assert_eq!(links.consume(&secret).unwrap(), None);
    }

    #[test]
    fn a_secret_ends_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let (links, clock) = secrets(&folder);
        let secret = links.issue(60, "ada").unwrap();
        clock.advance(Duration::from_secs(3_599));
        assert_eq!(links.find(&secret).unwrap().unwrap().subject, "ada");
        clock.advance(Duration::from_secs(1));
        assert!(links.find(&secret).unwrap().is_none());
        assert_eq!(links.consume(&secret).unwrap(), None);
    }

    #[test]
    fn the_folder_does_not_tell_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let (links, _) = secrets(&folder);
        assert!(links.is_new());
        let secret = links.issue(60, "ada").unwrap();
        assert!(!links.is_new());
        for entry in fs::read_dir(&links.folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.to_string_lossy().contains(&secret));
            assert!(!fs::read_to_string(path).unwrap().contains(&secret));
        }
    }

    #[test]
    fn what_has_ended_is_removed_and_the_rest_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let (links, clock) = secrets(&folder);
        for _ in 0..3 {
            links.issue(1, "ada").unwrap();
        }
        clock.advance(Duration::from_secs(61));
        let secret = links.issue(60, "ada").unwrap();
        assert_eq!(fs::read_dir(&links.folder).unwrap().count(), 1);
        assert!(links.find(&secret).unwrap().is_some());
    }

    #[test]
    fn none_is_lost_where_many_are_issued_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (links, _) = secrets(&folder);
        let issued: Vec<String> = std::thread::scope(|scope| {
            let issue = || (0..50).map(|_| links.issue(60, "ada").unwrap()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(issue)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let lost = issued.iter().filter(|secret| links.find(secret).unwrap().is_none()).count();
        assert_eq!((issued.len(), lost), (400, 0));
    }

    #[test]
    fn half_a_file_is_left_to_its_writer_and_removed_when_he_is_long_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (links, clock) = secrets(&folder);
        links.issue(60, "ada").unwrap();
        let half = links.folder.join("half").with_extension(NEW);
        fs::write(&half, "").unwrap();
        let written = fs::metadata(&half).unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
        clock.advance(written.saturating_sub(Duration::from_millis(clock.now().0.unsigned_abs())));
        links.issue(60, "ada").unwrap();
        assert!(half.exists());
        clock.advance(Duration::from_secs(62));
        links.issue(60, "ada").unwrap();
        assert!(!half.exists());
    }

    #[test]
    fn a_login_of_an_earlier_version_admits_on() {
        let folder = tempfile::tempdir().unwrap();
        let (links, clock) = secrets(&folder);
        let secret = links.issue(60, "ada").unwrap();
        let ends = Timestamp(clock.now().0 + 1);
        fs::write(links.file(&secret), ends.0.to_string()).unwrap();
        assert_eq!(links.find(&secret).unwrap(), Some(Login { ends, subject: UNNAMED.to_owned() }));
    }

    #[test]
    fn wrong_and_hostile_secrets_are_simply_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let (links, _) = secrets(&folder);
        links.issue(60, "ada").unwrap();
        for secret in ["", "..", "../../etc/passwd", "\0", &"x".repeat(100_000)] {
            assert!(links.find(secret).unwrap().is_none());
            assert!(links.consume(secret).unwrap().is_none());
        }
    }
}
