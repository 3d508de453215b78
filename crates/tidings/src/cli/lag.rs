//! `tidings lag`: how far the relay and the projectors are, measured at the source, so also while nothing runs.

use clap::Args;
use serde_json::{Value, json};
use tidings_backbone::{
    log::{Extent, Log, Part, Relayed},
    projector::{PartStatus, State, Status},
    relay::is_held,
};

use super::{print, table::table};
use crate::{Result, config::Config, serve, store::Store};

/// Show how far the relay and each projector are.
///
/// Read from where they store it, so it is true also while no server runs.
#[derive(Debug, Args)]
pub(super) struct LagArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show each part of the log too; JSON always does
    #[arg(long)]
    parts: bool,
}

pub(super) async fn run(config: &Config, arguments: &LagArgs) -> Result<()> {
    let store = Store::open_existing(config).await?;
    // The runtime is made to be asked only: whoever runs the projectors goes on running them.
    let projectors = serve::projector_runtime(&store, config).handle();
    let lag = Lag {
        relay: relay(&store, config).await?,
        extent: projectors.extent().await?,
        statuses: projectors.statuses().await?,
    };
    store.db.close().await;
    print(&if arguments.json { lag.as_json().to_string() } else { lag.as_table(arguments.parts) })
}

/// What is told.
struct Lag {
    /// Where the outbox is not the log.
    relay: Option<Relay>,
    extent: Extent,
    statuses: Vec<Status>,
}

struct Relay {
    group: String,
    relayed: Relayed,
    /// Since when the oldest event waits that is not relayed.
    oldest_age_ms: Option<i64>,
    is_active: bool,
}

/// Before the projectors: what was relayed then, they have had the chance to see.
async fn relay(store: &Store, config: &Config) -> Result<Option<Relay>> {
    let Log::Kafka(log) = store.log() else { return Ok(None) };
    let relayed = log.relayed().await?;
    let group = config.relay_group().to_owned();
    let is_active = is_held(&mut store.db.read().await?.conn(), &group).await?;
    let oldest_age_ms = relayed.oldest.map(|oldest| (store.clock.now().0 - oldest.0).max(0));
    Ok(Some(Relay { group, relayed, oldest_age_ms, is_active }))
}

impl Relay {
    fn state(&self) -> &'static str {
        match (self.is_active, self.relayed.behind > 0) {
            (true, true) => "behind",
            (true, false) => "caught up",
            (false, _) => "no process is active",
        }
    }

    fn place(&self) -> String {
        let checkpoint = self.relayed.checkpoint.as_ref();
        checkpoint.map_or_else(|| "-".to_owned(), |checkpoint| checkpoint.position.to_string())
    }
}

/// What the database tells of a projector; whether a process runs it just now is not written there.
fn state(status: &Status, extent: Extent) -> &'static str {
    let is_behind = status.lag_events > 0;
    match status.state {
        State::Unregistered => "unregistered",
        _ if !status.is_live => "being built",
        _ if is_behind && is_embedded(status) && extent.earliest.0 > status.position.0 + 1 => {
            "needs events that are gone"
        }
        _ if status.dead_keys > 0 => "has dead keys",
        _ if status.retrying_keys > 0 => "retrying",
        _ if is_behind => "behind",
        _ => "caught up",
    }
}

/// Positions in topics have nothing to do with offsets of the outbox.
fn is_embedded(status: &Status) -> bool {
    status.parts.iter().all(|part| part.part == Part::outbox())
}

fn or_dash(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

impl Lag {
    fn as_table(&self, with_parts: bool) -> String {
        let mut tables = Vec::new();
        if let Some(relay) = &self.relay {
            let row = [
                relay.group.clone(),
                relay.relayed.published.0.to_string(),
                self.extent.head.0.to_string(),
                relay.relayed.behind.to_string(),
                or_dash(relay.oldest_age_ms),
                relay.state().to_owned(),
                relay.place(),
            ];
            let header = ["relay", "position", "head", "lag events", "oldest age ms", "state", "place in the binlog"];
            tables.push(table(header, &[row]));
        }
        tables.push(self.projectors());
        if with_parts {
            tables.push(self.parts());
        }
        tables.join("\n\n")
    }

    fn projectors(&self) -> String {
        let row = |status: &Status| {
            // In the log's own numbers, which are those of the outbox where that is the log.
            let head = if self.relay.is_some() { status.position.0 + status.lag_events } else { self.extent.head.0 };
            [
                status.name.clone(),
                status.position.0.to_string(),
                head.to_string(),
                status.lag_events.to_string(),
                or_dash(status.oldest_age_ms),
                status.retrying_keys.to_string(),
                status.dead_keys.to_string(),
                state(status, self.extent).to_owned(),
            ]
        };
        let rows: Vec<_> = self.statuses.iter().map(row).collect();
        let header =
            ["projector", "position", "head", "lag events", "oldest age ms", "retrying keys", "dead keys", "state"];
        table(header, &rows)
    }

    fn parts(&self) -> String {
        let parts = self.statuses.iter().flat_map(|status| status.parts.iter().map(move |part| (status, part)));
        let row = |(status, part): (&Status, &PartStatus)| {
            [
                status.name.clone(),
                part.part.topic.to_string(),
                part.part.number.to_string(),
                part.position.0.to_string(),
                part.lag_events.to_string(),
            ]
        };
        table(["projector", "topic", "partition", "position", "lag events"], &parts.map(row).collect::<Vec<_>>())
    }

    fn as_json(&self) -> Value {
        let extent = self.extent;
        let part = |part: &PartStatus| {
            json!({
                "topic": *part.part.topic,
                "partition": part.part.number,
                "position": part.position.0,
                "lag_events": part.lag_events,
            })
        };
        let projectors = self.statuses.iter().map(|status| {
            json!({
                "projector": status.name,
                "position": status.position.0,
                "lag_events": status.lag_events,
                "oldest_age_ms": status.oldest_age_ms,
                "retrying_keys": status.retrying_keys,
                "dead_keys": status.dead_keys,
                "state": state(status, extent),
                "parts": status.parts.iter().map(part).collect::<Vec<_>>(),
            })
        });
        let mut told = json!({
            "log": { "earliest": extent.earliest.0, "head": extent.head.0 },
            "projectors": projectors.collect::<Vec<_>>(),
        });
        if let Some(relay) = &self.relay {
            told["relay"] = json!({
                "group": relay.group,
                "position": relay.relayed.published.0,
                "lag_events": relay.relayed.behind,
                "oldest_age_ms": relay.oldest_age_ms,
                "active": relay.is_active,
                "state": relay.state(),
                "place": relay.place(),
            });
        }
        told
    }
}
