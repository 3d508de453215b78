//! A transaction that is read once more, since only now it is known to have committed.
//!
//! That is so for one that is too large for a batch, for one that was prepared under an XID, and for
//! one that was partly rolled back. It is read on a connection beside the stream, and published in
//! pieces that each fit a batch; the checkpoint counts the rows that went. So memory stays as it is,
//! whatever the size, and nothing is published of a transaction that is void in the end.

use std::ops::Range;

use tidings_binlog::{Decoder, Event, Events, Flavor, Header};

use super::{
    group::{self, Step},
    place::Place,
    reader::{Reader, at, server_id},
    rows::{self, Origin},
    stream::Stream,
    tables::Tables,
};
use crate::{
    Error, Result,
    relay::{Partial, Position, Refusal, outlet::is_void},
};

/// Which transaction is read, and why.
#[derive(Debug)]
pub(super) struct Detour {
    /// The place before it.
    pub(super) from: Position,
    /// The transaction, as the server names it; if that is empty, the first one there.
    pub(super) gtid: String,
    /// The group that is committed by it, under which the checkpoint counts.
    pub(super) partial: String,
    /// Rows of it that are void.
    pub(super) void: Vec<Range<u64>>,
}

/// The side stream.
struct Side {
    stream: Stream,
    decoder: Decoder,
    tables: Tables,
    place: Place,
    detour: Detour,
    /// Rows that were published before, by an earlier try.
    skip: u64,
    /// Rows of the transaction so far; nothing before it begins.
    rows: Option<u64>,
}

impl Reader {
    /// Publishes a transaction. Answers why its rows must be read from the table, if the binlog does not
    /// hold it any more.
    pub(super) async fn publish(&mut self, flavor: Flavor, detour: Detour) -> Result<Option<String>> {
        let partial = self.checkpoint.partial.as_ref().filter(|partial| partial.gtid == detour.partial);
        let skip = partial.map_or(0, |partial| partial.rows);
        let place = Place::parse(flavor, &detour.from).map_err(at("the relay's checkpoint"))?;
        // A number of its own: under that of the relay, the server would end the stream itself.
        let number = server_id(&format!("{} detour", self.server_id));
        let mut side = Side {
            stream: Stream::open(&self.address, &place, number, self.heartbeat).await?,
            decoder: Decoder::new(flavor).limit_uncompressed(self.payload_bytes_max),
            tables: Tables::new(self.address.clone(), self.outboxes.clone()),
            place,
            detour,
            skip,
            rows: None,
        };
        loop {
            match self.side_step(&mut side).await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(
                    error @ (Error::BinlogRefused { refusal: Refusal::Purged | Refusal::BadPosition, .. }
                    | Error::Binlog { source: tidings_binlog::Error::TooLarge { .. }, .. }),
                ) => {
                    let (gtid, error) = (&side.detour.gtid, Error::chain(&error));
                    return Ok(Some(format!("the transaction {gtid} cannot be read again: {error}")));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads one event; answers whether the transaction has ended.
    async fn side_step(&mut self, side: &mut Side) -> Result<bool> {
        let (header, received) = side.stream.next().await?;
        let event = side.decoder.decode(&header, received.body()).map_err(at(&side.place))?;
        let Event::TransactionPayload(payload) = &event else {
            return self.side_event(side, &header, event).await;
        };
        let bytes = payload.events(self.payload_bytes_max).map_err(at(&side.place))?;
        for inner in Events::new(&bytes) {
            let (inner, body) = inner.map_err(at(&side.place))?;
            let event = side.decoder.decode_inner(&inner, body).map_err(at(&side.place))?;
            let inner = Header { next_position: header.next_position, ..inner };
            if self.side_event(side, &inner, event).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn side_event(&mut self, side: &mut Side, header: &Header, event: Event<'_>) -> Result<bool> {
        match &event {
            Event::Rows(rows) => {
                self.side_rows(side, header, rows).await?;
                return Ok(false);
            }
            Event::TableMap(table) => side.tables.meet(table, &mut side.decoder).await?,
            Event::Rotate(rotate) => rotate.file.clone_into(&mut side.place.file),
            _ => {}
        }
        match group::step(&event, None) {
            Step::Begins(gtid, _) if side.rows.is_none() => {
                let is_it = side.detour.gtid.is_empty() || gtid.to_string() == side.detour.gtid;
                side.rows = is_it.then_some(0);
                Ok(false)
            }
            Step::Begins(..) | Step::Commits | Step::RollsBack | Step::Prepares(_) => Ok(side.rows.is_some()),
            _ => Ok(false),
        }
    }

    async fn side_rows(&mut self, side: &mut Side, header: &Header, rows: &tidings_binlog::Rows<'_>) -> Result<()> {
        let (Some(before), Some(known)) = (side.rows, side.tables.outbox(rows.table())) else { return Ok(()) };
        let is_joining = self.checkpoint.recovery.is_some();
        let change = rows.change();
        let seen = self.checkpoint.seen(&self.outboxes[known.index].full_name());
        let is_wanted = |row: u64, number: Option<u64>| {
            let row = before + row;
            let is_repeated = is_joining && number.is_some_and(|number| seen.contains(number));
            let is_wanted = row >= side.skip && !is_void(&side.detour.void, row) && !is_repeated;
            if let Some(number) = number.filter(|_| is_wanted) {
                rows::note(seen, change, number);
            }
            is_wanted
        };
        let origin = Origin { gtid: &side.detour.gtid, file: &side.place.file, position: header.next_position.into() };
        let outlet = &mut self.outlet;
        let (count, pushed) =
            rows::with_changes(rows, &known, header, origin, is_wanted, |changes| outlet.push(changes))
                .map_err(at(&side.place))?;
        pushed.transpose()?;
        let rows = before + count;
        side.rows = Some(rows);
        if self.outlet.is_full() {
            self.checkpoint.partial = Some(Partial { gtid: side.detour.partial.clone(), rows });
            let turn = self.outlet.turn().await?;
            self.hand_over_all(turn).await?;
        }
        Ok(())
    }
}
