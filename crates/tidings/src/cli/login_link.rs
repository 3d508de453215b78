//! `tidings login-link`: a new one-time link to log in to the console.

use std::net::SocketAddr;

use clap::Args;
use tidings_backbone::Clock;

use super::print;
use crate::{Result, auth::LOGIN_LINK_MINUTES, config::Config, serve, store};

/// Where the link leads.
#[derive(Debug, Args)]
pub(super) struct LoginLinkArgs {
    /// Address of the server; `http.listen` unless given
    #[arg(long, value_name = "ADDRESS:PORT")]
    at: Option<SocketAddr>,
}

pub(super) fn run(config: &Config, arguments: &LoginLinkArgs) -> Result<()> {
    let links = store::login_links(&config.data.dir, &Clock::system());
    let (secret, _) = links.issue(LOGIN_LINK_MINUTES)?;
    print(&serve::login_link(arguments.at.unwrap_or(config.http.listen), &secret))
}
