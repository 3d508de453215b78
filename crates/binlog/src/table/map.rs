//! Reads a TABLE_MAP event.

use std::sync::Arc;

use super::{Column, ColumnType, Table, column_type::Refusal, layout, optional};
use crate::{Error, Flavor, cursor::Cursor, limits::COLUMNS_MAX};

/// The id at the front of a table map or of rows: 6 bytes, 4 in versions long gone.
pub(crate) fn table_id(cursor: &mut Cursor<'_>, bytes: usize) -> Result<u64, Error> {
    cursor.little(bytes)
}

impl Table {
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
        for (position, code) in codes.iter().enumerate() {
            let kind = ColumnType::read(*code, &mut metadata).map_err(|refusal| match refusal {
                Refusal::Unknown => Error::UnknownColumnType {
                    schema: schema.to_string(),
                    table: name.to_string(),
                    column: position,
                    code: *code,
                },
                Refusal::Broken(error) => error,
            })?;
            columns.push(Column::new(kind, bit(nullable, position)));
        }
        let primary_key = optional::read(cursor.rest(), &mut columns, flavor)?;
        let layout = layout(&columns);
        Ok(Self { id, schema, name, columns: columns.into(), primary_key, layout })
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
