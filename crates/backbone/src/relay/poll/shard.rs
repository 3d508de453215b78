//! One shard: its pending rows into the log, batch after batch.

use std::sync::Arc;

use tidings_event::row::{self, Change, Operation};

use super::pending;
use crate::{
    Clock, Error, Result,
    clock::Stopwatch,
    limits::{RELAY_POLL_COLUMNS_GAP, RELAY_POLL_GAP_MAX, RELAY_POLL_GAP_MIN, RELAY_POLL_ROWS_MAX},
    relay::{
        Changes, Checkpoint, DeadLetter, Formatter, OutboxTable, Parked, Record, Sent, State, Table,
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
    rows: Vec<u64>,
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
        for sql in ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET time_zone = '+00:00'"] {
            connection.run("preparing to poll an outbox", sql).await?;
        }
        self.strike_off(&mut connection, checkpoint).await?;
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
                }
            }
            backoff.reset();
            gap = if is_idle { (gap * 2).min(RELAY_POLL_GAP_MAX) } else { RELAY_POLL_GAP_MIN };
            tokio::select! {
                () = tokio::time::sleep(gap) => {}
                ended = self.stop.wait() => return Ok(ended),
            }
        }
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
        // What the log has not taken is forgotten with this copy, whatever happens until then: rows that
        // were not published are not struck off, and a key is not parked twice.
        let mut next = checkpoint.clone();
        let mut page = self.read(connection, outbox, columns, &mut next.parked).await?;
        if page.rows.is_empty() {
            return Ok(None);
        }
        if let Some(ended) = self.stop.ended() {
            return Ok(Some(Err(ended)));
        }
        next.at_ms = self.clock.now().0;
        next.sent = Some(Sent { table: outbox.full_name(), rows: std::mem::take(&mut page.rows) });
        let Page { records, dead, .. } = &mut page;
        if let Some(ended) = self.writer.write(records, dead, &mut next, &self.stop).await? {
            return Ok(Some(Err(ended)));
        }
        *checkpoint = next;
        self.strike_off(connection, checkpoint).await?;
        Ok(Some(Ok(())))
    }

    /// Strikes off what is in the log. After a crash, or a connection that broke, this comes first.
    async fn strike_off(&self, connection: &mut Connection, checkpoint: &Checkpoint) -> Result<()> {
        let Some(sent) = &checkpoint.sent else { return Ok(()) };
        let Some(outbox) = self.outboxes.iter().find(|outbox| outbox.full_name() == sent.table) else { return Ok(()) };
        pending::strike_off(connection, outbox, self.index, &sent.rows).await
    }

    async fn read(
        &mut self,
        connection: &mut Connection,
        outbox: &OutboxTable,
        columns: &[Described],
        parked: &mut Parked,
    ) -> Result<Page> {
        let definition = row::Table {
            database: outbox.database.clone(),
            name: outbox.name.clone(),
            columns: columns.iter().map(|described| described.column.clone()).collect(),
        };
        let table = Table::new(definition, &outbox.columns);
        let (mut page, mut bytes) = (Page::default(), 0);
        let sql = pending::page(outbox, columns, RELAY_POLL_ROWS_MAX);
        let mut rows = connection.page(&sql, self.index.into(), Some(0)).await?;
        while let Some(mut row) = rows.next().await? {
            let number: u64 = row.take(0).unwrap_or_default();
            page.rows.push(number);
            let values = select::values_behind(row, 1, columns)?;
            if select::number(&values, table.places.seq).is_none() {
                tracing::error!(
                    table = outbox.full_name(),
                    seq = number,
                    "a pending row was deleted before it was relayed"
                );
                continue;
            }
            let now = self.clock.now().0;
            let before = page.records.len();
            let changes = Changes {
                table: &table,
                operation: Operation::Insert,
                rows: &[Change::insert(&values)],
                event_seconds: u32::try_from(now / 1_000).unwrap_or(u32::MAX),
                gtid: "",
                file: "",
                position: 0,
                server_id: 0,
            };
            self.formatter.push(&changes, parked, &mut page.records, &mut page.dead)?;
            bytes += page.records[before..].iter().map(Record::bytes).sum::<usize>();
            if bytes >= self.bytes_max {
                break;
            }
        }
        Ok(page)
    }

    async fn back_off(&self, backoff: &mut Backoff, error: &Error) {
        let pause = backoff.step();
        let (shard, error, pause_ms) = (self.index, Error::chain(error), pause.as_millis());
        tracing::warn!(shard, error, pause_ms, "the relay's source is away; trying again");
        telemetry::relay_backoff();
        self.live.state(State::BackingOff, Some(error));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ended = self.stop.wait() => {}
        }
    }
}
