//! Who is asking: signing key, tokens, an external issuer's keys, console logins.
//!
//! Tokens are RS256 and nothing else; the algorithm a token names is never trusted. Whatever is
//! secret is stored as a digest, or in a file that only its owner can read.

mod external;
mod keys;
mod secrets;
mod system_user;
mod tokens;

pub use external::ExternalKeys;
pub use keys::{KeyFile, SigningKey};
pub use secrets::{LOGIN_LINK_MINUTES, LOGIN_LINKS, Login, SESSIONS, Secrets};
pub use tokens::{Claims, Identity, Minting, Rejection, Role, Verifier, mint};

pub(crate) use keys::{sha256, url_text};
pub(crate) use secrets::{create_private_folder, private_file};
pub(crate) use system_user::system_user;
