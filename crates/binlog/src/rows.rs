//! Rows that were inserted, updated or deleted.

use std::{borrow::Cow, sync::Arc};

use crate::{
    Error, Table, Value,
    cursor::Cursor,
    table::{ColumnType, bit},
};

/// What happened to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// They are new.
    Insert,
    /// They were there and are others now.
    Update,
    /// They are gone.
    Delete,
}

/// Rows of one table that one statement changed in one way: the body of a rows event, not yet decoded.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pub(crate) table: Arc<Table>,
    pub(crate) change: Change,
    pub(crate) ends_statement: bool,
    pub(crate) is_partial: bool,
    /// Which columns the first image of a row has: before a change, or of a new row.
    pub(crate) first: &'a [u8],
    /// Which columns the image after an update has.
    pub(crate) second: &'a [u8],
    pub(crate) images: Cow<'a, [u8]>,
}

/// One row, to be filled again and again.
///
/// Each image has as many values as the table has columns, or none: an inserted row has nothing
/// before, a deleted one nothing after.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row<'r> {
    /// The row before the change.
    pub before: Vec<Value<'r>>,
    /// The row after the change.
    pub after: Vec<Value<'r>>,
}

impl<'r> Row<'r> {
    /// The row as it is now, or last was: after an insert or update, before a delete.
    pub fn current(&self) -> &[Value<'r>] {
        if self.after.is_empty() { &self.before } else { &self.after }
    }
}

/// Decodes rows one after the other.
///
/// [`RowReader::read`] fills a row of the caller, which spares an allocation for each row; the
/// iterator makes a new one each time.
#[derive(Clone, Debug)]
pub struct RowReader<'r> {
    rows: &'r Rows<'r>,
    cursor: Cursor<'r>,
    /// Columns of the two kinds of images.
    counts: (usize, usize),
    is_begun: bool,
}

const PLACE: &str = "rows";

impl<'a> Rows<'a> {
    /// The table, as its table map or [`Decoder::describe`](crate::Decoder::describe) told.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// What happened to the rows.
    pub fn change(&self) -> Change {
        self.change
    }

    /// Whether these are the last rows of their statement.
    pub fn ends_statement(&self) -> bool {
        self.ends_statement
    }

    /// Decodes the rows from the first one on.
    pub fn reader(&self) -> RowReader<'_> {
        let columns = self.table.layout().len();
        let counts = (count(self.first, columns), count(self.second, columns));
        RowReader { rows: self, cursor: Cursor::new(&self.images, PLACE), counts, is_begun: false }
    }
}

impl<'r> RowReader<'r> {
    /// Decodes the next row into `row`; `false` if there is none. After an error there is none.
    ///
    /// # Errors
    ///
    /// The row is damaged, or its table is not the one that was written.
    pub fn read(&mut self, row: &mut Row<'r>) -> Result<bool, Error> {
        row.before.clear();
        row.after.clear();
        let left = self.cursor.len();
        // A row without any column takes no bytes, so it can be there once at most.
        let is_bare = left == 0 && !self.is_begun && self.counts == (0, 0);
        if left == 0 && !is_bare {
            return Ok(false);
        }
        self.is_begun = true;
        let read = self.read_images(row).and_then(|()| match left > 0 && self.cursor.len() == left {
            true => Err(self.cursor.malformed("bytes are left that belong to no column")),
            false => Ok(true),
        });
        if read.is_err() {
            self.cursor = Cursor::new(&[], PLACE);
        }
        read
    }

    fn read_images(&mut self, row: &mut Row<'r>) -> Result<(), Error> {
        let rows = self.rows;
        let (first, second) = ((rows.first, self.counts.0), (rows.second, self.counts.1));
        match rows.change {
            Change::Insert => self.image(first, None, &mut row.after),
            Change::Delete => self.image(first, None, &mut row.before),
            Change::Update => {
                self.image(first, None, &mut row.before)?;
                let partial = if rows.is_partial { self.partial_bits()? } else { None };
                self.image(second, partial, &mut row.after)
            }
        }
    }

    /// Which of the table's JSON columns come as differences; nothing if none does.
    fn partial_bits(&mut self) -> Result<Option<&'r [u8]>, Error> {
        const PARTIAL_JSON: u64 = 1;
        if self.cursor.packed()? & PARTIAL_JSON == 0 {
            return Ok(None);
        }
        let is_json = |kind| matches!(kind, ColumnType::Json { .. });
        let count = self.rows.table.layout().iter().filter(|slot| is_json(slot.kind)).count();
        self.cursor.take(count.div_ceil(8)).map(Some)
    }

    /// One image: a bit for each column it has, set where the value is NULL, and the other values.
    fn image(
        &mut self,
        (present, count): (&[u8], usize),
        partial: Option<&[u8]>,
        values: &mut Vec<Value<'r>>,
    ) -> Result<(), Error> {
        let nulls = self.cursor.take(count.div_ceil(8))?;
        let layout = self.rows.table.layout();
        let (mut null_position, mut json_position) = (0, 0);
        values.reserve(layout.len());
        for (position, slot) in layout.iter().enumerate() {
            let mut is_partial = false;
            if let (Some(bits), ColumnType::Json { .. }) = (partial, slot.kind) {
                is_partial = bit(bits, json_position);
                json_position += 1;
            }
            if count < layout.len() && !bit(present, position) {
                values.push(Value::Absent);
                continue;
            }
            let is_null = bit(nulls, null_position);
            null_position += 1;
            let value = match (is_null, is_partial) {
                (true, _) => Ok(Value::Null),
                (false, false) => Value::read(*slot, &mut self.cursor),
                (false, true) => Value::read_partial(*slot, &mut self.cursor),
            };
            values.push(value.map_err(|source| self.rows.table.damaged(position, source))?);
        }
        Ok(())
    }
}

/// How many of the first `columns` bits are set.
fn count(bits: &[u8], columns: usize) -> usize {
    let (whole, rest) = bits.split_at(bits.len().min(columns / 8));
    let last = rest.first().map_or(0, |byte| byte & ((1 << (columns % 8)) - 1));
    whole.iter().chain([&last]).map(|byte| byte.count_ones() as usize).sum()
}

impl<'r> Iterator for RowReader<'r> {
    type Item = Result<Row<'r>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut row = Row::default();
        match self.read(&mut row) {
            Ok(true) => Some(Ok(row)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
