//! `tidings audit`: who did what, and why.

use clap::Args;
use serde_json::{Value, json};
use tidings_backbone::audit::{self, Record};

use super::{
    operator::{harmless, short},
    print,
    table::table,
};
use crate::{Result, config::Config, store::Store};

/// Characters of a reason that the table shows.
const REASON_CHARS_MAX: usize = 60;

/// Show what operators did, the newest first
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Records to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    last: usize,
    /// Only records before this one
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// Print JSON with all details, one record a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: &Config, arguments: &AuditArgs) -> Result<()> {
    let store = Store::open_existing(config).await?;
    let records = audit::list(store.db.read().await?.conn(), arguments.before, arguments.last).await?;
    store.db.close().await;
    if arguments.json {
        return records.iter().try_for_each(|record| print(&as_json(record).to_string()));
    }
    let row = |record: &Record| {
        let or_dash = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), harmless);
        [
            record.id.to_string(),
            record.at.to_string(),
            harmless(&record.actor),
            harmless(&record.action),
            or_dash(&record.projector),
            or_dash(&record.key),
            or_dash(&record.event_id),
            short(record.reason.as_deref().unwrap_or("-"), REASON_CHARS_MAX),
        ]
    };
    let header = ["id", "at", "who", "what", "projector", "key", "event", "reason"];
    print(&table(header, &records.iter().map(row).collect::<Vec<_>>()))
}

fn as_json(record: &Record) -> Value {
    json!({
        "id": record.id,
        "at": record.at.to_string(),
        "actor": record.actor,
        "action": record.action,
        "projector": record.projector,
        "key": record.key,
        "event_id": record.event_id,
        "reason": record.reason,
        "details": serde_json::from_str::<Value>(&record.details).unwrap_or(Value::Null),
    })
}
