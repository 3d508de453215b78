//! `tidings token`: makes bearer tokens with the key of the data folder.

use clap::Args;
use tidings_backbone::Clock;
use tidings_community::UserId;

use super::print;
use crate::{
    Result,
    auth::{Minting, Role, mint},
    config::Config,
    store,
};

/// For whom a token is made, and for how long.
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    #[command(flatten)]
    role: RoleArgs,
    /// Lifetime in minutes; `auth.access_token_minutes` unless given
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: Option<u32>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct RoleArgs {
    /// A token that speaks for the user with this id
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
    /// A token that administrates
    #[arg(long)]
    admin: bool,
}

pub(super) async fn run(config: &Config, arguments: &TokenArgs) -> Result<()> {
    store::require_folder(&config.data.dir)?;
    if !config.data.dir.exists() {
        eprintln!("note: there was no data in `{0}`; a new key is made there", config.data.dir.display());
    }
    let key = store::signing_key(&config.data.dir).get().await?;
    let role = arguments.role.user.map_or(Role::Admin, |user| Role::User(user.into()));
    let minutes = arguments.minutes.unwrap_or(config.auth.access_token_minutes);
    print(&mint(&key, &config.auth, &Clock::system(), &Minting { role, minutes })?)
}
