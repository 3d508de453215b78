//! `tidings projector`: what is stored of projectors, beside their work.

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_backbone::{
    audit::Reason,
    projector::{Forgotten, NotForgotten},
};

use super::{
    operator::{actor, confirm, counted, harmless},
    print,
};
use crate::{Error, Result, config::Config, serve, store::Store};

#[derive(Debug, Subcommand)]
pub(super) enum ProjectorCommand {
    /// Remove the positions of a projector that was renamed or removed: they hold retention back
    ///
    /// A program that does have it begins anew with the first event there is.
    Forget(ForgetArgs),
}

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// Its name, as `tidings lag` shows it
    projector: String,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: &Config, command: ProjectorCommand) -> Result<()> {
    let ProjectorCommand::Forget(arguments) = command;
    let store = Store::open_existing(config).await?;
    let done = forget(&store, config, &arguments).await;
    store.db.close().await;
    done
}

async fn forget(store: &Store, config: &Config, arguments: &ForgetArgs) -> Result<()> {
    let ForgetArgs { projector, reason, yes, json } = arguments;
    let refused = |refusal: NotForgotten| Error::Usage(format!("nothing was done: {refusal}"));
    let handle = serve::projector_runtime(store, config).handle();
    if !yes {
        handle.would_forget(projector).await?.map_err(refused)?;
        confirm(&format!("forgetting how far `{}` is", harmless(projector)))?;
    }
    let Forgotten { positions } = handle.forget(projector, &actor(), reason.as_ref()).await?.map_err(refused)?;
    if *json {
        return print(&json!({ "projector": projector, "positions": positions }).to_string());
    }
    let are = if positions == 1 { "is" } else { "are" };
    print(&format!("{} of `{}` {are} removed", counted(positions as u64, "position"), harmless(projector)))
}
