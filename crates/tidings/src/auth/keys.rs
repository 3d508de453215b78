//! The RSA key that signs own tokens, made at first start.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use aws_lc_rs::{
    digest,
    encoding::{AsDer as _, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey,
    jwk::{Jwk, PublicKeyUse, ThumbprintHash},
};
use tokio::sync::OnceCell;

use crate::{Error, Result};

const FILE_NAME: &str = "signing-key.pem";
const PEM_COLUMNS: usize = 64;

/// A key to sign and verify own tokens with.
pub struct SigningKey {
    /// Identifies the key in the header of its tokens: the RFC 7638 thumbprint.
    pub(super) kid: String,
    pub(super) encoding: EncodingKey,
    pub(super) decoding: DecodingKey,
    jwk: Jwk,
}

impl SigningKey {
    /// The public half, as `/.well-known/jwks.json` shows it.
    pub fn public(&self) -> &Jwk {
        &self.jwk
    }

    fn from_pem(pem: &[u8]) -> Result<Self> {
        let encoding = EncodingKey::from_rsa_pem(pem).map_err(Error::key("reading it"))?;
        let mut jwk = Jwk::from_encoding_key(&encoding, Algorithm::RS256).map_err(Error::key("reading it"))?;
        let kid = jwk.thumbprint(ThumbprintHash::SHA256).map_err(Error::key("naming it"))?;
        jwk.common.key_id = Some(kid.clone());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        let decoding = DecodingKey::from_jwk(&jwk).map_err(Error::key("reading it"))?;
        Ok(Self { kid, encoding, decoding, jwk })
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// The file of the signing key. The key is read, or made, when it is first asked for: making one
/// takes longer than a cold start may. Cheap to clone; clones share the key.
#[derive(Clone, Debug)]
pub struct KeyFile {
    folder: Arc<Path>,
    key: Arc<OnceCell<Arc<SigningKey>>>,
}

impl KeyFile {
    /// The key in `folder`, which is created when the key is.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into().into(), key: Arc::default() }
    }

    /// The key; made at the first call of all if the folder holds none.
    ///
    /// # Errors
    /// When the file cannot be read, is not an RSA key of at least 2,048 bits, or cannot be made.
    pub async fn get(&self) -> Result<Arc<SigningKey>> {
        let open = || async {
            let folder = Arc::clone(&self.folder);
            tokio::task::spawn_blocking(move || open(&folder).map(Arc::new))
                .await
                .unwrap_or_else(|source| Err(Error::PartEnded { part: "making the key", source: Some(source) }))
        };
        self.key.get_or_try_init(open).await.cloned()
    }
}

fn open(folder: &Path) -> Result<SigningKey> {
    let file = folder.join(FILE_NAME);
    match fs::read(&file) {
        Ok(pem) => SigningKey::from_pem(&pem),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(folder, &file)?;
            // Read back, since another process may have been first.
            let pem = fs::read(&file).map_err(Error::file("reading the signing key", &file))?;
            SigningKey::from_pem(&pem)
        }
        Err(error) => Err(Error::file("reading the signing key", &file)(error)),
    }
}

/// Makes a key under a name of its own and links it to its place. A link never replaces a file, so
/// of two processes that start at once one wins and both use its key; nobody sees half a key.
fn create(folder: &Path, file: &Path) -> Result<()> {
    let doing = "writing the signing key";
    super::secrets::create_private_folder(folder)?;
    let pem = generate()?;
    let unfinished = folder.join(format!("{FILE_NAME}.{}", super::secrets::random_text()));
    let written = write_private(&unfinished, pem.as_bytes()).and_then(|()| match fs::hard_link(&unfinished, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let removed = fs::remove_file(&unfinished);
    written.and(removed).map_err(Error::file(doing, file))?;
    // The name must survive a power cut too, or tokens already handed out would die with it.
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::file(doing, folder))
}

fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut opened = super::secrets::private_file().create_new(true).write(true).open(file)?;
    opened.write_all(content)?;
    opened.sync_all()
}

fn generate() -> Result<String> {
    let doing = "making it";
    let pair = KeyPair::generate(KeySize::Rsa2048).map_err(Error::key(doing))?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(Error::key(doing))?;
    let text = STANDARD.encode(der.as_ref());
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_COLUMNS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    Ok(pem)
}

/// SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    digest
}

/// `bytes` as text that fits into names and URLs.
pub(crate) fn url_text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = KeyFile::in_folder(folder.path().join("keys")).get().await.unwrap();
        let second = KeyFile::in_folder(folder.path().join("keys")).get().await.unwrap();
        assert_eq!(first.kid, second.kid);
    }

    #[tokio::test]
    async fn processes_that_start_at_once_agree_on_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let made = futures::future::join_all((0..3).map(|_| {
            let file = KeyFile::in_folder(&keys);
            async move { file.get().await.unwrap().kid.clone() }
        }))
        .await;
        assert!(made.iter().all(|kid| *kid == made[0]), "{made:?}");
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "no unfinished file stays");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_its_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        KeyFile::in_folder(folder.path().join("keys")).get().await.unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path().join("keys").join(FILE_NAME)), 0o600);
        assert_eq!(mode(folder.path().join("keys")), 0o700);
    }

    #[tokio::test]
    async fn a_file_that_is_no_key_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), "no key").unwrap();
        assert!(matches!(KeyFile::in_folder(folder.path()).get().await, Err(Error::Key { .. })));
    }
}
