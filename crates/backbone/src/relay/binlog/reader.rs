//! Streams into batches.

use std::{sync::Arc, time::Duration};

use tidings_binlog::{Decoder, Event, Events, Flavor, Header, UnreadableTable};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    group::Group,
    place::Place,
    stream::{Received, Stream},
    tables::Tables,
};
use crate::{
    Clock, Error, Result,
    clock::Stopwatch,
    limits::{RELAY_GAP_AGE_MAX, RELAY_QUIET_CHECKPOINT_GAP},
    relay::{
        Checkpoint,
        backoff::Backoff,
        connection::Address,
        options::{Options, OutboxTable},
        outlet::Outlet,
        status::Live,
    },
};

/// Reads one stream after the other, and keeps what must outlive a stream.
#[derive(Debug)]
pub(in crate::relay) struct Reader {
    pub(in crate::relay) address: Address,
    pub(in crate::relay) outboxes: Arc<[OutboxTable]>,
    pub(in crate::relay) outlet: Outlet,
    pub(in crate::relay) clock: Clock,
    pub(in crate::relay) live: Live,
    /// What stands in the batch that is being made is behind it.
    pub(in crate::relay) checkpoint: Checkpoint,
    /// The one that was handed over last: where to begin again should the stream fail.
    handed_over: Checkpoint,
    since_handed_over: Stopwatch,
    pub(super) server_id: u32,
    pub(super) heartbeat: Duration,
    pub(super) payload_bytes_max: usize,
}

/// What one stream knows.
pub(super) struct Session {
    stream: Stream,
    decoder: Decoder,
    pub(super) tables: Tables,
    /// The place before the open group, or after the last one.
    pub(super) place: Place,
    pub(super) group: Option<Group>,
    pub(super) flavor: Flavor,
    /// While the stream is being joined after rows were read from the tables: how far that may matter.
    pub(super) joining_until: Option<Place>,
    /// All that was committed before it was read from the tables already.
    pub(super) covered: Option<Place>,
    pub(super) has_warned_of_statements: bool,
    /// Whether the source gives the stream: an event of the binlog itself has come.
    is_given: bool,
}

/// A stream is left because the binlog does not tell of some rows: they must be read from the outbox
/// tables. The checkpoint stands behind their transaction.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::relay) struct RowsMissing {
    /// Why.
    pub(in crate::relay) reason: String,
    /// Whether they were read already, by a server that could not tell what can be seen.
    pub(in crate::relay) is_second_look: bool,
}

impl RowsMissing {
    pub(super) fn because(reason: String) -> Self {
        Self { reason, is_second_look: false }
    }
}

impl Reader {
    pub(in crate::relay) fn new(
        options: &Options,
        address: Address,
        outboxes: Arc<[OutboxTable]>,
        checkpoint: Checkpoint,
        outlet: Outlet,
        clock: Clock,
        live: Live,
    ) -> Self {
        Self {
            address,
            outboxes,
            outlet,
            clock,
            live,
            handed_over: checkpoint.clone(),
            checkpoint,
            since_handed_over: Stopwatch::start(),
            server_id: server_id(&options.group),
            heartbeat: options.heartbeat,
            payload_bytes_max: options.payload_bytes_max,
        }
    }

    /// Forgets what was not handed over: it is read again.
    pub(in crate::relay) fn rewind(&mut self) {
        self.outlet.clear(&self.handed_over.parked);
        self.checkpoint = self.handed_over.clone();
    }

    /// Reads on from the checkpoint, until something fails or rows are missing.
    ///
    /// # Errors
    /// Those of the source ([`Error::is_transient`]), or ones that need somebody's decision.
    pub(in crate::relay) async fn read(&mut self, flavor: Flavor, backoff: &mut Backoff) -> Result<RowsMissing> {
        self.rewind();
        let mut session = self.session(flavor).await?;
        loop {
            let (header, received) = self.receive(&mut session).await?;
            if header.flags & Header::ARTIFICIAL == 0 && !std::mem::replace(&mut session.is_given, true) {
                backoff.reset();
                self.live.active();
            }
            if let Some(missing) = self.event(&mut session, &header, &received).await? {
                return Ok(missing);
            }
        }
    }

    async fn session(&self, flavor: Flavor) -> Result<Session> {
        let parse = |position| Place::parse(flavor, position).map_err(at("the relay's checkpoint"));
        let place = parse(&self.checkpoint.position)?;
        let until = self.checkpoint.recovery.as_ref().and_then(|recovery| recovery.until.as_ref());
        let covered = self.checkpoint.recovery.as_ref().and_then(|recovery| recovery.covered.as_ref());
        Ok(Session {
            stream: Stream::open(&self.address, &place, self.server_id, self.heartbeat).await?,
            decoder: Decoder::new(flavor).limit_uncompressed(self.payload_bytes_max),
            tables: Tables::new(self.address.clone(), self.outboxes.clone()),
            place,
            group: None,
            flavor,
            joining_until: until.map(parse).transpose()?,
            covered: covered.map(parse).transpose()?,
            has_warned_of_statements: false,
            is_given: false,
        })
    }

    /// The next event. While it is awaited, what has gathered is handed over as soon as the batch before
    /// is written. Where the next event is there already, gathering may go on for a moment: a log takes few
    /// large batches more easily than many small ones.
    async fn receive(&mut self, session: &mut Session) -> Result<(Header, Received)> {
        loop {
            // In the middle of a transaction only what stands before it is whole.
            let has_whole = match &session.group {
                Some(group) => self.outlet.has_before(&group.mark),
                None => !self.outlet.is_empty() || self.is_checkpoint_due(&session.place),
            };
            if !has_whole {
                return session.stream.next().await;
            }
            let turn = match self.outlet.is_ripe() {
                true => tokio::select! {
                    biased;
                    turn = self.outlet.turn() => turn?,
                    event = session.stream.next() => return event,
                },
                false => tokio::select! {
                    biased;
                    event = session.stream.next() => return event,
                    turn = self.outlet.turn() => turn?,
                },
            };
            self.hand_over(session, turn).await?;
        }
    }

    /// Hands over what is whole, with a checkpoint behind it.
    async fn hand_over(&mut self, session: &mut Session, turn: OwnedSemaphorePermit) -> Result<()> {
        self.checkpoint.position = session.place.position();
        match &mut session.group {
            Some(group) => self.hand_over_before(turn, &mut group.mark).await,
            None => self.hand_over_all(turn).await,
        }
    }

    /// Waits until the batch before is written, then hands over what is whole.
    pub(super) async fn wait_and_hand_over(&mut self, session: &mut Session) -> Result<()> {
        let turn = self.outlet.turn().await?;
        self.hand_over(session, turn).await
    }

    async fn hand_over_before(
        &mut self,
        turn: OwnedSemaphorePermit,
        mark: &mut crate::relay::outlet::Mark,
    ) -> Result<()> {
        self.stamp();
        self.outlet.hand_over_before(turn, mark, &mut self.checkpoint).await?;
        self.handed_over = self.checkpoint.clone();
        Ok(())
    }

    /// Hands over all there is, with the checkpoint as it is.
    pub(in crate::relay) async fn hand_over_all(&mut self, turn: OwnedSemaphorePermit) -> Result<()> {
        self.stamp();
        self.outlet.hand_over(turn, &mut self.checkpoint).await?;
        self.handed_over = self.checkpoint.clone();
        Ok(())
    }

    fn stamp(&mut self) {
        self.since_handed_over = Stopwatch::start();
        // While rows are read from the tables, what has not come may be in the stream that follows. So it may
        // while the stream is far behind: of what was committed since, it has not told yet.
        let now = self.clock.now().0;
        let behind = now.saturating_sub(self.checkpoint.at_ms);
        if self.checkpoint.recovery.is_none()
            && u128::from(behind.max(0).unsigned_abs()) <= RELAY_GAP_AGE_MAX.as_millis() / 2
        {
            self.checkpoint.tables.iter_mut().for_each(|table| table.seen.age(now));
        }
    }

    /// Whether the position has moved for a while although nothing was published. It must be stored, or
    /// it would age out beside a busy database.
    fn is_checkpoint_due(&self, place: &Place) -> bool {
        let stored = &self.handed_over.position;
        let has_moved = place.offset != stored.offset || place.file != stored.file;
        has_moved && self.since_handed_over.seconds() >= RELAY_QUIET_CHECKPOINT_GAP.as_secs_f64()
    }

    async fn event(
        &mut self,
        session: &mut Session,
        header: &Header,
        received: &Received,
    ) -> Result<Option<RowsMissing>> {
        let event = match session.decoder.decode(header, received.body()) {
            Ok(event) => event,
            Err(error) => return session.leave_out(error).map(|()| None),
        };
        let Event::TransactionPayload(payload) = &event else {
            return self.decoded(session, header, event).await;
        };
        let bytes = match payload.events(self.payload_bytes_max) {
            Ok(bytes) => bytes,
            Err(error) => {
                session.leave_out(error)?;
                // It is the whole transaction.
                return self.commit(session, header).await;
            }
        };
        for inner in Events::new(&bytes) {
            let (inner, body) = inner.map_err(at(&session.place))?;
            let event = session.decoder.decode_inner(&inner, body).map_err(at(&session.place))?;
            // The transaction ends in the file where its payload ends.
            let inner = Header { next_position: header.next_position, ..inner };
            if let Some(missing) = self.decoded(session, &inner, event).await? {
                return Ok(Some(missing));
            }
        }
        Ok(None)
    }

    /// Rows that nobody can read matter only if they are an outbox's.
    fn unreadable(&self, table: &UnreadableTable) -> Result<()> {
        let is_it = |outbox: &&OutboxTable| *outbox.name == *table.name && *outbox.database == *table.schema;
        let Some(outbox) = self.outboxes.iter().find(is_it) else { return Ok(()) };
        let (name, column, code) = (outbox.full_name(), table.column, table.code);
        let reason = format!("column {column} of `{name}` has a type that is not known here (code {code})");
        Err(Error::RelayStopped { reason })
    }

    async fn decoded(
        &mut self,
        session: &mut Session,
        header: &Header,
        event: Event<'_>,
    ) -> Result<Option<RowsMissing>> {
        match &event {
            Event::Rows(rows) => {
                self.rows(session, header, rows).await?;
                return Ok(None);
            }
            Event::TableMap(table) => {
                session.tables.meet(table, &mut session.decoder).await?;
                return Ok(None);
            }
            Event::Rotate(rotate) => {
                if rotate.file != session.place.file {
                    self.abandon(session, "its file ends");
                }
                rotate.file.clone_into(&mut session.place.file);
                session.place.offset = rotate.position;
                return Ok(None);
            }
            Event::FormatDescription(format) if format.created != 0 => {
                self.abandon(session, "its server was restarted")
            }
            Event::UnreadableRows(table) => self.unreadable(table)?,
            Event::GtidList(list) => session.place.executed.add_missing(list),
            _ => {}
        }
        self.step(session, header, &event).await
    }
}

impl Session {
    /// What is too large to be decompressed is left out: whatever rows it holds are read from the tables. Other
    /// errors stay.
    fn leave_out(&mut self, error: tidings_binlog::Error) -> Result<()> {
        match &mut self.group {
            Some(group) if matches!(error, tidings_binlog::Error::TooLarge { .. }) => {
                group.missing = Some(format!("a part of the transaction {} is too large: {error}", group.name));
                Ok(())
            }
            _ => Err(at(&self.place)(error)),
        }
    }
}

/// The number under which the relays of a group present themselves to the source. It is the same for
/// all of them, so that the source ends the stream of the one before. The upper half of the range keeps
/// clear of the small numbers that people give to servers.
pub(super) fn server_id(group: &str) -> u32 {
    crc32fast::hash(group.as_bytes()) | 0x8000_0000
}

/// The error of bytes that stood at a place.
pub(in crate::relay) fn at(place: impl ToString) -> impl FnOnce(tidings_binlog::Error) -> Error {
    let place = place.to_string();
    move |source| Error::Binlog { place, source }
}
