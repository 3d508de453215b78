//! Where an event is still known: in the outbox, or where copies of it are kept.

use serde::Deserialize;
use serde_json::value::RawValue;
use tidings_event::{Event, EventId, Timestamp, cloudevents};

use super::Taken;
use crate::{
    Conn, Db, Error, Result,
    limits::JOURNEY_CLOCK_SLACK,
    log::{Found as InLog, Log, Offset, Part, Recorded, Since, Wanted},
    outbox,
};

/// An event that is known.
pub(super) struct Found {
    pub(super) event: Event,
    /// Its number in the outbox, if it is still there.
    pub(super) seq: Option<Offset>,
    /// Where it is in the log, if that was found beside it.
    pub(super) place: Option<Place>,
}

/// A place in the log.
pub(super) struct Place {
    pub(super) part: Part,
    pub(super) offset: Offset,
    pub(super) appended_at: Option<Timestamp>,
}

/// Finds an event in the outbox, else under a parked key, else in the audit of what was discarded, else in the log.
pub(super) async fn find(db: &Db, log: &Log, taken: &Taken, id: EventId) -> Result<Option<Found>> {
    let (recorded, copy) = {
        let mut tx = db.read().await?;
        let mut conn = tx.conn();
        let recorded = outbox::find(&mut conn, id).await?;
        let copy = match parked(&mut conn, id).await? {
            Some(copy) => Some(copy),
            None => discarded(&mut conn, id).await?,
        };
        (recorded, copy)
    };
    let (copied, place) = copy.unzip();
    if let Some(Recorded { offset, event }) = recorded {
        return Ok(Some(Found { event, seq: Some(offset), place }));
    }
    match (copied, log) {
        (Some(event), _) => Ok(Some(Found { event, seq: None, place })),
        (None, Log::Embedded(_)) => Ok(None),
        (None, Log::Kafka(log)) => {
            let types: Vec<&str> = taken.values().flat_map(|types| types.iter().copied()).collect();
            let Some(since) = made_at(id) else { return Ok(None) };
            let since = Since::Time(before(since));
            let wanted = Wanted { parts: log.parts(&types), since, id, key: None };
            match log.find(wanted).await? {
                InLog::Here(record) => {
                    let (part, offset, appended_at) = (record.part, record.recorded.offset, record.appended_at);
                    let place = Some(Place { part, offset, appended_at });
                    Ok(Some(Found { event: record.recorded.event, seq: None, place }))
                }
                InLog::Nowhere => Ok(None),
                // It may well be there: nobody is told that it is not.
                InLog::GaveUp => Err(Error::SearchGaveUp),
            }
        }
    }
}

/// A moment, but for what clocks may differ by.
pub(super) fn before(at: Timestamp) -> Timestamp {
    let slack = i64::try_from(JOURNEY_CLOCK_SLACK.as_millis()).unwrap_or(i64::MAX);
    Timestamp(at.0.saturating_sub(slack).max(0))
}

/// The moment in an id, where it is one that tells it.
fn made_at(id: EventId) -> Option<Timestamp> {
    let bytes = id.as_bytes();
    let millis = bytes[..6].iter().fold(0, |millis, byte| millis << 8 | i64::from(*byte));
    (bytes[6] >> 4 == 7).then_some(Timestamp(millis))
}

async fn parked(conn: &mut Conn<'_>, id: EventId) -> Result<Option<(Event, Place)>> {
    let sql = "SELECT part, log_offset, event FROM parked_event WHERE event_id = ? LIMIT 1";
    let Some(row) = conn.fetch_optional("looking for a parked event", sql, vec![id.to_string().into()]).await? else {
        return Ok(None);
    };
    let part = Part::read(&row.text(0)?, "parked_event")?;
    copy(part, row.int(1)?, &row.text(2)?).map(Some)
}

/// What the audit keeps of an event that was discarded.
#[derive(Deserialize)]
pub(super) struct Details {
    pub(super) part: String,
    pub(super) offset: i64,
    event: Box<RawValue>,
}

async fn discarded(conn: &mut Conn<'_>, id: EventId) -> Result<Option<(Event, Place)>> {
    let sql = "SELECT details FROM audit WHERE event_id = ? AND action = 'parking.discard' ORDER BY id DESC LIMIT 1";
    let Some(row) = conn.fetch_optional("looking into the audit", sql, vec![id.to_string().into()]).await? else {
        return Ok(None);
    };
    let details: Details = serde_json::from_str(&row.text(0)?).map_err(Error::json("reading the audit"))?;
    copy(Part::read(&details.part, "audit")?, details.offset, details.event.get()).map(Some)
}

fn copy(part: Part, offset: i64, event: &str) -> Result<(Event, Place)> {
    let event = cloudevents::json::decode(event.as_bytes()).map_err(Error::Event)?;
    Ok((event, Place { part, offset: Offset(offset), appended_at: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_when_it_was_made_if_it_is_one_that_does() {
        let at = Timestamp(1_795_965_977_123);
        assert_eq!(made_at(EventId::from_parts(at, &[7; 10])), Some(at));
        assert_eq!(made_at("6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().unwrap()), None);
    }
}
