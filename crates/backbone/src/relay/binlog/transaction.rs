//! Transactions: their rows wait in the batch until it is known what becomes of them.

use tidings_binlog::{Event, Header, Rows, Xid};

use super::{
    detour::Detour,
    group::{self, Group, Step},
    reader::{Reader, RowsMissing, Session, at},
    rows::{self, Origin},
};
use crate::{
    Error, Result,
    limits::RELAY_PREPARED_MAX,
    relay::{OutboxTable, Position, Prepared, Recovery},
};

impl Reader {
    pub(super) async fn step(
        &mut self,
        session: &mut Session,
        header: &Header,
        event: &Event<'_>,
    ) -> Result<Option<RowsMissing>> {
        match group::step(event, session.group.as_mut()) {
            Step::Nothing => {
                if session.group.is_none() {
                    session.place.pass(header);
                }
            }
            Step::Begins(gtid, is_transaction) => {
                self.abandon(session, "another one begins");
                let mut group = Group::new(gtid, is_transaction, self.outlet.mark());
                // A part of it was published already, by a batch that it did not fit.
                group.is_too_large = self.checkpoint.partial.as_ref().is_some_and(|partial| partial.gtid == group.name);
                session.group = Some(group);
            }
            Step::Commits => return self.commit(session, header).await,
            Step::RollsBack => self.roll_back(session, header),
            Step::Prepares(xid) => self.prepare(session, header, &xid)?,
            Step::Decides(xid, is_commit) => return self.decide(session, header, &xid, is_commit).await,
            Step::TakesBack => {}
            Step::Changes => self.statement(session, event),
            Step::Loses(what) => {
                tracing::error!(what, place = %session.place, "the source says that its binlog lacks events");
                self.abandon(session, "the source has lost events");
                session.place.pass(header);
                self.checkpoint.position = session.place.position();
                return Ok(Some(RowsMissing::because(what)));
            }
            Step::Unknown(what) => {
                let reason = format!("the binlog has an event that is not known here and may hold rows: {what}");
                return Err(Error::RelayStopped { reason });
            }
        }
        Ok(None)
    }

    /// Rows of an outbox table go into the batch, to be taken back should their transaction be void.
    pub(super) async fn rows(&mut self, session: &mut Session, header: &Header, rows: &Rows<'_>) -> Result<()> {
        let Some(known) = session.tables.outbox(rows.table()) else { return Ok(()) };
        let Some(group) = &mut session.group else {
            let reason = format!("the binlog has rows of no transaction at {}", session.place);
            return Err(Error::RelayStopped { reason });
        };
        if group.is_too_large {
            group.rows += rows::count(rows).map_err(at(&session.place))?;
            return Ok(());
        }
        let is_joining = self.checkpoint.recovery.is_some();
        let seen = self.checkpoint.seen(&self.outboxes[known.index].full_name());
        let (mut numbers, change) = (Vec::new(), rows.change());
        let is_new = |_: u64, number: Option<u64>| {
            // While the stream is being joined, it gives rows again that were read from the table.
            let is_new = !(is_joining && number.is_some_and(|number| seen.contains(number)));
            numbers.extend(number.filter(|_| is_new));
            is_new
        };
        let origin = Origin { gtid: &group.name, file: &session.place.file, position: header.next_position.into() };
        let outlet = &mut self.outlet;
        let (count, pushed) = rows::with_changes(rows, &known, header, origin, is_new, |changes| outlet.push(changes))
            .map_err(at(&session.place))?;
        pushed.transpose()?;
        group.rows += count;
        group.numbers.extend(numbers.into_iter().map(|number| (known.index, change, number)));
        if self.outlet.is_full() { self.make_room(session).await } else { Ok(()) }
    }

    /// The batch is full in the middle of a transaction: what stands before it goes, and if the
    /// transaction alone is too large, it is read again in pieces once it has committed.
    async fn make_room(&mut self, session: &mut Session) -> Result<()> {
        if session.group.as_ref().is_some_and(|group| self.outlet.has_before(&group.mark)) {
            self.wait_and_hand_over(session).await?;
        }
        if let Some(group) = session.group.as_mut().filter(|_| self.outlet.is_full()) {
            self.outlet.take_back(group.mark);
            group.numbers = Vec::new();
            group.is_too_large = true;
        }
        Ok(())
    }

    /// A transaction that is never finished is void: the server crashed while it wrote it.
    pub(super) fn abandon(&mut self, session: &mut Session, why: &str) {
        if let Some(group) = session.group.take() {
            self.outlet.take_back(group.mark);
            if group.rows > 0 {
                tracing::warn!(
                    gtid = group.name,
                    rows = group.rows,
                    why,
                    "an unfinished transaction of the binlog is void"
                );
            }
        }
    }

    pub(super) async fn commit(&mut self, session: &mut Session, header: &Header) -> Result<Option<RowsMissing>> {
        let Some(mut group) = session.group.take() else {
            session.place.pass(header);
            return Ok(None);
        };
        self.checkpoint.position = session.place.position();
        let mut missing = group.missing.take();
        // To publish it in pieces, or without the rows that are void, it is read again.
        if group.is_too_large || !group.void.is_empty() {
            self.outlet.take_back(group.mark);
            group.numbers = Vec::new();
            if !self.outlet.is_empty() {
                self.wait_and_hand_over(session).await?;
            }
            let detour = Detour {
                from: session.place.position(),
                gtid: group.name.clone(),
                partial: group.name.clone(),
                void: std::mem::take(&mut group.void),
            };
            missing = missing.or(self.publish(session.flavor, detour).await?);
        }
        for (index, change, number) in std::mem::take(&mut group.numbers) {
            rows::note(self.checkpoint.seen(&self.outboxes[index].full_name()), change, number);
        }
        Ok(self.end(session, &group, header, missing))
    }

    fn roll_back(&mut self, session: &mut Session, header: &Header) {
        if let Some(group) = session.group.take() {
            self.outlet.take_back(group.mark);
            session.place.executed.add(&group.gtid);
        }
        session.place.pass(header);
    }

    /// The rows wait in the binlog for their verdict: only where they stand is remembered.
    fn prepare(&mut self, session: &mut Session, header: &Header, xid: &Xid) -> Result<()> {
        let xid = xid.to_string();
        // A new one has its name, so it was decided, and that was not told here.
        self.checkpoint.prepared.retain(|prepared| prepared.xid != xid);
        if let Some(group) = session.group.as_ref().filter(|group| group.rows > 0 || group.missing.is_some()) {
            if self.checkpoint.prepared.len() >= RELAY_PREPARED_MAX {
                return Err(Error::LimitExceeded {
                    what: "the number of prepared transactions",
                    limit: RELAY_PREPARED_MAX,
                });
            }
            // Where not all of its rows are in the binlog, and no others, they are read from the tables in the end.
            let is_told = group.void.is_empty() && group.missing.is_none();
            let (gtid, before) = match is_told {
                true => (group.name.clone(), session.place.position()),
                false => Default::default(),
            };
            self.checkpoint.prepared.push(Prepared { xid, gtid, before });
        }
        // Its rows are taken out of the batch as if it were void.
        self.roll_back(session, header);
        Ok(())
    }

    /// A prepared transaction is committed: its rows are read now. Or it is void, and never will be.
    async fn decide(
        &mut self,
        session: &mut Session,
        header: &Header,
        xid: &Xid,
        is_commit: bool,
    ) -> Result<Option<RowsMissing>> {
        let Some(group) = session.group.take() else {
            session.place.pass(header);
            return Ok(None);
        };
        self.checkpoint.position = session.place.position();
        let name = xid.to_string();
        // It is remembered until all of its rows are published: they may go in several batches.
        let prepared = self.checkpoint.prepared.iter().find(|prepared| prepared.xid == name).cloned();
        let missing = match prepared.filter(|_| is_commit) {
            None => None,
            Some(prepared) if prepared.before == Position::default() => {
                Some(format!("where the rows of the prepared transaction {name} stand is not known"))
            }
            Some(Prepared { gtid, before, .. }) => {
                if !self.outlet.is_empty() {
                    self.wait_and_hand_over(session).await?;
                }
                let detour = Detour { from: before, gtid, partial: group.name.clone(), void: Vec::new() };
                self.publish(session.flavor, detour).await?
            }
        };
        self.checkpoint.prepared.retain(|prepared| prepared.xid != name);
        Ok(self.end(session, &group, header, missing))
    }

    /// A statement in the place of its rows. Whether it names an outbox or not, a trigger or a function may have
    /// filled one, so what there is now is read from the tables.
    fn statement(&mut self, session: &mut Session, event: &Event<'_>) {
        let (Event::Query(query), Some(group)) = (event, &mut session.group) else { return };
        if !std::mem::replace(&mut session.has_warned_of_statements, true) {
            let table = self.outboxes.iter().find(|outbox| group::names(&query.sql, &outbox.name));
            let (table, thread) = (table.map(OutboxTable::full_name), query.thread_id);
            tracing::warn!(
                table,
                thread,
                place = %session.place,
                "a client writes with binlog_format=STATEMENT; what it wrote to an outbox is read from the table"
            );
        }
        group.missing.get_or_insert_with(|| "rows may have come as a statement".to_owned());
    }

    /// The open group is done with, whatever became of it. Answers which rows must be read from the tables.
    fn end(
        &mut self,
        session: &mut Session,
        group: &Group,
        header: &Header,
        missing: Option<String>,
    ) -> Option<RowsMissing> {
        session.place.executed.add(&group.gtid);
        session.place.pass(header);
        self.checkpoint.partial = None;
        self.checkpoint.at_ms = i64::from(header.timestamp) * 1_000;
        self.checkpoint.position = session.place.position();
        let is_covered = session.covered.as_ref().is_some_and(|covered| covered.is_at_or_after(&session.place));
        if session.joining_until.as_ref().is_some_and(|until| session.place.is_at_or_after(until)) {
            session.joining_until = None;
            let recovery = self.checkpoint.recovery.take();
            tracing::info!(place = %session.place, "the relay has joined the binlog again");
            let may_lack = session.place.executed.is_empty();
            if let Some(Recovery { reason, is_second_look: false, .. }) = recovery.filter(|_| may_lack) {
                return Some(RowsMissing { reason, is_second_look: true });
            }
        }
        missing.filter(|_| !is_covered).map(RowsMissing::because)
    }
}
