//! `tidings journey`: where one event is, and since when.

use clap::Args;
use tidings_backbone::journey::{Journey, Stage};
use tidings_event::{EventId, Timestamp};

use super::{
    operator::{counted, harmless, short},
    print,
    table::table,
};
use crate::{
    Error, Result,
    config::Config,
    journeys::{JourneyView, of_the_log},
    serve,
    store::Store,
};

/// Characters of an error that the table shows.
const ERROR_CHARS_MAX: usize = 100;

/// Show the journey of one event: committed, relayed, and what became of it for each projector
///
/// Read from where it is written, so it is true also while nothing runs. When projectors applied an event is kept for
/// a time, `projector.trail_minutes`.
#[derive(Debug, Args)]
pub(super) struct JourneyArgs {
    /// The event
    #[arg(value_name = "EVENT_ID")]
    event_id: EventId,
    /// Print one JSON object, of the shape that the API has
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: &Config, arguments: &JourneyArgs) -> Result<()> {
    let store = Store::open_existing(config).await?;
    // The runtime is made to be asked only: whoever runs the projectors goes on running them.
    let told = serve::projector_runtime(&store, config).handle().journey(arguments.event_id).await;
    store.db.close().await;
    let id = arguments.event_id;
    let unknown = || Error::Usage(format!("the event {id} is no longer known, or never was"));
    let journey = told?.ok_or_else(unknown)?;
    if arguments.json {
        let printed = serde_json::to_string(&JourneyView::from(&journey));
        return printed
            .map_err(|error| Error::System { doing: "printing", source: error.into() })
            .and_then(|text| print(&text));
    }
    print(&as_text(&journey))
}

fn as_text(journey: &Journey) -> String {
    let event = &journey.event;
    let row = |stage: String, state: &str, at: Option<Timestamp>, detail: String| {
        let after = at.map_or_else(|| "-".to_owned(), |at| journey.after_ms(at).to_string());
        [stage, state.to_owned(), at.map_or_else(|| "-".to_owned(), |at| at.to_string()), after, detail]
    };
    let or_dash = |text: Option<String>| text.map_or_else(|| "-".to_owned(), |text| harmless(&text));
    let (request, trace) = (event.metadata.request_id.clone(), journey.trace_id().map(|trace| trace.to_string()));
    let by = format!("request {}, trace {}", or_dash(request), or_dash(trace));
    let mut rows = vec![
        row("ledger".to_owned(), "committed", Some(event.occurred_at), by),
        row("relay".to_owned(), journey.relayed.state.name(), journey.relayed.at, of_the_log(journey)),
    ];
    for stage in &journey.projectors {
        let which = match (stage.is_replay, stage.is_live) {
            (true, _) => " (replay in place)",
            (false, true) => "",
            (false, false) => " (being built)",
        };
        let name = format!("{}{which}", stage.generation.identity(&stage.projector));
        rows.push(row(name, stage.state.name(), stage.at, detail(stage)));
    }
    format!(
        "{} {}, version {} of {} {}, key {}\n\n{}",
        harmless(&event.event_type),
        event.id,
        event.version,
        harmless(&event.aggregate_type),
        harmless(&event.aggregate_id),
        harmless(&event.key),
        table(["stage", "state", "at", "after ms", ""], &rows)
    )
}

fn detail(stage: &Stage) -> String {
    let mut parts = Vec::new();
    match stage.attempts {
        0 => {}
        1 => parts.push("1 try".to_owned()),
        attempts => parts.push(format!("{attempts} tries")),
    }
    if stage.events_before > 0 {
        parts.push(format!("{} before it", counted(stage.events_before.unsigned_abs(), "event")));
    }
    parts.extend(stage.next_attempt_at.map(|at| format!("next try {at}")));
    parts.extend(stage.resolution.filter(|time| time.as_millis() > 1).map(|time| format!("± {} ms", time.as_millis())));
    parts.extend(stage.error.as_deref().map(|error| short(error, ERROR_CHARS_MAX)));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use tidings_backbone::{journey::State, projector::Generation};

    use super::*;

    #[test]
    fn one_try_is_no_tries() {
        let stage = Stage {
            projector: "relation".to_owned(),
            generation: Generation::FIRST,
            is_live: true,
            is_replay: false,
            state: State::Retrying,
            at: None,
            resolution: None,
            attempts: 1,
            next_attempt_at: None,
            error: None,
            events_before: 1,
        };
        assert_eq!(detail(&stage), "1 try, 1 event before it");
        assert_eq!(detail(&Stage { attempts: 2, events_before: 2, ..stage }), "2 tries, 2 events before it");
    }
}
