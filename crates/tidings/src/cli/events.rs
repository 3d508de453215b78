//! `tidings events`: what is in the log.

mod output;
mod select;

use std::ops::ControlFlow;

use clap::{Args, Subcommand};
use tidings_backbone::{
    limits::OTHER_PROCESS_POLL_GAP,
    log::{Log, Offset, Recorded},
};

use self::{
    output::{Output, closed},
    select::{Select, last},
};
use crate::{Error, Result, config::Config, store::Store};

/// Events read at once.
const READ_EVENTS_MAX: usize = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum EventsCommand {
    /// Show the last events, and those to come
    ///
    /// One event a line: offset, time, type, key, version of the aggregate, payload.
    Tail(TailArgs),
}

#[derive(Debug, Args)]
pub(super) struct TailArgs {
    /// Go on with events as they are committed, by whichever process, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// Events to begin with: the last so many that are selected
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    last: usize,
    #[command(flatten)]
    select: Select,
    /// Print each event as CloudEvents JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: &Config, command: EventsCommand) -> Result<()> {
    let EventsCommand::Tail(arguments) = command;
    let store = Store::open_existing(config).await?;
    let output = Output { json: arguments.json };
    let log = store.log();
    // Whoever follows goes on after it, and must not pass what is about to be committed below it.
    let head = if arguments.follow { log.steady_head().await? } else { log.extent().await?.head };
    let found = last(&log, &arguments.select, arguments.last, head).await?;
    if output.print(&found)?.is_break() || !arguments.follow {
        return Ok(());
    }
    // Open as long as the program runs: a pipe that is closed, or an interrupt, simply ends it.
    tokio::select! {
        ended = follow(&log, &arguments.select, head, &output) => ended,
        () = closed() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(|source| Error::System { doing: "waiting for an interrupt", source })
        }
    }
}

/// Prints what is committed after `after`, until nobody reads it any more.
async fn follow(log: &Log, select: &Select, mut after: Offset, output: &Output) -> Result<()> {
    let mut appended = log.appended();
    loop {
        // Before reading: what is committed meanwhile wakes the next round.
        appended.mark_unchanged();
        let events = log.read_on(after, READ_EVENTS_MAX).await?;
        let is_end = events.len() < READ_EVENTS_MAX;
        after = events.last().map_or(after, |event| event.offset);
        let selected: Vec<Recorded> = events.into_iter().filter(|event| select.takes(event)).collect();
        if let ControlFlow::Break(()) = output.print(&selected)? {
            return Ok(());
        }
        if is_end {
            tokio::select! {
                changed = appended.changed() => if changed.is_err() {
                    return Ok(());
                },
                // Commits of other processes wake nobody here.
                () = tokio::time::sleep(OTHER_PROCESS_POLL_GAP) => {}
            }
        }
    }
}
