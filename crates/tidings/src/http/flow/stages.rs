//! The stages of the path, one after another.

use std::collections::BTreeMap;

use tidings_backbone::{
    log::{KafkaLog, Log, Relayed},
    relay,
};
use tidings_community::relation::projection;

use super::{App, Offset, PartView, Problem, ProjectorState, Stage, Status};

const UNREACHABLE: &str = "unreachable";

pub(super) fn facts((ledger, decided): (&'static str, u64)) -> Stage {
    Stage { name: format!("ledger.{ledger}"), total: decided, ..stage("facts") }
}

fn stage(stage: &'static str) -> Stage {
    Stage {
        stage,
        name: String::new(),
        position: None,
        total: 0,
        lag: 0,
        oldest_age_ms: None,
        parked_keys: 0,
        dead_keys: 0,
        state: "running",
        detail: None,
        parts: None,
    }
}

/// Adds what comes behind the facts; answers whether all of it has dealt with all there is.
pub(super) async fn behind_facts(
    app: &App,
    head: Offset,
    with_parts: bool,
    stages: &mut Vec<Stage>,
) -> Result<bool, Problem> {
    match &app.log {
        Log::Embedded(_) => {
            stages.push(outbox("log", app, head));
            let statuses = app.projectors.statuses().await?;
            // What was committed since the head was read does not count.
            let has_reached = |status: &Status| status.position >= head || status.lag_events == 0;
            let settled = statuses.iter().all(|status| is_foreign(status) || (has_reached(status) && is_calm(status)));
            stages.extend(statuses.into_iter().map(|status| projector(app, status, with_parts)));
            Ok(settled)
        }
        Log::Kafka(log) => {
            stages.push(outbox("outbox", app, head));
            behind_outbox(log, app, with_parts, stages).await
        }
    }
}

/// The relay, the topics and the projectors. While Kafka is away nobody can tell how far they are, and that
/// is what is told: the facts go on meanwhile.
async fn behind_outbox(log: &KafkaLog, app: &App, with_parts: bool, stages: &mut Vec<Stage>) -> Result<bool, Problem> {
    let looked = if app.health.kafka_answers().await {
        match reached(log, app).await {
            Err(error) if error.is_transient() => Err(tidings_backbone::Error::chain(&error)),
            looked => Ok(looked?),
        }
    } else {
        Err("Kafka does not answer".to_owned())
    };
    match looked {
        Ok(Reached { relayed, is_active, statuses }) => {
            let is_relayed = relayed.behind == 0;
            stages.push(relay(app, &relayed, is_active));
            stages.extend(topics(app, &statuses));
            let has_reached = |status: &Status| is_relayed && status.lag_events == 0;
            let settled = statuses.iter().all(|status| is_foreign(status) || (has_reached(status) && is_calm(status)));
            stages.extend(statuses.into_iter().map(|status| projector(app, status, with_parts)));
            Ok(settled)
        }
        Err(detail) => {
            let unreachable = |kind| Stage { state: UNREACHABLE, detail: Some(detail.clone()), ..stage(kind) };
            stages.push(Stage { name: app.config.relay_group().to_owned(), ..unreachable("relay") });
            stages.push(Stage { name: "kafka".to_owned(), ..unreachable("log") });
            stages.push(Stage { name: projection::NAME.to_owned(), ..unreachable("projector") });
            Ok(false)
        }
    }
}

/// What Kafka and the database tell together.
struct Reached {
    relayed: Relayed,
    /// Whether some process is the active relay.
    is_active: bool,
    statuses: Vec<Status>,
}

/// Looks at the relay before the projectors: what was relayed then, they have had the chance to see.
async fn reached(log: &KafkaLog, app: &App) -> tidings_backbone::Result<Reached> {
    let relayed = log.relayed().await?;
    let is_active = relay::is_held(&mut app.db.read().await?.conn(), app.config.relay_group()).await?;
    Ok(Reached { relayed, is_active, statuses: app.projectors.statuses().await? })
}

/// The relay, whichever process is the active one; only of one's own is known what holds it up.
fn relay(app: &App, relayed: &Relayed, is_active: bool) -> Stage {
    let own = app.relay.as_ref().map(relay::Handle::status);
    let own = own.filter(|status| matches!(status.state, relay::State::BackingOff | relay::State::Stopped));
    let (state, detail) = match own {
        Some(status) if status.state == relay::State::BackingOff => ("backing_off", status.detail),
        Some(status) if !is_active => ("stopped", status.detail),
        _ if is_active => ("running", None),
        _ => ("stopped", Some("no process is the active relay".to_owned())),
    };
    Stage {
        name: app.config.relay_group().to_owned(),
        position: Some(relayed.published.0),
        total: since(app.baseline.relayed, relayed.published),
        lag: relayed.behind,
        oldest_age_ms: relayed.oldest.map(|oldest| (app.clock.now().0 - oldest.0).max(0)),
        state,
        detail,
        ..stage("relay")
    }
}

/// Whether nobody waits for it: no projector here has its name, or nobody reads what it builds yet.
fn is_foreign(status: &Status) -> bool {
    status.state == ProjectorState::Unregistered || !status.is_live
}

fn is_calm(status: &Status) -> bool {
    status.retrying_keys == 0
}

fn outbox(kind: &'static str, app: &App, head: Offset) -> Stage {
    Stage { name: "outbox".to_owned(), position: Some(head.0), total: since(app.baseline.head, head), ..stage(kind) }
}

/// The topics that projectors read, up to their ends.
fn topics(app: &App, statuses: &[Status]) -> Vec<Stage> {
    let topic = |(name, end): (&str, Offset)| {
        let before = app.baseline.topics.get(name).copied().unwrap_or_default();
        Stage { name: name.to_owned(), position: Some(end.0), total: since(before, end), ..stage("log") }
    };
    topic_ends(statuses).into_iter().map(topic).collect()
}

/// The ends of the topics that projectors read, each over all its partitions.
pub(crate) fn topic_ends(statuses: &[Status]) -> BTreeMap<&str, Offset> {
    // Projectors of the same topic see the same end, but for what was appended between two looks.
    let mut ends: BTreeMap<&str, BTreeMap<i32, i64>> = BTreeMap::new();
    for part in statuses.iter().flat_map(|status| &status.parts) {
        let end = ends.entry(&part.part.topic).or_default().entry(part.part.number).or_default();
        *end = (*end).max(part.position.0 + 1 + part.lag_events);
    }
    ends.into_iter().map(|(name, ends)| (name, Offset(ends.values().sum()))).collect()
}

fn projector(app: &App, status: Status, with_parts: bool) -> Stage {
    let before = app.baseline.positions.get(&status.name).copied().unwrap_or_default();
    let parts = status.parts.iter().map(|part| PartView {
        topic: part.part.topic.to_string(),
        partition: part.part.number,
        position: part.position.0,
        lag: part.lag_events,
    });
    Stage {
        parts: with_parts.then(|| parts.collect()),
        // By position, so that it is true also when another process runs the projector.
        total: since(before, status.position),
        name: status.name,
        position: Some(status.position.0),
        lag: status.lag_events,
        oldest_age_ms: status.oldest_age_ms,
        parked_keys: status.retrying_keys,
        dead_keys: status.dead_keys,
        state: match status.state {
            ProjectorState::Waiting => "waiting",
            ProjectorState::Running => "running",
            ProjectorState::BackingOff => "backing_off",
            ProjectorState::Stopped => "stopped",
            ProjectorState::Unregistered => "unregistered",
        },
        detail: status.detail,
        ..stage("projector")
    }
}

fn since(before: Offset, now: Offset) -> u64 {
    u64::try_from(now.0 - before.0).unwrap_or(0)
}
