//! `tidings parked`: the parking lot, looked at and operated, whether or not a server runs.

mod filter;
mod show;

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_backbone::{
    audit::Reason,
    log::{Offset, Part},
    parking::{self, Plan, Redrive, Refusal, Which},
};
use tidings_event::EventId;

use self::filter::FilterArgs;
use super::{
    operator::{actor, confirm, counted, harmless},
    print,
    table::table,
};
use crate::{Error, Result, config::Config, store::Store};

/// Keys of a plan that are shown.
const PLAN_KEYS_MAX: usize = 20;

#[derive(Debug, Subcommand)]
pub(super) enum ParkedCommand {
    /// List the keys that are parked, the longest parked first
    List(show::ListArgs),
    /// Show one key, and the events that wait under it
    Show(show::ShowArgs),
    /// Let dead keys be tried again, each in the order of its events
    ///
    /// A key that was dead stops at its first new failure. One that is retried by itself is tried now. A running
    /// server does it; without one it is done once one runs.
    Redrive(RedriveArgs),
    /// Discard one waiting event for good; the audit keeps it, and the rest of its key goes on
    Discard(DiscardArgs),
}

#[derive(Debug, Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Every key; needed where no filter is given
    #[arg(long)]
    all: bool,
    /// Events a second over all the keys; as fast as can be unless given
    #[arg(long, value_name = "N")]
    events_per_second: Option<NonZeroU32>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiscardArgs {
    /// The projector for which it waits
    projector: String,
    /// The key under which it waits
    key: String,
    #[command(flatten)]
    which: WhichArgs,
    /// The part of the log that the offset is in; needed where the key waits in several
    #[arg(long, value_name = "TOPIC/PARTITION", requires = "offset")]
    part: Option<Part>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    reason: Reason,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhichArgs {
    /// The event's id
    #[arg(long, value_name = "ID")]
    event_id: Option<EventId>,
    /// Where it stands in the log, of what has no id
    #[arg(long, value_name = "N")]
    offset: Option<i64>,
}

pub(super) async fn run(config: &Config, command: ParkedCommand) -> Result<()> {
    let store = Store::open_existing(config).await?;
    let done = match command {
        ParkedCommand::List(arguments) => show::list(&store, arguments).await,
        ParkedCommand::Show(arguments) => show::show(&store, &arguments).await,
        ParkedCommand::Redrive(arguments) => redrive(&store, arguments).await,
        ParkedCommand::Discard(arguments) => discard(&store, arguments).await,
    };
    store.db.close().await;
    done
}

fn refused(refusal: Refusal) -> Error {
    Error::Usage(format!("nothing was done: {refusal}"))
}

async fn redrive(store: &Store, arguments: RedriveArgs) -> Result<()> {
    let RedriveArgs { filter, all, events_per_second, reason, dry_run, yes, json } = arguments;
    let filter = filter.filter();
    if filter.is_empty() != all {
        let text = if all { "`--all` is not given beside a filter" } else { "give a filter, or `--all` for every key" };
        return Err(Error::Usage(text.to_owned()));
    }
    let mut wanted = Redrive { filter, events_per_second, reason, shown: None };
    if dry_run || !yes {
        let plan = parking::plan(store.db.read().await?.conn(), &wanted).await?.map_err(refused)?;
        if dry_run {
            return print(&if json { plan_json(&plan, true) } else { plan_text(&plan, ["would be tried again"; 2]) });
        }
        eprintln!("{}", plan_text(&plan, ["is to be tried again", "are to be tried again"]));
        confirm("redriving these keys")?;
        // However long the answer took: what has died meanwhile was not shown.
        wanted.shown = Some(plan.shown());
    }
    let plan = parking::redrive(&store.db, &wanted, &actor(), None, store.clock.now()).await?.map_err(refused)?;
    print(&if json { plan_json(&plan, false) } else { plan_text(&plan, ["is tried again", "are tried again"]) })
}

/// A plan for people; `verb` of one key and of several.
fn plan_text(plan: &Plan, [is, are]: [&str; 2]) -> String {
    let row = |key: &parking::Planned| {
        let after = format!("{:.1}", key.after.as_secs_f64());
        let (projector, name) = (harmless(&key.projector), harmless(&key.key));
        [projector, key.part.to_string(), name, key.state.name().to_owned(), key.waiting.to_string(), after]
    };
    let rows: Vec<_> = plan.keys.iter().take(PLAN_KEYS_MAX).map(row).collect();
    let mut text = table(["projector", "part", "key", "state", "waiting", "after s"], &rows);
    if plan.keys.len() > rows.len() {
        text.push_str(&format!("\nand {} more", plan.keys.len() - rows.len()));
    }
    let (keys, waiting) = (counted(plan.count as u64, "key"), counted(plan.waiting, "waiting event"));
    let (verb, seconds) = (if plan.count == 1 { is } else { are }, plan.takes.as_secs_f64());
    text.push_str(&format!("\n\n{keys} with {waiting} {verb}"));
    if seconds > 0.0 {
        text.push_str(&format!(", in {seconds:.1} s"));
    }
    if plan.left > 0 {
        text.push_str(&format!("; left for the next time: {} that match too", counted(plan.left, "key")));
    }
    text
}

fn plan_json(plan: &Plan, dry_run: bool) -> String {
    let key = |key: &parking::Planned| {
        json!({
            "projector": key.projector,
            "part": key.part.to_string(),
            "key": key.key,
            "state": key.state.name(),
            "waiting": key.waiting,
            "after_ms": key.after.as_millis() as u64,
        })
    };
    json!({
        "dry_run": dry_run,
        "keys": plan.count,
        "waiting": plan.waiting,
        "takes_ms": plan.takes.as_millis() as u64,
        "left": plan.left,
        "until": plan.until.to_string(),
        "items": plan.keys.iter().map(key).collect::<Vec<_>>(),
    })
    .to_string()
}

async fn discard(store: &Store, arguments: DiscardArgs) -> Result<()> {
    let DiscardArgs { projector, key, which, part, reason, yes, json } = arguments;
    let which = match (which.event_id, which.offset) {
        (Some(id), _) => Which::Id(id.to_string()),
        (None, offset) => Which::At(part, Offset(offset.unwrap_or_default())),
    };
    let wanted = parking::Discard { projector, key, which, reason };
    if !yes {
        let event = parking::find(store.db.read().await?.conn(), &wanted).await?.map_err(refused)?;
        eprintln!("{}\n{}", show::events_table(std::slice::from_ref(&event)), harmless(&event.event));
        confirm("discarding this event for good")?;
    }
    let discarded = parking::discard(&store.db, &wanted, &actor(), None, store.clock.now()).await?.map_err(refused)?;
    if json {
        let (event, was_head, freed) = (show::event_json(&discarded.event), discarded.was_head, discarded.freed);
        return print(&json!({ "event": event, "was_head": was_head, "freed": freed }).to_string());
    }
    let then = match (discarded.freed, discarded.was_head) {
        (true, _) => "nothing else waits under its key, which is free",
        (false, true) => "the next event of its key is tried now",
        (false, false) => "its key is as it was",
    };
    print(&format!("discarded, and kept in the audit; {then}"))
}
