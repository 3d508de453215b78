//! What is committed and not dealt with: it is told apart also while the projector, or the relay, stands still.

use std::collections::{BTreeMap, HashSet};

use super::Comparison;
use crate::{
    Result,
    db::{Row, Value},
    kafka::scan::{self, Ranges, Scanned},
    limits::{RECONCILE_PAGE_ROWS, RECONCILE_WAITING_MAX, STATEMENT_ROWS_MAX},
    log::{KafkaLog, Log, Noted, Offset, Part},
};

/// What events are about that wait: they are not in the log, or the projector is not past them.
#[derive(Debug, Default)]
pub struct Waiting(HashSet<(String, String)>);

impl Waiting {
    /// The type of each of them and the aggregate that it is about, each pair once.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(event_type, aggregate)| (event_type.as_str(), aggregate.as_str()))
    }
}

impl Comparison<'_> {
    /// What events are about that wait, of all that were committed before the call. What else differs from facts at a
    /// look before it, and just so at a look after it, is not only late: its events were dealt with.
    ///
    /// `None` where it would take reading more than [`RECONCILE_WAITING_MAX`] events: of the log those behind the
    /// projector, of the outbox those that polling relays have yet to send, or all behind the first that a relay of the
    /// binlog has not noted.
    pub async fn waiting(&self) -> Result<Option<Waiting>> {
        // Where the projector is, before where the log ends: what it passes between is still among what waits.
        let positions = self.reached().await?;
        let mut waiting = Waiting::default();
        match self.log {
            Log::Embedded(_) => {
                let after = positions.into_values().min().unwrap_or_default();
                let is_whole = self.add_outbox(0, after, &Noted::default(), &mut waiting).await?;
                Ok(is_whole.then_some(waiting))
            }
            Log::Kafka(log) => {
                let noted = log.noted().await?;
                let alone: Vec<i64> = noted.pending().collect();
                self.add_alone(&alone, &mut waiting).await?;
                let read = i64::try_from(alone.len()).unwrap_or(i64::MAX);
                if !self.add_outbox(read, noted.up_to(), &noted, &mut waiting).await? {
                    return Ok(None);
                }
                // What is noted is in the log by now.
                self.add_log(log, positions, waiting).await
            }
        }
    }

    /// Adds the events of the outbox that have these numbers.
    async fn add_alone(&self, numbers: &[i64], waiting: &mut Waiting) -> Result<()> {
        for part in numbers.chunks(STATEMENT_ROWS_MAX) {
            let marks = vec!["?"; part.len()].join(", ");
            let sql = format!("SELECT seq, event_type, aggregate_id FROM outbox WHERE seq IN ({marks})");
            let args = part.iter().copied().map(Value::from).collect();
            let mut tx = self.db.glance().await?;
            let rows = tx.conn().fetch("looking for events that wait", sql, args).await?;
            rows.iter().for_each(|row| self.add(row, waiting));
        }
        Ok(())
    }

    /// Adds the events of the outbox behind a number that are not noted as relayed; false where there are too many,
    /// with those that were `read` before.
    async fn add_outbox(&self, mut read: i64, mut after: Offset, noted: &Noted, waiting: &mut Waiting) -> Result<bool> {
        let head = self.log.extent().await?.head;
        let sql = "SELECT seq, event_type, aggregate_id FROM outbox WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?";
        loop {
            let rows = {
                let mut tx = self.db.glance().await?;
                let args = vec![after.0.into(), head.0.into(), RECONCILE_PAGE_ROWS.into()];
                tx.conn().fetch("looking for events that wait", sql, args).await?
            };
            let Some(last) = rows.last() else { return Ok(true) };
            after = Offset(last.int(0)?);
            read += i64::try_from(rows.len()).unwrap_or(i64::MAX);
            if read > RECONCILE_WAITING_MAX {
                return Ok(false);
            }
            for row in &rows {
                if !noted.has(row.int(0)?) {
                    self.add(row, waiting);
                }
            }
        }
    }

    fn add(&self, row: &Row, waiting: &mut Waiting) {
        if let Some((event_type, aggregate)) = texts(row)
            && self.event_types.contains(&event_type.as_str())
        {
            waiting.0.insert((event_type, aggregate));
        }
    }

    /// Adds the records behind the positions.
    async fn add_log(
        &self,
        log: &KafkaLog,
        positions: BTreeMap<Part, Offset>,
        waiting: Waiting,
    ) -> Result<Option<Waiting>> {
        let ends = self.log.ends(positions.keys().cloned().collect()).await?;
        let range = |(part, position): (Part, Offset)| {
            let end = ends.get(&part).copied().unwrap_or(position);
            (part, (position.0 + 1, end.0))
        };
        let ranges: Ranges = positions.into_iter().map(range).collect();
        let records: i64 = ranges.values().map(|(first, last)| (last + 1 - first).max(0)).sum();
        if records > RECONCILE_WAITING_MAX {
            return Ok(None);
        }
        let wanted = self.event_types;
        let each = move |waiting: &mut Waiting, scanned: Scanned| {
            if let Some(event) = scanned.event.filter(|event| wanted.contains(&event.event_type.as_str())) {
                waiting.0.insert((event.event_type, event.aggregate_id));
            }
        };
        scan::scan(log.options().clone(), ranges, waiting, each).await.map(Some)
    }
}

/// The type of an event and what it is about; nothing where the row is no event.
fn texts(row: &Row) -> Option<(String, String)> {
    Some((row.text(1).ok()?, row.text(2).ok()?))
}
