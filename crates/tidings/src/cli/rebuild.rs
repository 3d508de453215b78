//! `tidings rebuild`: build a projection anew beside the one that is read, and give readers the new one.

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_backbone::{
    Error as BackboneError,
    projector::rebuild::{Rebuild, Rebuilds},
};

use super::{operator, print, table::table};
use crate::{
    Error, Result,
    config::Config,
    rebuilds::{self, RebuildView},
    serve,
    store::Store,
};

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum RebuildCommand {
    /// Build the next generation of a projection beside the live one, check it against facts, and switch
    ///
    /// The work is done by the processes that run projectors (`serve`, `project`), while reads and writes go on;
    /// it survives their end. `tidings rebuild status` shows how far it is.
    Start(StartArgs),
    /// Show the last rebuild of each projector
    Status(StatusArgs),
    /// Hold a rebuild up
    Pause(PlainArgs),
    /// Go on with one that was held up; check one that failed again
    Resume(ResumeArgs),
    /// Give readers what is built, once it has caught up and was checked again
    Switch(SwitchArgs),
    /// Give a rebuild up and remove what was built
    Cancel(CancelArgs),
}

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// Which projector: see `tidings lag`
    projector: String,
    /// `beginning` (of the log, or facts where it no longer reaches back), `facts`, a moment
    /// (2026-01-31T12:00:00Z), or an offset of the outbox
    #[arg(long, value_name = "WHERE")]
    from: Option<String>,
    /// Where a replay in place ends, not before it begins: a moment or an offset, before which all is applied
    #[arg(long, value_name = "WHERE", requires = "in_place")]
    until: Option<String>,
    /// Apply events to the live generation once more; those that are not newer have no effect
    #[arg(long)]
    in_place: bool,
    /// Go no faster, to leave room for others
    #[arg(long, value_name = "N")]
    events_per_second: Option<NonZeroU32>,
    /// Wait for `tidings rebuild switch` before readers are given it; not with `--in-place`
    #[arg(long)]
    hold: bool,
    /// Say what would be begun, and begin nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PlainArgs {
    /// Which projector
    projector: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    plain: PlainArgs,
    /// Go on at this pace; 0 for no limit
    #[arg(long, value_name = "N")]
    events_per_second: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct SwitchArgs {
    #[command(flatten)]
    plain: PlainArgs,
    /// Whatever the check says, and without the events of its dead keys
    #[arg(long)]
    force: bool,
    /// With `--force`, do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    #[command(flatten)]
    plain: PlainArgs,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(config: &Config, command: RebuildCommand) -> Result<()> {
    let store = Store::open_existing(config).await?;
    // The runtime is made to be asked only: whoever runs the projectors does the work.
    let rebuilds = serve::projector_runtime(&store, config).handle().rebuilds();
    let done = act(&store, &rebuilds, command).await;
    store.db.close().await;
    print(&done.map_err(refused)?)
}

async fn act(store: &Store, rebuilds: &Rebuilds, command: RebuildCommand) -> Result<String> {
    let actor = operator::actor();
    let is_new = matches!(command, RebuildCommand::Start(_));
    let (rebuild, json, done) = match command {
        RebuildCommand::Status(arguments) => {
            let views = rebuilds::views(rebuilds, store.clock.now()).await?;
            return Ok(if arguments.json { json!({ "rebuilds": views }).to_string() } else { as_table(&views) });
        }
        RebuildCommand::Start(arguments) => start(rebuilds, &arguments).await?,
        RebuildCommand::Pause(PlainArgs { projector, json }) => {
            (rebuilds.pause(&projector, &actor, None).await?, json, "is held up")
        }
        RebuildCommand::Resume(ResumeArgs { plain: PlainArgs { projector, json }, events_per_second }) => {
            (rebuilds.resume(&projector, events_per_second, &actor, None).await?, json, "goes on")
        }
        RebuildCommand::Switch(SwitchArgs { plain: PlainArgs { projector, json }, force, yes }) => {
            if force && !yes {
                let rebuild = rebuilds.would_switch(&projector, force).await?;
                ask(store, rebuilds, rebuild, "giving readers what is built, whatever its check says").await?;
            }
            let done = "is checked again, and readers are given it if it is right";
            (rebuilds.switch(&projector, force, &actor, None).await?, json, done)
        }
        RebuildCommand::Cancel(CancelArgs { plain: PlainArgs { projector, json }, yes }) => {
            if !yes {
                let rebuild = rebuilds.would_cancel(&projector).await?;
                ask(store, rebuilds, rebuild, "giving this rebuild up").await?;
            }
            (rebuilds.cancel(&projector, &actor, None).await?, json, "is given up; what was built is removed")
        }
    };
    let (projector, generation) = (rebuild.projector.clone(), rebuild.generation);
    let way = if rebuild.wish.in_place { ", in place," } else { "," };
    let view = rebuilds::view(rebuilds, rebuild, store.clock.now()).await?;
    if json {
        return serde_json::to_string(&view)
            .map_err(|source| tidings_backbone::Error::Json { doing: "writing a rebuild", source }.into());
    }
    let report = view.report.filter(|_| is_new).map_or_else(String::new, |report| format!("\n{report}"));
    Ok(format!("the rebuild of `{projector}`, generation {generation}{way} {done}{report}"))
}

/// A refusal with the way out.
fn refused(error: Error) -> Error {
    match error {
        Error::Backbone(BackboneError::Rebuild { projector, refusal }) => {
            let why = match rebuilds::wrong_part(&refusal) {
                Some((option, wrong)) => format!("`--{option}` {wrong}"),
                None => rebuilds::refused(&projector, &refusal),
            };
            Error::Usage(format!("nothing was done with `{}`: {why}", operator::harmless(&projector)))
        }
        error => error,
    }
}

/// Shows the rebuild, and asks whether to do with it what cannot be undone. Nobody is asked where it would be refused.
async fn ask(store: &Store, rebuilds: &Rebuilds, rebuild: Rebuild, what: &str) -> Result<()> {
    let view = rebuilds::view(rebuilds, rebuild, store.clock.now()).await?;
    eprintln!("{}", as_table(std::slice::from_ref(&view)));
    operator::confirm(what)
}

async fn start(rebuilds: &Rebuilds, arguments: &StartArgs) -> Result<(Rebuild, bool, &'static str)> {
    let StartArgs { projector, from, until, in_place, events_per_second, hold, dry_run, json } = arguments;
    let start = rebuilds::start(from.as_deref(), until.as_deref(), *in_place, *events_per_second, *hold);
    let start = start.map_err(|(name, wrong)| Error::Usage(format!("`--{name}` {wrong}")))?;
    Ok(if *dry_run {
        (rebuilds.would_start(projector, start).await?, *json, "would be begun")
    } else {
        let done = "begins within a second of a running `tidings serve` or `tidings project`";
        (rebuilds.start(projector, start, &operator::actor(), None).await?, *json, done)
    })
}

fn as_table(views: &[RebuildView]) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |view: &RebuildView| {
        let told = [(view.in_place, ", in place"), (view.paused, ", paused"), (view.forced, ", forced")];
        let told: String = told.iter().filter(|(is_so, _)| *is_so).map(|(_, told)| *told).collect();
        let state = format!("{}{told}", view.state);
        [
            view.projector.clone(),
            view.generation.to_string(),
            state,
            or_dash(view.source.map(str::to_owned)),
            or_dash(view.progress.map(|progress| format!("{:.1} %", progress * 100.0))),
            format!("{} of {}", view.events_done, view.events_to_do),
            or_dash(view.seed_rows.map(|rows| format!("{} of {rows}", view.seeded))),
            or_dash(view.remaining_ms.map(|remaining| format!("{} s", (remaining + 999) / 1_000))),
            or_dash(view.report.as_deref().and_then(|report| report.lines().next()).map(str::to_owned)),
        ]
    };
    let header = ["projector", "generation", "state", "from", "progress", "events", "facts", "remaining", "report"];
    table(header, &views.iter().map(row).collect::<Vec<_>>())
}
