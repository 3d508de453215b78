//! `tidings api`, `relay` and `project`: the roles of the distributed mode, each in processes of its own.

use std::net::SocketAddr;

use clap::Args;

use crate::{
    Error, Result,
    config::{Config, Mode},
    serve::{self, Role},
};

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
