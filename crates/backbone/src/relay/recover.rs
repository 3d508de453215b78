//! Rows that the binlog does not tell of are read from the outbox tables; then the stream is joined.
//!
//! It is noted where the stream is to be joined, then the rows are read that were not published: those
//! in the gaps of what was, and those with higher numbers. All that is committed after the note comes
//! in the stream; what of it the reading has met already is left out there, by its number. So nothing
//! is lost, and nothing is doubled, without a long transaction and in constant memory. The place that is noted is
//! one before which everything can be seen ([`server::visible`]): a transaction is in the binlog earlier.

use tidings_event::row::{Change, Value};

use super::{
    Position, Prepared, Recovery, Table,
    binlog::{Place, Reader, RowsMissing, at},
    connection::Connection,
    definition::{self, Described},
    options::OutboxTable,
    seen::Known,
    select::{self, Range},
    server,
    status::State,
};
use crate::{
    Error, Result,
    clock::Stopwatch,
    limits::{RELAY_POLL_GAP_MIN, RELAY_QUESTION_TIME_MAX, RELAY_RECOVERY_PAGE_ROWS, RELAY_SKIPPED_ROWS_READ},
};

/// Where the stream is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// Where the binlog ends now, after the tables were read.
    Table,
    /// Where the binlog ends now, and the tables are not read.
    End,
    /// Where the checkpoint stands, after the tables were read: so it was noted ([`Reader::note_missing`]), or the
    /// relay was stopped in the middle.
    Noted,
}

/// The reason why the tables are read where nothing is missing.
pub(super) const FIRST_START: &str = "this is the relay's first start";

impl Reader {
    /// Whether the relay was stopped while it read the tables.
    pub(super) fn is_reading_tables(&self) -> bool {
        self.checkpoint.recovery.as_ref().is_some_and(|recovery| recovery.until.is_none())
    }

    /// Publishes what the tables hold and was not published, and leaves the checkpoint where the stream
    /// is to be joined.
    ///
    /// # Errors
    /// The source cannot be reached; or a table has no column by which its rows could be told apart.
    pub(super) async fn recover(&mut self, connection: &mut Connection, reason: String, begin: Begin) -> Result<()> {
        if begin != Begin::Noted {
            self.begin(connection, reason, begin).await?;
        }
        if begin == Begin::End {
            return Ok(());
        }
        let reason = self.checkpoint.recovery.as_ref().map(|recovery| recovery.reason.clone()).unwrap_or_default();
        let from = &self.checkpoint.position;
        if reason == FIRST_START {
            tracing::info!(reason, %from, "reading rows from the outbox tables");
        } else {
            tracing::warn!(reason, %from, "reading rows from the outbox tables");
        }
        self.live.state(State::Active, Some(format!("reading the outbox tables: {reason}")));
        let outboxes = self.outboxes.clone();
        let covered = self.covered(connection).await?;
        for outbox in outboxes.iter() {
            self.read_table(connection, outbox).await?;
        }
        let until = server::end(connection).await?;
        let parse = |position| Place::parse(connection.flavor, position);
        let is_joined = match (parse(&self.checkpoint.position), parse(&until)) {
            (Ok(place), Ok(until)) => place.is_at_or_after(&until),
            _ => false,
        };
        let is_second_look = self.checkpoint.recovery.as_ref().is_some_and(|recovery| recovery.is_second_look);
        let is_done = is_joined && (is_second_look || !until.gtid.is_empty());
        let joined = Recovery { reason, until: Some(until), covered: Some(covered), is_second_look };
        self.checkpoint.recovery = (!is_done).then_some(joined);
        let turn = self.outlet.turn().await?;
        self.hand_over_all(turn).await
    }

    /// Notes that rows must be read from the tables before the stream goes on where it stands.
    pub(super) async fn note_missing(&mut self, RowsMissing { reason, is_second_look }: RowsMissing) -> Result<()> {
        self.checkpoint.recovery = Some(Recovery { reason, until: None, covered: None, is_second_look });
        let turn = self.outlet.turn().await?;
        self.hand_over_all(turn).await
    }

    /// Notes where the stream is to be joined, before any row is read.
    async fn begin(&mut self, connection: &mut Connection, reason: String, begin: Begin) -> Result<()> {
        self.rewind();
        // Where nothing is read from the tables, those count too that are committed between the looks.
        let mut waiting = if begin == Begin::End { prepared(connection).await } else { Vec::new() };
        self.checkpoint.position = server::visible(connection).await?;
        // Prepared transactions are not in the tables yet; where they stand in the binlog is unknown. The stream
        // tells of those that are prepared behind the place, so before it none may be overlooked.
        waiting.extend(prepared(connection).await);
        waiting.sort_unstable_by(|one, other| one.xid.cmp(&other.xid));
        waiting.dedup();
        self.checkpoint.prepared = waiting;
        self.checkpoint.partial = None;
        self.checkpoint.at_ms = self.clock.now().0;
        if begin == Begin::End {
            for outbox in self.outboxes.clone().iter() {
                self.skip_table(connection, outbox).await?;
            }
        } else {
            let recovery = Recovery { reason, until: None, covered: None, is_second_look: false };
            self.checkpoint.recovery = Some(recovery);
        }
        let turn = self.outlet.turn().await?;
        self.hand_over_all(turn).await
    }

    /// Waits until all that the stream has told of can be seen, and answers up to where it can.
    async fn covered(&mut self, connection: &mut Connection) -> Result<Position> {
        let flavor = connection.flavor;
        let parse = |position: &Position| Place::parse(flavor, position).map_err(at("a position"));
        let (place, since) = (parse(&self.checkpoint.position)?, Stopwatch::start());
        loop {
            let covered = server::visible(connection).await?;
            if parse(&covered)?.is_at_or_after(&place) {
                return Ok(covered);
            }
            if since.seconds() > RELAY_QUESTION_TIME_MAX.as_secs_f64() {
                // It is tried again; the reading is noted as begun.
                return Err(Error::SourceSilent { time: RELAY_QUESTION_TIME_MAX });
            }
            tokio::time::sleep(RELAY_POLL_GAP_MIN).await;
        }
    }

    /// What is in the table counts as published.
    async fn skip_table(&mut self, connection: &mut Connection, outbox: &OutboxTable) -> Result<()> {
        let columns = definition::read(connection, outbox).await?;
        if columns.iter().any(|described| described.column.name == outbox.columns.seq) {
            let (seq, table) = (select::name(&outbox.columns.seq), server::quoted(&outbox.database, &outbox.name));
            // What lacks between the last ones may be of transactions that are open or prepared, and must not count.
            let sql = format!("SELECT {seq} FROM {table} ORDER BY {seq} DESC LIMIT {RELAY_SKIPPED_ROWS_READ}");
            let last = connection.rows("looking for the last rows of an outbox", &sql, ()).await?;
            let mut last: Vec<u64> = last.into_iter().filter_map(|row| row.get(0)).collect();
            last.sort_unstable();
            let seen = self.checkpoint.seen(&outbox.full_name());
            seen.max = last.first().map_or(0, |first| first.saturating_sub(1));
            last.into_iter().for_each(|number| seen.insert(number));
        }
        Ok(())
    }

    async fn read_table(&mut self, connection: &mut Connection, outbox: &OutboxTable) -> Result<()> {
        let columns = definition::read(connection, outbox).await?;
        if !columns.iter().any(|described| described.column.name == outbox.columns.seq) {
            let reason = format!(
                "`{}` has no column `{}`, so it cannot be told which of its rows were not published: name a column \
                 that rises with each insert, or set a first start of `latest` and accept the loss",
                outbox.full_name(),
                outbox.columns.seq
            );
            return Err(Error::RelayStopped { reason });
        }
        // It was looked at when the relay was started; the table may have been altered since.
        if let Some(reason) = definition::wrong_seq(outbox, &columns) {
            return Err(Error::RelayStopped { reason });
        }
        let name = outbox.full_name();
        for gap in self.checkpoint.seen(&name).gaps().to_vec() {
            if let Known::Blur { come } = gap.known() {
                if select::count(connection, outbox, gap.from, gap.to).await? <= come {
                    continue;
                }
                // Which of them were published is not known. To publish one again does no harm, to leave one
                // out would.
                self.checkpoint.seen(&name).forget(gap.from, gap.to);
            }
            self.read_range(connection, outbox, &columns, Range::of(&gap)).await?;
        }
        let from = self.checkpoint.seen(&name).max + 1;
        self.read_range(connection, outbox, &columns, Range { from, to: None, comb: None }).await
    }

    /// Reads rows with these numbers, in their order, in pages.
    async fn read_range(
        &mut self,
        connection: &mut Connection,
        outbox: &OutboxTable,
        columns: &[Described],
        mut range: Range,
    ) -> Result<()> {
        let table = select::table(outbox, columns);
        let sql = select::page(outbox, columns, &range, RELAY_RECOVERY_PAGE_ROWS);
        connection.run("preparing to read an outbox", "SET time_zone = '+00:00'").await?;
        loop {
            let mut page = connection.page(&sql, range.params()).await?;
            let mut count = 0;
            while let Some(row) = page.next().await? {
                let values = select::values(row, columns)?;
                range.from =
                    select::number(&values, table.places.seq).map_or(u64::MAX, |number| number.saturating_add(1));
                self.push_row(&table, outbox, &values).await?;
                count += 1;
            }
            if count < RELAY_RECOVERY_PAGE_ROWS {
                return Ok(());
            }
        }
    }

    async fn push_row(&mut self, table: &Table, outbox: &OutboxTable, values: &[Value<'_>]) -> Result<()> {
        let now = self.clock.now();
        let rows = [Change::insert(values)];
        let changes = select::changes(table, &rows, now);
        self.outlet.push(&changes)?;
        if let Some(number) = select::number(values, table.places.seq) {
            self.checkpoint.seen(&outbox.full_name()).insert(number);
        }
        if self.outlet.is_full() {
            let turn = self.outlet.turn().await?;
            self.hand_over_all(turn).await?;
        }
        Ok(())
    }
}

/// The transactions that are prepared now. An account that may not see them has to do without.
async fn prepared(connection: &mut Connection) -> Vec<Prepared> {
    let rows = match connection.text_rows("looking for prepared transactions", "XA RECOVER").await {
        Ok(rows) => rows,
        Err(error) => {
            let error = Error::chain(&error);
            tracing::warn!(error, "prepared transactions cannot be seen; rows that they commit later may be missed");
            return Vec::new();
        }
    };
    let xid = |row: mysql_async::Row| -> Option<tidings_binlog::Xid> {
        let (format_id, gtrid, data) = (row.get(0)?, row.get::<usize, _>(1)?, row.get::<Vec<u8>, _>(3)?);
        let (gtrid, bqual) = data.split_at_checked(gtrid)?;
        Some(tidings_binlog::Xid { format_id, gtrid: gtrid.into(), bqual: bqual.into() })
    };
    let unknown =
        |xid: tidings_binlog::Xid| Prepared { xid: xid.to_string(), gtid: String::new(), before: Position::default() };
    rows.into_iter().filter_map(xid).map(unknown).collect()
}
