//! Stretches of facts and mirror, of so few rows that a server reads each in time, however many there are in all.
//!
//! A stretch is a range of the primary key, and statements are made to read it by that: with an index that has the
//! status in it, a stretch of a list with millions of lines would be looked for among all of them.

#[cfg(test)]
mod tests;

use tidings_backbone::{
    Conn, Result,
    db::{Engine, Value},
    projector::Generation,
};

use crate::limits::VERIFY_STEP_ROWS;

/// Whose rows they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relation) enum Table {
    Facts,
    Mirror(Generation),
}

impl Table {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Facts => "following",
            Self::Mirror(_) => "follower",
        }
    }
}

/// The stretches of a table, one after the other, whatever numbers damage may have made of ids: facts in the order of
/// their numbers; of the mirror owners of lists as a whole, or some rows of one who has many.
#[derive(Debug)]
pub(in crate::relation) struct Stretches {
    table: Table,
    rows_max: i64,
    at: At,
}

/// Where the next one begins.
#[derive(Clone, Copy, Debug)]
enum At {
    /// At the fact of this number.
    Fact(i64),
    /// At the rows of this owner.
    Owner(i64),
    /// In the rows of an owner, at this follower's.
    Row(i64, i64),
    End,
}

/// Rows that are next to each other.
#[derive(Debug)]
pub(in crate::relation) struct Stretch {
    pub(super) table: Table,
    range: &'static str,
    bounds: Vec<Value>,
}

impl Stretches {
    pub(in crate::relation) fn of(table: Table) -> Self {
        Self::by(table, VERIFY_STEP_ROWS)
    }

    pub(super) fn by(table: Table, rows_max: i64) -> Self {
        let at = match table {
            Table::Facts => At::Fact(i64::MIN),
            Table::Mirror(_) => At::Owner(i64::MIN),
        };
        Self { table, rows_max, at }
    }

    /// The next one, of at most [`VERIFY_STEP_ROWS`] rows; none at the end. All are of one snapshot, which is that of
    /// `conn`.
    pub(in crate::relation) async fn next(&mut self, conn: &mut Conn<'_>) -> Result<Option<Stretch>> {
        let Some(rest) = self.rest() else { return Ok(None) };
        let (sql, args) = self.select_last(&rest, conn.engine());
        let last = conn.fetch_optional("stepping through a table", sql, args).await?;
        let last = last.map(|row| row.int(0)).transpose()?;
        let after = |owner: i64| owner.checked_add(1).map_or(At::End, At::Owner);
        let (stretch, next) = match (self.at, last) {
            (At::Row(owner, _), None) => (rest, after(owner)),
            (_, None) | (At::End, _) => (rest, At::End),
            (At::Fact(first), Some(last)) => {
                let next = last.checked_add(1).map_or(At::End, At::Fact);
                (self.stretch("r.id >= ? AND r.id <= ?", &[first, last]), next)
            }
            // Not all of this owner's rows need be among so many.
            (At::Owner(first), Some(owner)) => {
                let owners = "r.to_user_id >= ? AND r.to_user_id < ?";
                (self.stretch(owners, &[first, owner]), At::Row(owner, i64::MIN))
            }
            (At::Row(owner, first), Some(last)) => {
                let rows = "r.to_user_id = ? AND r.from_user_id >= ? AND r.from_user_id <= ?";
                let next = last.checked_add(1).map_or_else(|| after(owner), |next| At::Row(owner, next));
                (self.stretch(rows, &[owner, first, last]), next)
            }
        };
        self.at = next;
        Ok(Some(stretch))
    }

    /// All that is left, or all that is left of an owner's rows.
    fn rest(&self) -> Option<Stretch> {
        match self.at {
            At::Fact(first) => Some(self.stretch("r.id >= ?", &[first])),
            At::Owner(first) => Some(self.stretch("r.to_user_id >= ?", &[first])),
            At::Row(owner, first) => Some(self.stretch("r.to_user_id = ? AND r.from_user_id >= ?", &[owner, first])),
            At::End => None,
        }
    }

    fn stretch(&self, range: &'static str, bounds: &[i64]) -> Stretch {
        Stretch { table: self.table, range, bounds: bounds.iter().copied().map(Value::from).collect() }
    }

    /// Asks for the last row that a stretch may have of the `rest`, if there are as many: for its number, for its owner
    /// among those of several, for its follower among those of one owner.
    fn select_last(&self, rest: &Stretch, engine: Engine) -> (String, Vec<Value>) {
        let (column, order) = match self.at {
            At::Fact(_) | At::End => ("r.id", "r.id"),
            At::Owner(_) => ("r.to_user_id", "r.to_user_id, r.from_user_id"),
            At::Row(..) => ("r.from_user_id", "r.to_user_id, r.from_user_id"),
        };
        let sql = rest.select(engine, column, "", &format!("ORDER BY {order} LIMIT 1 OFFSET ?"));
        (sql, [rest.args(), vec![(self.rows_max - 1).into()]].concat())
    }
}

impl Stretch {
    /// A statement that reads its rows as `r`: with what is joined to them before the conditions, and whatever comes
    /// after these.
    pub(super) fn select(&self, engine: Engine, columns: &str, joined: &str, more: &str) -> String {
        let (table, range) = (self.table.name(), self.range);
        let by_key = match (engine, self.table) {
            // It would take an index that groups, and read all of it.
            (Engine::Sqlite, Table::Facts) => "NOT INDEXED",
            _ => engine.by_primary_key(),
        };
        let generation = match self.table {
            Table::Facts => "",
            Table::Mirror(_) => "r.generation = ? AND ",
        };
        format!("SELECT {columns} FROM {table} r {by_key} {joined} WHERE {generation}{range} {more}")
    }

    /// The arguments of the conditions of [`Stretch::select`].
    pub(super) fn args(&self) -> Vec<Value> {
        let generation = match self.table {
            Table::Facts => None,
            Table::Mirror(generation) => Some(generation.0.into()),
        };
        generation.into_iter().chain(self.bounds.iter().cloned()).collect()
    }
}
