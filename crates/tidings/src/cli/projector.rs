//! `tidings projector`: what is stored of projectors, beside their work.

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_backbone::{audit::Reason, projector::Forgotten};

use super::{
    operator::{actor, confirm, harmless},
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
    if !yes {
        confirm(&format!("forgetting how far `{}` is", harmless(projector)))?;
    }
    let handle = serve::projector_runtime(store, config).handle();
    let forgotten = handle.forget(projector, &actor(), reason.as_ref()).await?;
    let Forgotten { positions } = forgotten.map_err(|refusal| Error::Usage(format!("nothing was done: {refusal}")))?;
    if *json {
        return print(&json!({ "projector": projector, "positions": positions }).to_string());
    }
    print(&format!("{positions} positions of `{}` are removed", harmless(projector)))
}
