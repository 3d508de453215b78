//! The records of the shards that differ, until their events are met.

use std::collections::{HashMap, HashSet};

use tidings_event::Timestamp;

use super::{Row, Window, sums::Sum};
use crate::{
    Db, Result,
    kafka::scan::Scanned,
    log::{Offset, Part},
    outbox,
};

/// A record, as far as it is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) part: u16,
    pub(super) id: [u8; 16],
    pub(super) sum: u64,
    is_event: bool,
    occurred_at: Timestamp,
}

/// Where the records of one event are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    id: [u8; 16],
    part: u16,
    offset: Offset,
    sum: u64,
    count: u32,
    pub(super) is_event: bool,
    pub(super) occurred_at: Timestamp,
}

/// Records by the ids of their events.
#[derive(Debug, Default)]
pub(super) struct Rows(HashMap<[u8; 16], Places>);

/// What is compared of a record; nothing if it is of another time. What is no event has a place for an id.
pub(super) fn record(parts: &[Part], window: Window, scanned: &Scanned) -> Option<Record> {
    let part = parts.binary_search(&scanned.part).ok().and_then(|part| u16::try_from(part).ok())?;
    let is_within = |at: Timestamp| at >= window.from && at <= window.until;
    match &scanned.event {
        Some(event) => {
            let id = *event.id.as_bytes();
            let version = i64::try_from(event.version).unwrap_or(i64::MAX);
            let sum = Sum::of(&id, &event.event_type, &event.key, version);
            is_within(event.occurred_at).then_some(Record {
                part,
                id,
                sum,
                is_event: true,
                occurred_at: event.occurred_at,
            })
        }
        None => {
            let mut id = [0; 16];
            id[..2].copy_from_slice(&part.to_be_bytes());
            id[8..].copy_from_slice(&scanned.offset.0.to_be_bytes());
            let occurred_at = scanned.recorded_at.filter(|at| is_within(*at))?;
            Some(Record { part, id, sum: 0, is_event: false, occurred_at })
        }
    }
}

impl Rows {
    pub(super) fn add(&mut self, record: Record, scanned: &Scanned) {
        let Record { part, id, sum, is_event, occurred_at } = record;
        let first = Places { id, part, offset: scanned.offset, sum, count: 0, is_event, occurred_at };
        self.0.entry(id).or_insert(first).count += 1;
    }

    pub(super) fn take(&mut self, id: &[u8; 16]) -> Option<Places> {
        self.0.remove(id)
    }

    /// What nobody took, each with whether the outbox has its event all the same.
    pub(super) async fn left(self, db: &Db) -> Result<Vec<(Places, bool)>> {
        let mut places: Vec<Places> = self.0.into_values().collect();
        places.sort_by_key(|places| (places.part, places.offset));
        let ids = places.iter().filter(|places| places.is_event).map(|places| places.id.to_vec()).collect();
        let known: HashSet<Vec<u8>> = outbox::having(db, ids).await?;
        Ok(places.into_iter().map(|places| (places, known.contains(places.id.as_slice()))).collect())
    }
}

impl Places {
    /// What is wrong with the records of an event, if anything.
    pub(super) fn wrong(&self, row: &Row, parts: &[Part]) -> Option<(&'static str, String)> {
        if self.count > 1 {
            return Some(("record doubled", format!("{} records, the first at {}", self.count, self.shown(parts))));
        }
        if self.part != row.part {
            return Some(("record in the wrong partition", self.shown(parts)));
        }
        (self.sum != row.sum).then(|| ("record differs", format!("{} of other content", self.shown(parts))))
    }

    pub(super) fn subject(&self) -> String {
        if self.is_event { format!("event {}", outbox::id_text(&self.id)) } else { "a record".to_owned() }
    }

    pub(super) fn shown(&self, parts: &[Part]) -> String {
        let part = parts.get(usize::from(self.part)).map_or_else(|| "?".to_owned(), ToString::to_string);
        format!("{part} offset {}", self.offset.0)
    }
}
