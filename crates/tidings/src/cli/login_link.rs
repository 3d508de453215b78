//! `tidings login-link`: a new one-time link to log in to the console.

use std::net::SocketAddr;

use clap::Args;
use tidings_backbone::Clock;

use super::print;
use crate::{Result, auth::LOGIN_LINK_MINUTES, config::Config, serve, store};

/// Where the link leads.
#[derive(Debug, Args)]
pub(super) struct LoginLinkArgs {
    /// Address of the server; unless given, where one serves or last served on the data folder
    #[arg(long, value_name = "ADDRESS:PORT")]
    at: Option<SocketAddr>,
}

pub(super) fn run(config: &Config, arguments: &LoginLinkArgs) -> Result<()> {
    let folder = &config.data.dir;
    store::require_data(config)?;
    let links = store::login_links(folder, &Clock::system());
    let address = arguments.at.or_else(|| store::server_address(folder)).unwrap_or(config.http.listen);
    let secret = links.issue(LOGIN_LINK_MINUTES, &serve::login_subject())?;
    print(&serve::login_link(address, &secret))
}
