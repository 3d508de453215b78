//! How a connection is made.

use sqlx::{ConnectOptions as _, Connection as _, MySqlConnection, mysql::MySqlConnectOptions, mysql::MySqlSslMode};

const UNSEEN: &str = "the server wants the password itself, which it has not seen since it started, and that is sent \
                      over TLS alone: turn TLS on in the server, or allow it in the address (ssl-mode)";

/// Where the server is, and how it is spoken to.
#[derive(Clone)]
pub(super) struct Connect {
    options: MySqlConnectOptions,
    /// It is on this machine, and its address says nothing of TLS.
    is_clear: bool,
}

impl Connect {
    /// Without TLS where the server `is_near`, unless the address `has_mode`: it would cost time and keep nobody out.
    pub(super) fn new(options: MySqlConnectOptions, is_near: bool, has_mode: bool) -> Self {
        let is_clear = is_near && !has_mode;
        let options = if is_clear { options.ssl_mode(MySqlSslMode::Disabled) } else { options };
        Self { options, is_clear }
    }

    pub(super) fn options(&self) -> &MySqlConnectOptions {
        &self.options
    }

    /// A new connection.
    ///
    /// MySQL keeps a digest of a password that it has seen (`caching_sha2_password`), until it is restarted.
    /// Before, the password itself has to be sent, which is done over TLS alone; then it is known, and
    /// the connection is made in clear as all the others are.
    ///
    /// # Errors
    /// When the server is away, or refuses.
    pub(super) async fn connect(&self) -> Result<MySqlConnection, sqlx::Error> {
        let connected = match self.options.connect().await {
            Err(sqlx::Error::Configuration(_)) if self.is_clear => self.introduce().await,
            connected => connected,
        };
        connected.map_err(|error| match error {
            // Others of its kind are about keys and certificates of the client.
            sqlx::Error::Configuration(said) if said.to_string().starts_with("RSA auth") => {
                sqlx::Error::Configuration(UNSEEN.into())
            }
            error => error,
        })
    }

    async fn introduce(&self) -> Result<MySqlConnection, sqlx::Error> {
        self.options.clone().ssl_mode(MySqlSslMode::Preferred).connect().await?.close().await?;
        self.options.connect().await
    }
}
