//! Reads the fields at the end of a table map that `binlog_row_metadata` turns on.
//!
//! Most lists have an entry for each column of a class (numbers, texts, ENUM, ...) in the table's
//! order, not for each column of the table.

use super::{Charset, Column, ColumnType};
use crate::{Error, Flavor, cursor::Cursor};

/// Fills what the fields tell into `columns`. The answer is the primary key, if it was told.
pub(super) fn read(bytes: &[u8], columns: &mut [Column], flavor: Flavor) -> Result<Option<Vec<usize>>, Error> {
    let mut primary_key = None;
    let mut all_members = Vec::new();
    let mut cursor = Cursor::new(bytes, "optional metadata of a table map");
    let mut seen = 0u16;
    while !cursor.is_empty() {
        let field = cursor.u8()?;
        // Each is there once, or it would be filled in again and again.
        let bit = 1u16.checked_shl(u32::from(field)).unwrap_or(0);
        if seen & bit != 0 {
            return Err(cursor.malformed("a field occurs twice"));
        }
        seen |= bit;
        let mut value = Cursor::new(cursor.packed_bytes()?, cursor.place());
        match field {
            1 => signs(value, columns),
            2 => default_charset(&mut value, columns, |column| is_text(column, flavor))?,
            3 => charsets(&mut value, columns, |column| is_text(column, flavor))?,
            4 => names(&mut value, columns)?,
            5 => members(&mut value, columns, &mut all_members, |kind| matches!(kind, ColumnType::Set { .. }))?,
            6 => members(&mut value, columns, &mut all_members, |kind| matches!(kind, ColumnType::Enum { .. }))?,
            7 => geometries(&mut value, columns)?,
            8 => primary_key = Some(key(&mut value, columns.len(), false)?),
            9 => primary_key = Some(key(&mut value, columns.len(), true)?),
            10 => default_charset(&mut value, columns, is_enum_or_set)?,
            11 => charsets(&mut value, columns, is_enum_or_set)?,
            12 => visibility(value, columns),
            13 => dimensions(&mut value, columns)?,
            // Newer fields say more, but never anything else of what the others say.
            _ => {}
        }
    }
    for column in &mut *columns {
        column.charset = column.collation.map(Charset::of_collation);
        if let (Some(Charset::Binary), ColumnType::Char { bytes_max }) = (column.charset, column.kind) {
            column.fixed_bytes = Some(bytes_max);
        }
    }
    // The members' character set comes after them.
    for (position, members) in all_members {
        let Some(column) = columns.get_mut(position) else {
            continue;
        };
        let text = |member: &[u8]| column.text(member).unwrap_or_else(|| String::from_utf8_lossy(member)).into();
        column.members = Some(members.into_iter().map(text).collect());
    }
    Ok(primary_key)
}

/// The position of an ENUM or SET, and its members as bytes.
type Members<'a> = (usize, Vec<&'a [u8]>);

fn is_text(column: &Column, flavor: Flavor) -> bool {
    match column.kind {
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Blob { .. } => true,
        ColumnType::CompressedVarChar { .. } | ColumnType::CompressedBlob { .. } => true,
        // MariaDB's geometries are blobs with a collation, MySQL's are not; MySQL's vectors are.
        ColumnType::Geometry { .. } => flavor == Flavor::Mariadb,
        ColumnType::Vector { .. } => true,
        _ => false,
    }
}

fn is_enum_or_set(column: &Column) -> bool {
    matches!(column.kind, ColumnType::Enum { .. } | ColumnType::Set { .. })
}

/// The bit at `position`, the most significant bit of the first byte being 0.
fn bit(bits: &[u8], position: usize) -> Option<bool> {
    bits.get(position / 8).map(|byte| byte << (position % 8) & 0x80 != 0)
}

fn signs(value: Cursor<'_>, columns: &mut [Column]) {
    let bits = value.rest();
    for (position, column) in columns.iter_mut().filter(|column| column.kind.is_numeric()).enumerate() {
        column.unsigned = bit(bits, position);
    }
}

fn visibility(value: Cursor<'_>, columns: &mut [Column]) {
    let bits = value.rest();
    for (position, column) in columns.iter_mut().enumerate() {
        column.visible = bit(bits, position);
    }
}

fn collation(value: &mut Cursor<'_>) -> Result<u16, Error> {
    u16::try_from(value.packed()?).map_err(|_| value.malformed("the number of a collation does not fit two bytes"))
}

/// One collation for all columns of the class but those that are listed.
fn default_charset(
    value: &mut Cursor<'_>,
    columns: &mut [Column],
    is_of_class: impl Fn(&Column) -> bool,
) -> Result<(), Error> {
    let default = collation(value)?;
    let mut of_class: Vec<&mut Column> = columns.iter_mut().filter(|column| is_of_class(column)).collect();
    for column in &mut of_class {
        column.collation = Some(default);
    }
    while !value.is_empty() {
        let position = value.packed_length()?;
        let collation = collation(value)?;
        let Some(column) = of_class.get_mut(position) else {
            return Err(value.malformed("a collation is of a column that does not exist"));
        };
        column.collation = Some(collation);
    }
    Ok(())
}

fn charsets(
    value: &mut Cursor<'_>,
    columns: &mut [Column],
    is_of_class: impl Fn(&Column) -> bool,
) -> Result<(), Error> {
    for column in columns.iter_mut().filter(|column| is_of_class(column)) {
        column.collation = Some(collation(value)?);
    }
    Ok(())
}

fn names(value: &mut Cursor<'_>, columns: &mut [Column]) -> Result<(), Error> {
    for column in columns {
        let length = value.packed_length()?;
        column.name = Some(value.text(length)?.into());
    }
    Ok(())
}

fn members<'a>(
    value: &mut Cursor<'a>,
    columns: &[Column],
    all: &mut Vec<Members<'a>>,
    is_of_class: impl Fn(ColumnType) -> bool,
) -> Result<(), Error> {
    for (position, _) in columns.iter().enumerate().filter(|(_, column)| is_of_class(column.kind)) {
        let count = value.packed_length()?;
        // Each member takes a byte at least, so that no more memory is taken than bytes were sent.
        if count > value.len() {
            return Err(value.malformed("an ENUM or SET has more members than bytes"));
        }
        let members: Result<Vec<&[u8]>, Error> = (0..count).map(|_| value.packed_bytes()).collect();
        all.push((position, members?));
    }
    Ok(())
}

fn geometries(value: &mut Cursor<'_>, columns: &mut [Column]) -> Result<(), Error> {
    for column in columns.iter_mut().filter(|column| matches!(column.kind, ColumnType::Geometry { .. })) {
        column.geometry = Some(value.packed()? as u32);
    }
    Ok(())
}

fn dimensions(value: &mut Cursor<'_>, columns: &mut [Column]) -> Result<(), Error> {
    for column in columns.iter_mut().filter(|column| matches!(column.kind, ColumnType::Vector { .. })) {
        column.dimensions = Some(value.packed()? as u32);
    }
    Ok(())
}

/// Positions of the key's columns; with prefixes, each is followed by the characters that count.
fn key(value: &mut Cursor<'_>, columns: usize, has_prefixes: bool) -> Result<Vec<usize>, Error> {
    let mut key = Vec::new();
    while !value.is_empty() {
        let position = value.packed_length()?;
        if position >= columns {
            return Err(value.malformed("the primary key has a column that does not exist"));
        }
        if has_prefixes {
            value.packed()?;
        }
        key.push(position);
    }
    Ok(key)
}
