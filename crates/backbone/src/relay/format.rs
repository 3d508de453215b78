//! Rows into records: which format, which topic, and what becomes of rows that cannot be published.
//!
//! A [`Route`] says for some tables and families of event types how their rows are written. The first
//! route that fits a row decides; a row that none fits is not published.
//!
//! | format | a record is | from |
//! |---|---|---|
//! | [`Format::CloudeventsJson`], [`Format::CloudeventsProtobuf`] | an event | each row that is inserted |
//! | [`Format::Canal`] | a flat message | each row event: inserts, updates and deletes |
//! | [`Format::Debezium`] | an outbox router's record | each row that is inserted |
//!
//! Rows are formatted one by one in their order. A row that cannot be published becomes a dead letter,
//! and parks its key: those behind it of the same key are set aside as well, while other keys flow.

mod canal;
mod cloudevents;
mod columns;
mod debezium;
mod letter;
mod route;
mod topic;

use std::sync::Arc;

use tidings_event::row::{Change, Operation};

pub use canal::CanalOptions;
pub use cloudevents::CloudEventsOptions;
pub use debezium::DebeziumOptions;
pub use route::{Format, Route};

use self::{columns::Row, letter::letter, route::Compiled};
use super::{Changes, DeadLetter, Parked, Record, Table, dead_letter::WAITS};
use crate::{Clock, Error, Result, trace};

/// Turns changed rows into records.
#[derive(Clone, Debug)]
pub struct Formatter {
    routes: Vec<Compiled>,
    clock: Clock,
    record_bytes_max: usize,
    /// The table of the last call, and the routes that fit it: nearly always those of the next call.
    plan: Option<Arc<Plan>>,
}

/// What is known of one version of a table.
#[derive(Debug)]
struct Plan {
    table: Table,
    /// Indices of the routes whose tables it is one of.
    routes: Vec<usize>,
    /// Whether it is Tidings' own outbox.
    is_own: bool,
}

/// Why a row is not published.
#[derive(Debug)]
enum Refusal {
    /// Its own fault: it becomes a dead letter.
    Row(String),
    /// The relay must stop.
    Stop(Error),
}

impl From<tidings_event::Error> for Refusal {
    fn from(error: tidings_event::Error) -> Self {
        Self::Row(Error::chain(&error))
    }
}

impl Formatter {
    /// A formatter for these routes. `prefix` is what `{prefix}` in the topics stands for; records
    /// larger than `record_bytes_max` become dead letters, so it is what the sink takes.
    ///
    /// # Errors
    /// [`Error::Event`] names the option of a route that cannot be used.
    pub fn new(routes: &[Route], prefix: &str, clock: Clock, record_bytes_max: usize) -> Result<Self> {
        let routes = routes.iter().map(|route| Compiled::new(route, prefix)).collect::<Result<_>>()?;
        Ok(Self { routes, clock, record_bytes_max, plan: None })
    }

    /// Adds the records of the rows to `out`, and the dead letters to `dead`.
    ///
    /// # Errors
    /// Where the relay must stop: too many keys are parked ([`Parked::park`]), or a row was updated and
    /// the configuration says that this must not be.
    pub fn push(
        &mut self,
        changes: &Changes<'_>,
        parked: &mut Parked,
        out: &mut Vec<Record>,
        dead: &mut Vec<DeadLetter>,
    ) -> Result<()> {
        let plan = self.plan(changes.table);
        let mut left = changes.rows;
        while !left.is_empty() {
            let (index, run) = self.run(&plan, changes, left);
            let (rows, rest) = left.split_at(run);
            left = rest;
            let Some(index) = index else { continue };
            let (route, record_bytes_max) = (&mut self.routes[index], self.record_bytes_max);
            let mut batch = Batch { changes, plan: &plan, parked, out, dead, record_bytes_max, clock: &self.clock };
            route.push(rows, &mut batch)?;
        }
        Ok(())
    }

    fn plan(&mut self, table: &Table) -> Arc<Plan> {
        match &self.plan {
            Some(plan) if plan.table == *table => plan.clone(),
            _ => {
                let plan = Arc::new(Plan {
                    routes: (0..self.routes.len()).filter(|index| self.routes[*index].has_table(table)).collect(),
                    is_own: columns::is_own(table),
                    table: table.clone(),
                });
                self.routes.iter_mut().for_each(Compiled::forget);
                self.plan.insert(plan).clone()
            }
        }
    }

    /// The route of the first row, and how many rows it has from there on.
    fn run(&self, plan: &Plan, changes: &Changes<'_>, rows: &[Change<'_>]) -> (Option<usize>, usize) {
        let first = plan.routes.first().copied();
        if plan.routes.iter().all(|index| self.routes[*index].is_for_all_families()) {
            return (first, rows.len());
        }
        let route_of = |change: &Change<'_>| {
            let event_type = Row::new(changes, change).text(changes.table.places.event_type);
            let event_type = event_type.as_deref().unwrap_or_default();
            plan.routes.iter().copied().find(|index| self.routes[*index].has_family(event_type))
        };
        let route = route_of(&rows[0]);
        (route, rows.iter().take_while(|change| route_of(change) == route).count())
    }
}

/// What the rows of one call are turned into.
struct Batch<'a, 'c> {
    changes: &'a Changes<'c>,
    plan: &'a Plan,
    parked: &'a mut Parked,
    out: &'a mut Vec<Record>,
    dead: &'a mut Vec<DeadLetter>,
    record_bytes_max: usize,
    clock: &'a Clock,
}

impl Batch<'_, '_> {
    /// Formats each inserted row by itself; `order` is the place of the column that its order rests on.
    fn push_inserts(
        &mut self,
        rows: &[Change<'_>],
        order: Option<usize>,
        mut format: impl FnMut(&Row<'_>, &str) -> Result<Record, Refusal>,
    ) -> Result<()> {
        if self.changes.operation != Operation::Insert {
            // An outbox is only inserted into; that old rows go again is nobody's news.
            return Ok(());
        }
        rows.iter().try_for_each(|change| self.push_row(change, order, &mut format))
    }

    /// Formats one row, or sets it aside.
    fn push_row(
        &mut self,
        change: &Change<'_>,
        order: Option<usize>,
        format: impl FnOnce(&Row<'_>, &str) -> Result<Record, Refusal>,
    ) -> Result<()> {
        let row = Row::new(self.changes, change);
        let key = row.text(order).unwrap_or_default();
        if !self.parked.is_empty() && self.parked.contains(&key) {
            self.dead.push(letter(self.changes, &row, &key, WAITS.to_owned()));
            return Ok(());
        }
        let limit = self.record_bytes_max;
        let reason = match format(&row, &key) {
            Ok(mut record) if record.bytes() <= limit => {
                let metadata = self.changes.table.places.metadata;
                record.trace = trace::read(|| row.exact_text(metadata));
                self.out.push(record);
                return Ok(());
            }
            Ok(record) => format!("the record has {} bytes, at most {limit} are taken", record.bytes()),
            Err(Refusal::Row(reason)) => reason,
            Err(Refusal::Stop(error)) => return Err(error),
        };
        tracing::warn!(table = %self.changes.table.definition.name, %key, %reason, "a row became a dead letter");
        self.parked.park(&key)?;
        self.dead.push(letter(self.changes, &row, &key, reason));
        Ok(())
    }
}
