//! Reads a TABLE_MAP event.

use std::sync::Arc;

use super::{Column, ColumnType, Described, Table, UnreadableTable, layout, optional};
use crate::{Error, Flavor, cursor::Cursor, limits::COLUMNS_MAX};

/// The id at the front of a table map or of rows: 6 bytes, 4 in versions long gone.
pub(crate) fn table_id(cursor: &mut Cursor<'_>, bytes: usize) -> Result<u64, Error> {
    cursor.little(bytes)
}

impl Described {
    /// Reads the body of a TABLE_MAP event, after the id.
    pub(crate) fn read(id: u64, body: &[u8], flavor: Flavor) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body, "table map");
        cursor.u16()?; // Flags, of which none matters here.
        let schema = name(&mut cursor)?;
        let name = name(&mut cursor)?;
        let count = cursor.packed_length()?;
        if count > COLUMNS_MAX {
            let (found, limit) = (count as u64, COLUMNS_MAX as u64);
            return Err(Error::TooLarge { place: "columns of a table map", found, limit });
        }
        let codes = cursor.take(count)?;
        let mut metadata = Cursor::new(cursor.packed_bytes()?, "column metadata of a table map");
        let nullable = cursor.take(count.div_ceil(8))?;
        let mut columns = Vec::with_capacity(count);
        for (column, code) in codes.iter().enumerate() {
            // How much metadata an unknown type has is unknown too, so nothing after it can be read.
            let Some(kind) = ColumnType::read(*code, &mut metadata)? else {
                let unreadable = UnreadableTable { id, schema, name, column, code: *code };
                return Ok(Self::Unreadable(Arc::new(unreadable)));
            };
            columns.push(Column::new(kind, bit(nullable, column)));
        }
        let primary_key = optional::read(cursor.rest(), &mut columns, flavor)?;
        let layout = layout(&columns);
        let table = Table { id, schema, name, columns: columns.into(), primary_key, layout };
        Ok(Self::Table(Arc::new(table)))
    }
}

/// A name with its length before it and a zero byte after it.
fn name(cursor: &mut Cursor<'_>) -> Result<Arc<str>, Error> {
    let length = cursor.packed_length()?;
    let name = cursor.text(length)?.into();
    cursor.take(1)?;
    Ok(name)
}

/// The bit at `position`, the least significant bit of the first byte being 0.
#[inline]
pub(crate) fn bit(bits: &[u8], position: usize) -> bool {
    bits.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}
