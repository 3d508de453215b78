//! `tidings import`: follows from a file, through the same ledgers as HTTP.

mod batches;
mod progress;
mod resume;
mod source;
mod summary;

use std::{num::NonZeroUsize, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use tidings_backbone::{
    clock::Stopwatch,
    projector::{Handle, State},
};
use tidings_community::relation::facts::Refusal;
use tokio_util::sync::CancellationToken;

use self::{
    batches::{Batch, Reading},
    progress::Progress,
    resume::Resume,
    source::Source,
    summary::Summary,
};
use super::print;
use crate::{
    Error, Result,
    config::{Config, Mode},
    follows_csv::Columns,
    ledgers::Ledgers,
    load::Loader,
    serve,
    store::Store,
};

/// How long the projectors may take for what was imported before the command ends without them.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(600);
/// Time in which a projector that runs comes on, with room for a rebalance.
const SETTLE_STEP: Duration = Duration::from_secs(20);
/// Line 1 is the header.
const FIRST_LINE: u64 = 2;
/// Status of a command that a signal stopped, by the custom of shells.
const STOPPED: u8 = 130;

#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Import follows from a CSV file
    ///
    /// The first line is the header. Users who are not registered are registered first, with the
    /// handle `user-ID`. Follows go through the same decisions as those of the API, in batches and
    /// without its rate limit: each change is one event. An import that was stopped or killed
    /// continues where it was when it is run again; a finished one may be run again and then
    /// changes nothing. Works whether or not a server runs on the data folder.
    Follows(FollowsArgs),
}

#[derive(Debug, Args)]
pub(super) struct FollowsArgs {
    /// CSV file with a header, plain or gzipped
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Add both directions of each line
    #[arg(long)]
    mutual: bool,
    /// Column of the follower; `from` unless given, or the first of two columns
    #[arg(long, value_name = "NAME", requires = "to_column")]
    from_column: Option<String>,
    /// Column of the one who is followed; `to` unless given, or the second of two columns
    #[arg(long, value_name = "NAME", requires = "from_column")]
    to_column: Option<String>,
    /// Lines between two notes of how far the import is
    #[arg(long, value_name = "LINES", default_value = "4096", value_parser = batch_size)]
    batch: NonZeroUsize,
    /// Stop at the first bad line, with an error; otherwise bad lines are reported and passed over
    #[arg(long)]
    strict: bool,
}

/// A batch is in memory at once.
fn batch_size(text: &str) -> Result<NonZeroUsize, String> {
    const LINES_MAX: usize = 65_536;
    let lines = text.parse::<NonZeroUsize>().ok().filter(|lines| lines.get() <= LINES_MAX);
    lines.ok_or_else(|| format!("is a number from 1 to {LINES_MAX}"))
}

pub(super) async fn run(config: &Config, command: ImportCommand) -> Result<ExitCode> {
    let ImportCommand::Follows(arguments) = command;
    let stopwatch = Stopwatch::start();
    // The file first: a wrong name must not leave a new data folder behind.
    let columns = match (&arguments.from_column, &arguments.to_column) {
        (Some(from), Some(to)) => Columns::Named { from: from.clone(), to: to.clone() },
        _ => Columns::Usual,
    };
    let file = arguments.file.clone();
    let opening = tokio::task::spawn_blocking(move || Source::open(&file, &columns)).await;
    let source = opening.map_err(|source| Error::PartEnded { part: "opening the file", source: Some(source) })??;

    match config.mode() {
        Mode::Embedded => eprintln!("importing into `{}`", config.data.dir.display()),
        Mode::Distributed => eprintln!("importing into {}", config.database.url),
    }
    let store = Store::open(config).await?;
    let stop = CancellationToken::new();
    serve::cancel_on_signal(stop.clone());
    let runtime = serve::projector_runtime(&store, config);
    let projectors = runtime.handle();
    let end = CancellationToken::new();
    // Distributed, other processes maintain the projections: this one would only make them divide anew.
    let running_projectors = match config.mode() {
        Mode::Embedded => Some(tokio::spawn(runtime.run(end.clone()))),
        Mode::Distributed => None,
    };
    let (ledgers, running_ledgers) = Ledgers::start(&store);

    let mut summary = Summary::default();
    let mut import = Import {
        loader: Loader::new(store.db.clone(), ledgers),
        progress: Progress::new(source.bytes, stopwatch),
        summary: &mut summary,
        arguments: &arguments,
    };
    let imported = import.run(&store, source, &stop).await;
    running_ledgers.drain().await;
    if imported.is_ok() && !stop.is_cancelled() {
        settle(&projectors, &stop).await?;
    }
    end.cancel();
    if let Some(running) = running_projectors {
        running.await.map_err(|source| Error::PartEnded { part: "the projectors", source: Some(source) })??;
    }
    store.db.close().await;

    print(&summary.table(stopwatch.seconds()))?;
    match imported? {
        End::Finished => Ok(ExitCode::SUCCESS),
        End::Stopped { next_line } => {
            match next_line {
                Some(line) => eprintln!("stopped before line {line}; the same command continues there"),
                None => eprintln!("stopped; the same command begins anew, and changes only what is missing"),
            }
            Ok(ExitCode::from(STOPPED))
        }
    }
}

/// How an import ended, when nothing failed.
enum End {
    Finished,
    /// By a signal; the line where the next run continues, if the file can be read again.
    Stopped {
        next_line: Option<u64>,
    },
}

/// An import at work.
struct Import<'i> {
    loader: Loader,
    progress: Progress,
    summary: &'i mut Summary,
    arguments: &'i FollowsArgs,
}

impl Import<'_> {
    async fn run(&mut self, store: &Store, source: Source, stop: &CancellationToken) -> Result<End> {
        let resume = Resume::of(store, &source, self.arguments.mutual);
        let mut next_line = resume.next_line().await?;
        if next_line > 0 {
            self.progress.say(&format!("continuing at line {next_line}, where an earlier run was"));
        }
        let options =
            Reading { lines: self.arguments.batch.get(), from_line: next_line, strict: self.arguments.strict };
        let path = source.path.clone();
        let mut batches = batches::read(source, options);
        loop {
            let batch = tokio::select! {
                biased;
                // What was read when the signal came is left for the next run.
                () = stop.cancelled() => {
                    self.progress.finish();
                    return Ok(End::Stopped { next_line: resume.is_possible().then_some(next_line.max(FIRST_LINE)) });
                }
                batch = batches.recv() => batch,
            };
            let Some(batch) = batch else { break };
            let batch = batch.map_err(Error::file("reading", &path))?;
            self.commit(&batch).await?;
            // A line that stopped the import is not dealt with: it stops the next run too.
            next_line = self.stopping_line().map_or(batch.next_line, |(line, _)| *line);
            resume.note(next_line).await?;
            self.progress.update(&batch, self.summary.lines);
            self.stop_if_strict()?;
        }
        self.progress.finish();
        resume.forget()?;
        Ok(End::Finished)
    }

    async fn commit(&mut self, batch: &Batch) -> Result<()> {
        let follows = batch.pairs(self.arguments.mutual);
        let loaded = self.loader.follow(&follows).await?;
        let directions = if self.arguments.mutual { 2 } else { 1 };
        self.summary.add(batch, follows.len(), &loaded);
        let refused = loaded.refused.iter().map(|(place, refusal)| {
            let line = batch.follows[place / directions].0;
            (line, refused_because(*refusal))
        });
        let mut bad: Vec<_> = batch.bad.iter().map(|(line, bad)| (*line, bad.to_string())).chain(refused).collect();
        // Both directions of a line may be refused for the same reason.
        bad.sort();
        bad.dedup();
        for (line, reason) in bad {
            if let Some(text) = self.summary.add_bad(line, reason) {
                self.progress.say(&text);
            }
        }
        Ok(())
    }

    /// The bad line, and what is wrong with it, that a strict import stops at.
    fn stopping_line(&self) -> Option<&(u64, String)> {
        self.summary.first_bad.as_ref().filter(|_| self.arguments.strict)
    }

    fn stop_if_strict(&self) -> Result<()> {
        let Some((line, reason)) = self.stopping_line() else { return Ok(()) };
        self.progress.finish();
        let file = self.arguments.file.display();
        Err(Error::Usage(format!("{file}, line {line}: {reason}; stopped there, as `--strict` asks")))
    }
}

fn refused_because(refusal: Refusal) -> String {
    match refusal {
        Refusal::Yourself => "a user follows himself".to_owned(),
        Refusal::UnknownUser(user) => {
            format!("user {user} could not be registered: the handle `user-{user}` belongs to somebody else")
        }
    }
}

/// Waits until the projectors have applied what was imported, whichever process runs them.
async fn settle(projectors: &Handle, stop: &CancellationToken) -> Result<()> {
    let settled = tokio::select! {
        settled = while_it_goes_on(projectors) => settled,
        () = stopped(projectors) => Ok(false),
        () = stop.cancelled() => Ok(false),
    };
    match settled {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        // Kafka may be away: what was imported is committed all the same.
        Err(Error::Backbone(error)) if error.is_transient() => {
            eprintln!("{}", tidings_backbone::Error::chain(&error));
        }
        Err(error) => return Err(error),
    }
    eprintln!("the follows are stored; what follows from them is not yet: see `tidings lag`");
    Ok(())
}

/// Waits as long as some projector comes on: where no process runs one, waiting is in vain.
async fn while_it_goes_on(projectors: &Handle) -> Result<bool> {
    let stopwatch = Stopwatch::start();
    let mut places = None;
    while stopwatch.seconds() < SETTLE_TIME_MAX.as_secs_f64() {
        if projectors.settle(SETTLE_STEP).await? {
            return Ok(true);
        }
        let now: Vec<i64> = projectors.statuses().await?.iter().map(|status| status.position.0).collect();
        if places.replace(now.clone()) == Some(now) {
            break;
        }
    }
    Ok(false)
}

/// Returns when a projector of this process has stopped, so that waiting for it is in vain.
async fn stopped(projectors: &Handle) {
    const LOOK_GAP: Duration = Duration::from_secs(1);
    loop {
        match projectors.statuses().await {
            Ok(statuses) if statuses.iter().any(|status| status.state == State::Stopped) => return,
            // An error is told by whoever waits beside this.
            _ => tokio::time::sleep(LOOK_GAP).await,
        }
    }
}
