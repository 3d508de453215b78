//! `tidings config`: what is in effect.

use clap::Subcommand;

use super::print;
use crate::{
    Result,
    config::{Config, masked},
};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Validate the configuration and print what is in effect, secrets masked
    Check,
}

pub(super) fn run(config: &Config, command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Check => print(masked(config)?.trim_end()),
    }
}
