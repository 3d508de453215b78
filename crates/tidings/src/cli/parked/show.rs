//! `tidings parked list` and `tidings parked show`.

use clap::Args;
use serde_json::{Value, json};
use tidings_backbone::{
    log::{Offset, Part},
    parking::{self, Filter, ParkedKey, State, WaitingEvent},
};

use super::filter::FilterArgs;
use crate::{
    Error, Result,
    cli::{
        operator::{harmless, short},
        print,
        table::table,
    },
    store::Store,
};

/// Characters of an error that the table shows.
const ERROR_CHARS_MAX: usize = 100;
/// Parts of the log in which one key may wait.
const PARTS_MAX: usize = 1_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Keys to show at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    /// The projector whose event failed
    projector: String,
    /// The key that waits
    key: String,
    /// Events to show at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Only events after this place: the part and offset of the last one shown
    #[arg(long, value_names = ["TOPIC/PARTITION", "OFFSET"], num_args = 2)]
    after: Option<Vec<String>>,
    /// Print one JSON object with the whole events
    #[arg(long)]
    json: bool,
}

pub(super) async fn list(store: &Store, arguments: ListArgs) -> Result<()> {
    let filter = arguments.filter.filter();
    let mut tx = store.db.read().await?;
    let mut keys = parking::list(tx.conn(), &filter, None, arguments.limit.saturating_add(1)).await?;
    let more = keys.len() > arguments.limit;
    keys.truncate(arguments.limit);
    if arguments.json {
        return print(&json!({ "items": keys.iter().map(key_json).collect::<Vec<_>>(), "more": more }).to_string());
    }
    let mut text = keys_table(&keys);
    if more {
        text.push_str(&format!("\nand more: see `--limit`, which is {}", arguments.limit));
    }
    print(&text)
}

fn keys_table(keys: &[ParkedKey]) -> String {
    let row = |key: &ParkedKey| {
        [
            harmless(&key.projector),
            key.part.to_string(),
            harmless(&key.key),
            key.state.name().to_owned(),
            key.attempts.to_string(),
            key.waiting.to_string(),
            key.parked_at.to_string(),
            harmless(&key.event_type),
            short(&key.error, ERROR_CHARS_MAX),
        ]
    };
    let header = ["projector", "part", "key", "state", "attempts", "waiting", "parked at", "type", "error"];
    table(header, &keys.iter().map(row).collect::<Vec<_>>())
}

fn key_json(key: &ParkedKey) -> Value {
    json!({
        "projector": key.projector,
        "part": key.part.to_string(),
        "key": key.key,
        "state": key.state.name(),
        "attempts": key.attempts,
        "next_attempt_at": (key.state != State::Dead).then(|| key.next_attempt_at.to_string()),
        "error": key.error,
        "parked_at": key.parked_at.to_string(),
        "died_at": key.died_at.map(|at| at.to_string()),
        "event_id": key.event_id,
        "event_type": key.event_type,
        "waiting": key.waiting,
    })
}

pub(super) async fn show(store: &Store, arguments: &ShowArgs) -> Result<()> {
    let ShowArgs { projector, key, limit, after, json } = arguments;
    let mut tx = store.db.read().await?;
    let keys = parking::list(tx.conn(), &Filter::one(projector, key), None, PARTS_MAX).await?;
    if keys.is_empty() {
        let (key, projector) = (harmless(key), harmless(projector));
        return Err(Error::Usage(format!("the key `{key}` of projector `{projector}` is not parked")));
    }
    let place = after.as_deref().map(place).transpose()?;
    let place = place.as_ref().map(|(part, offset)| (part, *offset));
    let (events, more) = parking::events(tx.conn(), projector, key, place, *limit).await?;
    if *json {
        let (keys, items) = (keys.iter().map(key_json).collect::<Vec<_>>(), events.iter().map(event_json));
        return print(&json!({ "keys": keys, "events": items.collect::<Vec<_>>(), "more": more }).to_string());
    }
    let mut text = keys_table(&keys);
    for key in &keys {
        text.push_str(&format!("\n\n{}: {}", key.part, harmless(&key.error)));
    }
    text.push_str(&format!("\n\n{}", events_table(&events)));
    if let Some(last) = events.last().filter(|_| more) {
        text.push_str(&format!("\nand more: `--after {} {}`", last.part, last.offset.0));
    }
    print(&text)
}

fn place(texts: &[String]) -> Result<(Part, Offset)> {
    let wrong = || Error::Usage("`--after` takes a part such as `outbox/0` and an offset".to_owned());
    let [part, offset] = texts else { return Err(wrong()) };
    Ok((part.parse().map_err(|_| wrong())?, Offset(offset.parse().map_err(|_| wrong())?)))
}

pub(super) fn events_table(events: &[WaitingEvent]) -> String {
    let row = |event: &WaitingEvent| {
        let event_type = if event.is_event() { harmless(&event.event_type) } else { "no event".to_owned() };
        [
            event.part.to_string(),
            event.offset.0.to_string(),
            harmless(event.event_id.as_deref().unwrap_or("-")),
            event_type,
            event.occurred_at.to_string(),
        ]
    };
    table(["part", "offset", "event id", "type", "occurred at"], &events.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn event_json(event: &WaitingEvent) -> Value {
    json!({
        "part": event.part.to_string(),
        "offset": event.offset.0,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "occurred_at": event.occurred_at.to_string(),
        "readable": event.is_event(),
        "event": serde_json::from_str::<Value>(&event.event).unwrap_or_else(|_| event.event.as_str().into()),
    })
}
