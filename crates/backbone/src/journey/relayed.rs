//! Where an event is in the log.

use tidings_event::{Event, Timestamp};

use super::{
    RelayState, Relayed,
    committed::{Found, before},
};
use crate::{
    Error, Result,
    limits::JOURNEY_LOG_TIME_MAX,
    log::{Found as InLog, KafkaLog, Log, Offset, Part, Since, Wanted},
};

/// Where it is. A log that cannot be asked is no reason to tell nothing else of the event.
pub(super) async fn of(log: &Log, found: &Found) -> Relayed {
    let log = match log {
        // What is committed is in it.
        Log::Embedded(_) => {
            let offset = found.seq.or(found.place.as_ref().map(|place| place.offset));
            return here(Part::outbox(), offset, Some(found.event.occurred_at));
        }
        Log::Kafka(log) => log,
    };
    let failed = match tokio::time::timeout(JOURNEY_LOG_TIME_MAX, look(log, found)).await {
        Ok(Ok(relayed)) => return relayed,
        Ok(Err(error)) => Error::chain(&error),
        Err(_) => format!("no answer within {} s", JOURNEY_LOG_TIME_MAX.as_secs()),
    };
    tracing::warn!(event_id = %found.event.id, error = failed, "where an event is in the log cannot be told");
    match &found.place {
        Some(place) => here(place.part.clone(), Some(place.offset), place.appended_at),
        None => elsewhere(RelayState::Unknown, part(log, found)),
    }
}

async fn look(log: &KafkaLog, found: &Found) -> Result<Relayed> {
    let event = &found.event;
    let wanted =
        |part: Part, since: Since| Wanted { parts: vec![part], since, id: event.id, key: Some(event.key.clone()) };
    if let Some(place) = &found.place {
        let mut appended_at = place.appended_at;
        if appended_at.is_none()
            && let InLog::Here(record) = log.find(wanted(place.part.clone(), Since::Offset(place.offset))).await?
        {
            appended_at = record.appended_at;
        }
        return Ok(here(place.part.clone(), Some(place.offset), appended_at));
    }
    // The relay before the log: what it has published by then is there to be found.
    let published = match found.seq {
        Some(seq) => log.has_published(seq).await?,
        None => Some(true),
    };
    let part = part(log, found);
    Ok(match (log.find(wanted(part.clone(), Since::Time(before(event.occurred_at)))).await?, published) {
        (InLog::Here(record), _) => here(part, Some(record.recorded.offset), record.appended_at),
        (InLog::Nowhere, None | Some(false)) | (InLog::GaveUp, Some(false)) => {
            let behind = log.relayed().await.map(|relayed| relayed.behind)?;
            Relayed { behind: Some(behind), ..elsewhere(RelayState::Waiting, part) }
        }
        // What the relay has passed and did not publish is with the dead letters of its key: unless it was published,
        // before its key was set aside, and has gone with what the log does not hold any more.
        (InLog::Nowhere, Some(true)) if is_set_aside(log, &part, event).await? => {
            elsewhere(RelayState::DeadLetter, part)
        }
        (InLog::Nowhere, Some(true)) | (InLog::GaveUp, _) => elsewhere(RelayState::Unknown, part),
    })
}

async fn is_set_aside(log: &KafkaLog, part: &Part, event: &Event) -> Result<bool> {
    Ok(log.is_set_aside(&event.key).await? && log.reaches_back(part.clone(), before(event.occurred_at)).await?)
}

fn part(log: &KafkaLog, found: &Found) -> Part {
    log.part_of(&found.event.event_type, &found.event.key)
}

fn here(part: Part, offset: Option<Offset>, at: Option<Timestamp>) -> Relayed {
    Relayed { state: RelayState::Relayed, part, offset, at, behind: None }
}

fn elsewhere(state: RelayState, part: Part) -> Relayed {
    Relayed { state, part, offset: None, at: None, behind: None }
}
