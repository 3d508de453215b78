//! `tidings verify`: everything that follows from facts, compared with them.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use serde_json::{Value, json};
use tidings_backbone::projector::Handle;
use tidings_community::relation::verify::{Kind, Report, compare, compare_again, verify};

use super::{operator::counted, print, table::table};
use crate::{
    Error, Result,
    config::{Config, Mode},
    serve,
    store::Store,
};

/// Exit status when there are differences.
const DIFFERENCES: u8 = 1;
/// Exit status when it could not be told.
pub(super) const COULD_NOT_VERIFY: u8 = 2;

/// Compare every mirror row, list length and counter with the facts.
///
/// Exact at any moment, also while a server writes: all is read in one snapshot, and events on
/// their way are taken into account, or waited for where they are on their way through Kafka. Exit
/// status: 0 without differences, 1 with differences, 2 if it could not be told: also of pairs that
/// changed faster than their events came through Kafka, at each of some looks.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: &Config, arguments: &VerifyArgs) -> Result<ExitCode> {
    let store = Store::open_existing(config).await?;
    let report = match config.mode() {
        Mode::Embedded => verify(&store.db).await?,
        Mode::Distributed => compare_settled(&store, config).await?,
    };
    store.db.close().await;
    print(&if arguments.json { as_json(&report).to_string() } else { as_table(&report, config.mode()) })?;
    Ok(match (report.is_clean(), report.in_flight) {
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => COULD_NOT_VERIFY.into(),
        (false, _) => DIFFERENCES.into(),
    })
}

/// How long the relay and the projectors may take for what is committed now.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(60);
/// How often a pair that differs is looked at again while its fact changes from look to look.
const LOOKS_MAX: u32 = 30;

/// Distributed, a snapshot does not tell what is on its way. A pair that differs is looked at again, once all
/// that was on its way has been applied: until it no longer does, or its fact has not changed meanwhile.
async fn compare_settled(store: &Store, config: &Config) -> Result<Report> {
    let (projectors, log) = (serve::projector_runtime(store, config).handle(), store.log());
    settle(&projectors).await?;
    let (mut report, mut suspects) = compare(&store.db, &log).await?;
    for _ in 0..LOOKS_MAX {
        if suspects.is_empty() {
            break;
        }
        settle(&projectors).await?;
        suspects = compare_again(&store.db, &log, &suspects, &mut report).await?;
    }
    report.in_flight = suspects.number();
    Ok(report)
}

async fn settle(projectors: &Handle) -> Result<()> {
    if projectors.settle(SETTLE_TIME_MAX).await? {
        return Ok(());
    }
    let seconds = SETTLE_TIME_MAX.as_secs();
    Err(Error::Usage(format!("not everything that is committed was applied within {seconds} s: see `tidings lag`")))
}

/// How many things were looked at for differences of this kind.
fn checked(report: &Report, kind: Kind) -> u64 {
    match kind {
        Kind::MirrorMissing => report.facts,
        Kind::MirrorExtra | Kind::MirrorOfNobody | Kind::MirrorStatus | Kind::MirrorVersion | Kind::MirrorTime => {
            report.mirror_rows
        }
        Kind::EventWithoutFact => report.pending_events,
        Kind::FollowerListLength
        | Kind::CounterMissing
        | Kind::CounterMalformed
        | Kind::CounterValue
        | Kind::CounterOfNobody => report.users,
    }
}

fn found(report: &Report, kind: Kind) -> u64 {
    report.differences.get(&kind).copied().unwrap_or(0)
}

fn as_table(report: &Report, mode: Mode) -> String {
    let rows =
        Kind::ALL.map(|kind| [kind.to_string(), checked(report, kind).to_string(), found(report, kind).to_string()]);
    let mut text = table(["what", "checked", "differences"], &rows);
    let (offset, pending, total) = (report.position.0, report.pending_events, report.total());
    let (differences, way) = (counted(total, "difference"), if pending == 1 { "its way" } else { "their way" });
    text.push_str(&match mode {
        Mode::Embedded => {
            format!("\n\nat offset {offset}, with {} on {way}: {differences}", counted(pending, "event"))
        }
        Mode::Distributed => format!("\n\nwhen what was on its way had been applied: {differences}"),
    });
    if report.in_flight > 0 {
        let said = match report.in_flight {
            1 => "1 pair is still in flight: it changed at each look, and is neither right nor wrong".to_owned(),
            number => format!(
                "{number} pairs are still in flight: they changed at each look, and are neither right nor wrong"
            ),
        };
        text.push_str(&format!("\n{said}. Verify again when fewer writes come"));
    }
    for example in &report.examples {
        let (subject, expected, found) = (&example.subject, &example.expected, &example.found);
        text.push_str(&format!("\n  {}, {subject}: expected {expected}, found {found}", example.kind));
    }
    let hidden = total.saturating_sub(report.examples.len() as u64);
    if hidden > 0 {
        text.push_str(&format!("\n  and {hidden} more"));
    }
    text
}

fn as_json(report: &Report) -> Value {
    let kinds = Kind::ALL.map(|kind| {
        json!({ "what": kind.to_string(), "checked": checked(report, kind), "differences": found(report, kind) })
    });
    let examples = report.examples.iter().map(|example| {
        json!({
            "what": example.kind.to_string(),
            "subject": example.subject,
            "expected": example.expected,
            "found": example.found,
        })
    });
    json!({
        "position": report.position.0,
        "pending_events": report.pending_events,
        "facts": report.facts,
        "mirror_rows": report.mirror_rows,
        "users": report.users,
        "differences": report.total(),
        "in_flight": report.in_flight,
        "kinds": kinds,
        "examples": examples.collect::<Vec<_>>(),
    })
}
