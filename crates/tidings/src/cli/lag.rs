//! `tidings lag`: how far projectors are, measured at the source, so also while nothing runs.

use clap::Args;
use serde_json::{Value, json};
use tidings_backbone::{
    log::Extent,
    projector::{State, Status},
};

use super::{print, table::table};
use crate::{Result, config::Config, serve, store::Store};

/// Show how far each projector is.
///
/// Read from the database, so it is true also while no server runs.
#[derive(Debug, Args)]
pub(super) struct LagArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: &Config, arguments: &LagArgs) -> Result<()> {
    let store = Store::open_existing(&config.data.dir).await?;
    // The runtime is made to be asked only: whoever runs the projectors goes on running them.
    let projectors = serve::projector_runtime(&store, config).handle();
    let statuses = projectors.statuses().await?;
    let extent = projectors.extent().await?;
    store.db.close().await;
    print(&if arguments.json { as_json(&statuses, extent).to_string() } else { as_table(&statuses, extent) })
}

/// What the database tells of a projector; whether a process runs it just now is not written there.
fn state(status: &Status, extent: Extent) -> &'static str {
    let is_behind = status.lag_events > 0;
    match status.state {
        State::Unregistered => "unregistered",
        _ if is_behind && extent.earliest.0 > status.position.0 + 1 => "needs events that are gone",
        _ if status.dead_keys > 0 => "has dead keys",
        _ if status.retrying_keys > 0 => "retrying",
        _ if is_behind => "behind",
        _ => "caught up",
    }
}

fn as_table(statuses: &[Status], extent: Extent) -> String {
    let rows: Vec<_> = statuses
        .iter()
        .map(|status| {
            [
                status.name.clone(),
                status.position.0.to_string(),
                extent.head.0.to_string(),
                status.lag_events.to_string(),
                status.oldest_age_ms.map_or_else(|| "-".to_owned(), |age| age.to_string()),
                status.retrying_keys.to_string(),
                status.dead_keys.to_string(),
                state(status, extent).to_owned(),
            ]
        })
        .collect();
    let header =
        ["projector", "position", "head", "lag events", "oldest age ms", "retrying keys", "dead keys", "state"];
    table(header, &rows)
}

fn as_json(statuses: &[Status], extent: Extent) -> Value {
    let projectors = statuses.iter().map(|status| {
        json!({
            "projector": status.name,
            "position": status.position.0,
            "lag_events": status.lag_events,
            "oldest_age_ms": status.oldest_age_ms,
            "retrying_keys": status.retrying_keys,
            "dead_keys": status.dead_keys,
            "state": state(status, extent),
        })
    });
    json!({
        "log": { "earliest": extent.earliest.0, "head": extent.head.0 },
        "projectors": projectors.collect::<Vec<_>>(),
    })
}
