//! `tidings api`, `relay` and `project`: the roles of the distributed mode, each in processes of its own.

use std::{net::SocketAddr, path::Path};

use clap::Args;
use tidings_backbone::relay;

use crate::{
    Error, Result,
    config::{Config, Mode},
    serve::{self, Role},
};

/// A key that every file for a relay alone has, and no configuration of Tidings.
const SOURCE: &str = "source";

/// Arguments of `api`.
#[derive(Debug, Args)]
pub(super) struct ApiArgs {
    /// Address to listen on; overrides `http.listen`
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

/// Arguments of the roles without an API.
#[derive(Debug, Args)]
pub(super) struct WorkArgs {
    /// Address to tell health and metrics on; overrides `http.ops_listen`
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

pub(super) async fn api(mut config: Config, arguments: &ApiArgs) -> Result<()> {
    require_distributed(&config, Role::Api)?;
    config.http.listen = arguments.listen.unwrap_or(config.http.listen);
    serve::serve(config, Role::Api).await
}

pub(super) async fn relay(config: Config, arguments: &WorkArgs) -> Result<()> {
    work(config, arguments, Role::Relay).await
}

/// What the file of `--config` describes, if it is a relay alone.
///
/// # Errors
/// When it is one, and something in it cannot be.
pub(super) fn alone(file: Option<&Path>) -> Result<Option<relay::Config>> {
    let Some(file) = file else { return Ok(None) };
    let text = std::fs::read_to_string(file).map_err(Error::file("reading the configuration file", file))?;
    let syntax = |source| Error::ConfigSyntax { origin: file.display().to_string(), source };
    let table: toml::Table = text.parse().map_err(syntax)?;
    if !table.contains_key(SOURCE) {
        return Ok(None);
    }
    let config = serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| Error::Config {
        origin: file.display().to_string(),
        key: error.path().to_string(),
        reason: error.inner().message().to_owned(),
    });
    config.map(Some)
}

/// Relays as such a file says; of Tidings' own configuration only the log, traces and
/// `http.ops_listen` matter.
pub(super) async fn relay_alone(alone: &relay::Config, mut config: Config, arguments: &WorkArgs) -> Result<()> {
    config.http.ops_listen = arguments.listen.or(config.http.ops_listen);
    serve::relay_alone(alone, &config).await
}

pub(super) async fn project(config: Config, arguments: &WorkArgs) -> Result<()> {
    work(config, arguments, Role::Project).await
}

async fn work(mut config: Config, arguments: &WorkArgs, role: Role) -> Result<()> {
    require_distributed(&config, role)?;
    config.http.ops_listen = arguments.listen.or(config.http.ops_listen);
    serve::work(config, role).await
}

/// Embedded, one process does everything, and a second one would find the data folder claimed.
fn require_distributed(config: &Config, role: Role) -> Result<()> {
    if config.mode() == Mode::Distributed {
        return Ok(());
    }
    let role = role.name();
    Err(Error::Usage(format!(
        "`tidings {role}` needs the distributed mode: set `database.url` and `kafka.brokers`; without them \
         `tidings serve` does everything in one process"
    )))
}
