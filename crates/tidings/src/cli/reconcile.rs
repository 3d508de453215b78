//! `tidings reconcile`: what follows from facts compared with them, and put right by events.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_backbone::{
    Error as BackboneError,
    reconcile::{Reconciler, Run, State},
};

use super::{
    operator::{self, confirm, counted, harmless},
    print,
    table::table,
};
use crate::{
    Error, Result,
    config::Config,
    reconciliations::{CheckView, RunView},
    serve,
    store::Store,
};

/// Exit status when there are differences that remain.
const DIFFERENCES: u8 = 1;
/// Exit status when it could not be told.
pub(super) const COULD_NOT_RECONCILE: u8 = 2;

/// Compare the outbox with the log, and every projection with its facts
///
/// While reads and writes go on: what is only on its way is counted as lagging. It is done by this process, in a few
/// passes over counts and checksums, and row by row where they differ. Exit status: 0 without differences, 1 with
/// differences that remain, 2 if it could not be told.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ReconcileArgs {
    #[command(subcommand)]
    command: Option<ReconcileCommand>,
    /// Compare the projection of this projector alone
    #[arg(long, value_name = "NAME")]
    projector: Option<String>,
    /// Put right what differs, by events, and compare once more
    #[arg(long)]
    repair: bool,
    /// Print one JSON object; with `--repair` a second one, of the comparison after it
    #[arg(long)]
    json: bool,
}

/// What else to do.
#[derive(Debug, Subcommand)]
enum ReconcileCommand {
    /// Show the last runs, those on schedule among them
    List(ListArgs),
    /// Show what a run found
    Show(ShowArgs),
    /// Put right what the last run found, by events
    Repair(RepairArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Runs to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    last: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Which run: see `tidings reconcile list`
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RepairArgs {
    #[command(flatten)]
    show: ShowArgs,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(config: &Config, arguments: ReconcileArgs) -> Result<ExitCode> {
    let store = Store::open_existing(config).await?;
    let reconciler = serve::reconciler(&store, config);
    let done = act(&reconciler, arguments).await;
    store.db.close().await;
    done
}

async fn act(reconciler: &Reconciler, arguments: ReconcileArgs) -> Result<ExitCode> {
    let ReconcileArgs { command, projector, repair, json } = arguments;
    match command {
        Some(ReconcileCommand::List(arguments)) => list(reconciler, &arguments).await,
        Some(ReconcileCommand::Show(ShowArgs { id, json })) => show(find(reconciler, &id).await?, json),
        Some(ReconcileCommand::Repair(arguments)) => repair_run(reconciler, &arguments).await,
        None => reconcile(reconciler, projector.as_deref(), repair, json).await,
    }
}

async fn reconcile(reconciler: &Reconciler, projector: Option<&str>, repair: bool, json: bool) -> Result<ExitCode> {
    let actor = operator::actor();
    let run = reconciler.run_now(projector, &actor).await.map_err(refused)?;
    let can_repair = run.repair.state == tidings_backbone::reconcile::RepairState::Possible;
    if !repair || !can_repair {
        return show(run, json);
    }
    show(reconciler.repair_now(&run.id, &actor).await.map_err(refused)?, json)?;
    show(reconciler.run_now(projector, &actor).await.map_err(refused)?, json)
}

async fn repair_run(reconciler: &Reconciler, arguments: &RepairArgs) -> Result<ExitCode> {
    let RepairArgs { show: ShowArgs { id, json }, yes } = arguments;
    if !yes {
        let run = find(reconciler, id).await?;
        reconciler.control().would_repair(id).await.map_err(refused)?;
        eprintln!("{}", report(&RunView::whole(run)));
        confirm("writing events that put this right")?;
    }
    let run = reconciler.repair_now(id, &operator::actor()).await.map_err(refused)?;
    let (failed, left_out) = (run.repair.error.is_some(), run.left_out());
    show(run, *json)?;
    Ok(match (failed, left_out) {
        (true, _) => COULD_NOT_RECONCILE.into(),
        (false, 1..) => DIFFERENCES.into(),
        (false, 0) => ExitCode::SUCCESS,
    })
}

async fn find(reconciler: &Reconciler, id: &str) -> Result<Run> {
    let run = reconciler.control().find(id).await?;
    run.ok_or_else(|| Error::Usage(format!("there is no run `{}`: see `tidings reconcile list`", harmless(id))))
}

fn refused(error: BackboneError) -> Error {
    match error {
        BackboneError::Reconcile(refusal) => Error::Usage(format!("nothing was done: {refusal}")),
        error => error.into(),
    }
}

/// Prints a run; answers the exit status.
fn show(run: Run, json: bool) -> Result<ExitCode> {
    let (state, differences) = (run.state, run.differences);
    let view = RunView::whole(run);
    print(&if json { as_json(&view)? } else { report(&view) })?;
    Ok(match (state, differences) {
        (_, 1..) => DIFFERENCES.into(),
        (State::Done, 0) => ExitCode::SUCCESS,
        (State::Running | State::Failed, 0) => COULD_NOT_RECONCILE.into(),
    })
}

fn as_json(view: &RunView) -> Result<String> {
    let doing = "writing a reconciliation";
    serde_json::to_string(view).map_err(|source| BackboneError::Json { doing, source }.into())
}

async fn list(reconciler: &Reconciler, arguments: &ListArgs) -> Result<ExitCode> {
    let runs = reconciler.control().list(None, arguments.last).await?;
    let views: Vec<RunView> = runs.into_iter().map(RunView::short).collect();
    if arguments.json {
        print(&json!({ "items": views }).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |view: &RunView| {
        [
            view.id.clone(),
            view.started_at.clone(),
            view.state.to_owned(),
            view.actor.as_deref().map_or_else(|| view.trigger.to_owned(), harmless),
            view.differences.to_string(),
            view.lagging.to_string(),
            view.repair.state.to_owned(),
        ]
    };
    let header = ["id", "at", "state", "by", "differences", "lagging", "repair"];
    print(&table(header, &views.iter().map(row).collect::<Vec<_>>()))?;
    Ok(ExitCode::SUCCESS)
}

/// A run for people.
fn report(view: &RunView) -> String {
    let row = |check: &CheckView| {
        [
            check.check.clone(),
            check.rows.to_string(),
            check.shards.to_string(),
            check.shards_differing.to_string(),
            check.lagging.to_string(),
            check.differences.to_string(),
        ]
    };
    let header = ["check", "rows", "shards", "differing", "lagging", "differences"];
    let mut text = table(header, &view.checks.iter().map(row).collect::<Vec<_>>());
    let (state, differences, lagging) = (view.state, view.differences, view.lagging);
    let (differences, way) = (counted(differences, "difference"), if lagging == 1 { "its way" } else { "their way" });
    text.push_str(&format!("\n\nrun {}, {state}: {differences}, {lagging} on {way}", view.id));
    for check in &view.checks {
        for (kind, count) in &check.kinds {
            text.push_str(&format!("\n{}: {count} × {}", check.check, harmless(kind)));
        }
        for example in check.examples.iter().flatten() {
            let (subject, expected, found) = (&example.subject, &example.expected, &example.found);
            let line = format!("{}, {subject}: expected {expected}, found {found}", example.kind);
            text.push_str(&format!("\n  {}", harmless(&line)));
        }
        if let Some(note) = &check.note {
            text.push_str(&format!("\n{}: {}", check.check, harmless(note)));
        }
    }
    let repair = &view.repair;
    match (repair.state, &repair.error) {
        ("possible", _) => text.push_str(&format!("\nto repair by events: tidings reconcile repair {}", view.id)),
        ("none", _) => {}
        (state, None) => text.push_str(&format!("\nrepair {state}: {}", counted(repair.events, "event"))),
        (state, Some(error)) => text.push_str(&format!("\nrepair {state}: {}", harmless(error))),
    }
    text
}
