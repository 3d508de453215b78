//! Whether the log holds what the outbox holds, over a window of time: by counts and checksums of shards first, then
//! event by event in those that differ.
//!
//! A shard is the events of a part of the log whose ids fall into one bucket. Both sides are read in pages, and only
//! sums are kept; of the shards that differ, some buckets at a time are read once more and compared by their ids. What
//! relays have not noted as relayed is on its way. Each side was read after the log's ends were: a record that is in
//! the log was committed before, and is found.

mod rows;
mod sums;

use std::collections::BTreeSet;

use tidings_event::Timestamp;

use self::{
    rows::Rows,
    sums::{Sum, Sums},
};
use super::{Compared, Difference};
use crate::{
    Db, Result,
    kafka::{
        partition_of,
        scan::{self, Ranges, Scanned},
    },
    limits::{RECONCILE_PAGE_ROWS, RECONCILE_ROWS_MAX, RECONCILE_SCANS_MAX, RECONCILE_WINDOW_MARGIN},
    log::{KafkaLog, Log, Noted, Offset, Part},
    outbox,
};

/// How far times and numbers, and the clocks of several machines, may be apart.
const MARGIN_MS: i64 = RECONCILE_WINDOW_MARGIN.as_millis() as i64;
const UNSEEN: &str = "shard not compared";

/// Events that occurred in it are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// An event of the outbox, as far as it is compared.
#[derive(Clone, Copy, Debug)]
struct Row {
    seq: i64,
    id: [u8; 16],
    /// Of what a record must have as well.
    sum: u64,
    part: u16,
}

/// What is read on both sides.
struct Sides<'a> {
    db: &'a Db,
    log: &'a Log,
    kafka: &'a KafkaLog,
    parts: Vec<Part>,
    window: Window,
    first_seq: i64,
}

/// Where the log stands at a look, and what is certain to be in it.
struct Look {
    noted: Noted,
    ranges: Ranges,
    /// The last event of the outbox that is looked at: those of the log were there by then.
    head: Offset,
}

/// Compares the events of a window, of these types' topics.
pub(super) async fn check(
    db: &Db,
    log: &Log,
    kafka: &KafkaLog,
    event_types: &[&str],
    window: Window,
) -> Result<Compared> {
    let mut compared = Compared::of("log");
    let (parts, first_seq) = (log.parts(event_types), outbox::first_since(db, window.from).await?);
    let sides = Sides { db, log, kafka, parts, window, first_seq };
    let look = sides.look().await?;
    let in_log = sides.sum_log(&look).await?;
    let (in_outbox, rows) = sides.sum_outbox(&look).await?;
    let (differing, shards) = in_outbox.differing(&in_log);
    (compared.shards, compared.rows, compared.shards_differing) = (shards, rows, differing.shards.len() as u64);
    let mut seen = BTreeSet::new();
    for group in differing.groups(RECONCILE_ROWS_MAX).into_iter().take(RECONCILE_SCANS_MAX) {
        let look = sides.look().await?;
        let records = sides.records(&look, &group).await?;
        sides.compare(records, &look, &group, &mut compared).await?;
        seen.extend(group);
    }
    let unseen = differing.shards.iter().filter(|(_, bucket)| !seen.contains(bucket)).count() as u64;
    if unseen > 0 {
        compared.kinds.insert(UNSEEN, unseen);
    }
    if compared.total() > 0 {
        compared.note(
            "nothing repairs the log: `tidings rebuild start PROJECTOR --from facts` makes whole what lacks an event \
             (docs/reconciliation.md)",
        );
    }
    Ok(compared)
}

impl Sides<'_> {
    /// What is noted is asked for first: what it names is before the ends.
    async fn look(&self) -> Result<Look> {
        let noted = self.kafka.noted().await?;
        let ends = self.log.ends(self.parts.iter().cloned().collect()).await?;
        let starts = self.log.before(&self.parts, Timestamp(self.window.from.0.saturating_sub(MARGIN_MS))).await?;
        let range = |(part, end): (Part, Offset)| {
            let start = starts.get(&part).map_or(0, |start| start.0 + 1);
            (part, (start, end.0))
        };
        let head = self.log.extent().await?.head;
        Ok(Look { noted, ranges: ends.into_iter().map(range).collect(), head })
    }

    async fn sum_log(&self, look: &Look) -> Result<Sums> {
        let (parts, window) = (self.parts.clone(), self.window);
        let each = move |sums: &mut Sums, scanned: Scanned| {
            if let Some(record) = rows::record(&parts, window, &scanned) {
                sums.add(record.part, &record.id, record.sum);
            }
        };
        scan::scan(self.kafka.options().clone(), look.ranges.clone(), Sums::new(self.parts.len()), each).await
    }

    async fn sum_outbox(&self, look: &Look) -> Result<(Sums, u64)> {
        let (mut sums, mut rows, mut after) = (Sums::new(self.parts.len()), 0, self.first_seq - 1);
        while let Some((page, last)) = self.page(after, look.head).await? {
            rows += page.len() as u64;
            page.iter().for_each(|row| sums.add(row.part, &row.id, row.sum));
            after = last;
        }
        Ok((sums, rows))
    }

    /// The records of some buckets.
    async fn records(&self, look: &Look, group: &BTreeSet<u16>) -> Result<Rows> {
        let (parts, window, group) = (self.parts.clone(), self.window, group.clone());
        let each = move |rows: &mut Rows, scanned: Scanned| {
            if let Some(record) = rows::record(&parts, window, &scanned)
                && group.contains(&Sum::bucket(&record.id))
            {
                rows.add(record, &scanned);
            }
        };
        scan::scan(self.kafka.options().clone(), look.ranges.clone(), Rows::default(), each).await
    }

    /// Compares the events of some buckets with their records, one by one.
    async fn compare(
        &self,
        mut records: Rows,
        look: &Look,
        group: &BTreeSet<u16>,
        compared: &mut Compared,
    ) -> Result<()> {
        let mut after = self.first_seq - 1;
        while let Some((page, last)) = self.page(after, look.head).await? {
            for row in page.iter().filter(|row| group.contains(&Sum::bucket(&row.id))) {
                let expected = self.parts[usize::from(row.part)].to_string();
                match records.take(&row.id) {
                    None if !look.noted.has(row.seq) => compared.lagging += 1,
                    None => compared.push("record missing", || Difference {
                        kind: "record missing".into(),
                        subject: format!("event {}", outbox::id_text(&row.id)),
                        expected,
                        found: "no record".to_owned(),
                    }),
                    Some(found) => {
                        let wrong = found.wrong(row, &self.parts);
                        if let Some((kind, found)) = wrong {
                            compared.push(kind, || Difference {
                                kind: kind.into(),
                                subject: format!("event {}", outbox::id_text(&row.id)),
                                expected,
                                found,
                            });
                        }
                    }
                }
            }
            after = last;
        }
        self.compare_foreign(records, compared).await
    }

    /// What is left are records whose event is not among those that were read: of another time, or of none at all.
    async fn compare_foreign(&self, records: Rows, compared: &mut Compared) -> Result<()> {
        // What retention has removed is not in the outbox any more: it takes rows from the front, and times do not
        // quite rise with the numbers.
        let removed = match outbox::first(self.db).await? {
            None => Timestamp(i64::MAX),
            Some((Offset(1), at)) => at,
            Some((_, at)) => Timestamp(at.0.saturating_add(MARGIN_MS)),
        };
        for (places, known) in records.left(self.db).await? {
            let is_old = places.occurred_at <= removed;
            if known || (is_old && places.is_event) {
                continue;
            }
            let kind = if places.is_event { "record without event" } else { "record that is no event" };
            compared.push(kind, || Difference {
                kind: kind.into(),
                subject: places.subject(),
                expected: "nothing".to_owned(),
                found: places.shown(&self.parts),
            });
        }
        Ok(())
    }

    /// Some events of the outbox after a number that are compared, and the last number that was read.
    async fn page(&self, after: i64, until: Offset) -> Result<Option<(Vec<Row>, i64)>> {
        let sql = "SELECT seq, event_id, event_type, event_key, version, occurred_at FROM outbox \
                   WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?";
        let found = {
            let mut tx = self.db.glance().await?;
            let args = vec![after.into(), until.0.into(), RECONCILE_PAGE_ROWS.into()];
            tx.conn().fetch("comparing the outbox with the log", sql, args).await?
        };
        let Some(last) = found.last().map(|row| row.int(0)).transpose()? else { return Ok(None) };
        let partitions = self.kafka.options().partitions;
        let mut rows = Vec::with_capacity(found.len());
        for row in &found {
            let occurred_at = Timestamp(row.int(5)?);
            if occurred_at < self.window.from || occurred_at > self.window.until {
                continue;
            }
            let (event_type, key) = (row.text(2)?, row.text(3)?);
            let family = event_type.split('.').next().unwrap_or_default();
            let topic = self.kafka.options().topic(family);
            let number = partition_of(key.as_bytes(), partitions);
            let part = self.parts.iter().position(|part| *part.topic == *topic && part.number == number);
            // Of types that nobody named here.
            let Some(part) = part.and_then(|part| u16::try_from(part).ok()) else { continue };
            let Ok(id) = <[u8; 16]>::try_from(row.bytes(1)?.as_slice()) else { continue };
            let version = row.int(4)?;
            rows.push(Row { seq: row.int(0)?, id, sum: Sum::of(&id, &event_type, &key, version), part });
        }
        Ok(Some((rows, last)))
    }
}
