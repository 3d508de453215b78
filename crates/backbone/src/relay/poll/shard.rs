//! One shard: its pending rows into the log, batch after batch.

use std::{collections::HashSet, sync::Arc};

use tidings_event::row::Change;

use super::pending;
use crate::{
    Clock, Error, Result,
    clock::Stopwatch,
    limits::{RELAY_POLL_COLUMNS_GAP, RELAY_POLL_GAP_MAX, RELAY_POLL_GAP_MIN, RELAY_POLL_ROWS_MAX},
    relay::{
        Checkpoint, DeadLetter, Formatter, OutboxTable, Parked, Record, Sent, State,
        backoff::Backoff,
        connection::{Address, Connection},
        definition::{self, Described},
        select,
        status::Live,
        writer::{Ended, Stop, Writer},
    },
    telemetry,
};

/// One shard, and all it needs.
pub(super) struct Shard {
    pub(super) index: u32,
    /// The group with the index, for the log.
    pub(super) group: String,
    pub(super) address: Address,
    pub(super) outboxes: Arc<[OutboxTable]>,
    pub(super) formatter: Formatter,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) live: Live,
    /// Bytes of records after which a batch is full.
    pub(super) bytes_max: usize,
    pub(super) stop: Stop,
}

/// Rows on their way.
#[derive(Default)]
struct Page {
    records: Vec<Record>,
    dead: Vec<DeadLetter>,
    /// Keys that are parked once these are written.
    parked: Parked,
    /// What is to be struck off: rows that are written now or were before, and such as are gone.
    rows: Vec<u64>,
    /// Whether any of them is to be written.
    is_new: bool,
    /// What the next checkpoint names as sent.
    sent: Sent,
}

impl Shard {
    /// Works until it is told to stop, or has been fenced.
    ///
    /// # Errors
    /// When it cannot go on without somebody's decision.
    pub(super) async fn run(mut self) -> Result<Ended> {
        let mut checkpoint = match self.writer.take_over(&self.stop).await? {
            Ok(checkpoint) => checkpoint.unwrap_or_default(),
            Err(ended) => return Ok(ended),
        };
        let mut backoff = Backoff::new();
        loop {
            match self.session(&mut checkpoint, &mut backoff).await {
                Ok(ended) => return Ok(ended),
                Err(error) if error.is_transient() => self.back_off(&mut backoff, &error).await,
                Err(error) => return Err(error),
            }
            if let Some(ended) = self.stop.ended() {
                return Ok(ended);
            }
        }
    }

    /// As long as one connection lasts.
    async fn session(&mut self, checkpoint: &mut Checkpoint, backoff: &mut Backoff) -> Result<Ended> {
        let mut connection = self.address.connect().await?;
        connection.lock_little().await?;
        connection.run("preparing to poll an outbox", "SET time_zone = '+00:00'").await?;
        let mut gap = RELAY_POLL_GAP_MIN;
        let mut definitions = Vec::new();
        let mut since_read = Stopwatch::start();
        loop {
            // A column that is gone makes the statement fail, and a new session; one that is new can wait.
            if definitions.is_empty() || since_read.seconds() > RELAY_POLL_COLUMNS_GAP.as_secs_f64() {
                definitions = self.definitions(&mut connection).await?;
                since_read = Stopwatch::start();
            }
            let mut is_idle = true;
            for (outbox, columns) in self.outboxes.clone().iter().zip(&definitions) {
                while let Some(ended) = self.batch(&mut connection, outbox, columns, checkpoint).await? {
                    is_idle = false;
                    if let Err(ended) = ended {
                        return Ok(ended);
                    }
                    self.end_trouble(backoff);
                }
            }
            self.end_trouble(backoff);
            gap = if is_idle { (gap * 2).min(RELAY_POLL_GAP_MAX) } else { RELAY_POLL_GAP_MIN };
            tokio::select! {
                () = tokio::time::sleep(gap) => {}
                ended = self.stop.wait() => return Ok(ended),
            }
        }
    }

    /// The database answers.
    fn end_trouble(&self, backoff: &mut Backoff) {
        if backoff.has_stepped() {
            self.live.active();
        }
        backoff.reset();
    }

    async fn definitions(&self, connection: &mut Connection) -> Result<Vec<Vec<Described>>> {
        let mut definitions = Vec::with_capacity(self.outboxes.len());
        for outbox in self.outboxes.iter() {
            definitions.push(definition::read(connection, outbox).await?);
        }
        Ok(definitions)
    }

    /// Publishes one batch; nothing if there is none. The inner error is why it is to end.
    async fn batch(
        &mut self,
        connection: &mut Connection,
        outbox: &OutboxTable,
        columns: &[Described],
        checkpoint: &mut Checkpoint,
    ) -> Result<Option<Result<(), Ended>>> {
        let mut page = self.read(connection, outbox, columns, checkpoint).await?;
        if page.rows.is_empty() {
            return Ok(None);
        }
        if let Some(ended) = self.stop.ended() {
            return Ok(Some(Err(ended)));
        }
        if page.is_new {
            // What the log has not taken is forgotten with this copy, whatever happens until then: rows that
            // were not published are not struck off, and a key is not parked twice.
            let mut next = checkpoint.clone();
            next.at_ms = self.clock.now().0;
            next.parked = std::mem::take(&mut page.parked);
            next.sent.retain(|sent| sent.table != page.sent.table);
            next.sent.push(std::mem::take(&mut page.sent));
            let Page { records, dead, .. } = &mut page;
            if let Some(ended) = self.writer.write(records, dead, &mut next, &self.stop).await? {
                return Ok(Some(Err(ended)));
            }
            *checkpoint = next;
        }
        pending::strike_off(connection, outbox, self.index, &page.rows).await?;
        Ok(Some(Ok(())))
    }

    async fn read(
        &mut self,
        connection: &mut Connection,
        outbox: &OutboxTable,
        columns: &[Described],
        checkpoint: &Checkpoint,
    ) -> Result<Page> {
        let table = select::table(outbox, columns);
        let name = outbox.full_name();
        let sent = checkpoint.sent.iter().find(|sent| sent.table == name).map_or(&[][..], |sent| &sent.rows);
        let known: HashSet<(u64, u64)> = sent.iter().copied().collect();
        let mut page = Page { parked: checkpoint.parked.clone(), ..Page::default() };
        let (mut bytes, mut noted, mut is_whole) = (0, 0, true);
        let sql = pending::page(outbox, columns, RELAY_POLL_ROWS_MAX);
        let mut rows = connection.page(&sql, (self.index,)).await?;
        while let Some(mut row) = rows.next().await? {
            let mut number = |column: usize| row.take::<u64, _>(column).unwrap_or_default();
            let (seq, identity) = (number(0), number(1));
            noted = number(2);
            page.rows.push(seq);
            if known.contains(&(seq, identity)) {
                continue;
            }
            let values = select::values_behind(row, pending::COLUMNS_BEFORE, columns)?;
            if select::number(&values, table.places.seq).is_none() {
                tracing::error!(table = name, seq, "a pending row was deleted before it was relayed");
                continue;
            }
            page.is_new = true;
            page.sent.rows.push((seq, identity));
            let before = page.records.len();
            let rows = [Change::insert(&values)];
            let changes = select::changes(&table, &rows, self.clock.now());
            self.formatter.push(&changes, &mut page.parked, &mut page.records, &mut page.dead)?;
            bytes += page.records[before..].iter().map(Record::bytes).sum::<usize>();
            if bytes >= self.bytes_max {
                is_whole = false;
                break;
            }
        }
        is_whole &= (page.rows.len() as u64) < RELAY_POLL_ROWS_MAX;
        let may_come = |row: &&(u64, u64)| {
            let is_beyond = !is_whole && page.rows.last().is_none_or(|last| row.0 > *last);
            row.0 > noted || is_beyond || page.rows.binary_search(&row.0).is_ok()
        };
        let kept = sent.iter().filter(may_come).copied().collect();
        page.sent.keep(name, kept);
        Ok(page)
    }

    async fn back_off(&self, backoff: &mut Backoff, error: &Error) {
        let pause = backoff.step();
        let (error, pause_ms) = (Error::chain(error), pause.as_millis());
        tracing::warn!(group = self.group, error, pause_ms, "the relay's source is away; trying again");
        telemetry::relay_backoff();
        self.live.state(State::BackingOff, Some(error));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ended = self.stop.wait() => {}
        }
    }
}
