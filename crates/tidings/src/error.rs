//! The one error of this crate.

use std::path::PathBuf;

/// What went wrong, with its cause kept as [`std::error::Error::source`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("failed while {doing} `{}`", path.display())]
    File {
        /// What was being done, as a participle: "reading the signing key".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The address could not be served on.
    #[error("cannot listen on {address}; `--listen 127.0.0.1:0` lets the system choose a free port")]
    Listen {
        /// The address asked for.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused something that needs no file.
    #[error("failed while {doing}")]
    System {
        /// What was being done, as a participle.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A key of the configuration is unknown or has a wrong value.
    #[error("configuration key `{key}` (from {origin}): {reason}")]
    Config {
        /// Where the value was written: a file, a variable of the environment.
        origin: String,
        /// The dotted key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A configuration file is not TOML.
    #[error("{origin} is not valid TOML")]
    ConfigSyntax {
        /// The file.
        origin: String,
        /// What the TOML reader said.
        source: toml::de::Error,
    },
    /// The client that sends traces could not be made.
    #[error("traces cannot be sent as `[telemetry]` says")]
    Tracing {
        /// What its library said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The signing key could not be made, read or used.
    #[error("the signing key failed while {doing}")]
    Key {
        /// What was being done, as a participle.
        doing: &'static str,
        /// What the cryptographic library said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another server works on the same data folder.
    #[error("another `tidings serve` works on `{}`", folder.display())]
    AlreadyServing {
        /// The data folder.
        folder: PathBuf,
    },
    /// A part of the server ended although it was not asked to.
    #[error("{part} ended unexpectedly")]
    PartEnded {
        /// Which part.
        part: &'static str,
        /// What ended it.
        source: Option<tokio::task::JoinError>,
    },
    /// A command was not committed.
    #[error(transparent)]
    Submit(#[from] tidings_backbone::ledger::SubmitError),
    /// The backbone failed.
    #[error(transparent)]
    Backbone(#[from] tidings_backbone::Error),
    /// A feature failed.
    #[error(transparent)]
    Community(#[from] tidings_community::Error),
    /// The command was asked for something impossible; the message says what to do.
    #[error("{0}")]
    Usage(String),
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the same may succeed later: a service is away or busy.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Backbone(error) | Self::Community(tidings_community::Error::Backbone(error)) => error.is_transient(),
            _ => false,
        }
    }

    /// For `map_err` on what a file or folder answers.
    pub fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }

    /// For `map_err` on what the cryptographic library answers.
    pub fn key<E>(doing: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Key { doing, source: source.into() }
    }
}
