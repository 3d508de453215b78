//! Writes binary JSON as text.
//!
//! A document is a type and a value. An array or object has a table of its elements: small values
//! stand in the table, others at the offset that the table names, counted from the array's start.

use std::fmt::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::PLACE;
use crate::{
    Error,
    cursor::Cursor,
    limits::{JSON_DEPTH_MAX, JSON_TEXT_FACTOR_MAX},
    value::{Decimal, Time, packed_datetime},
};

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

/// Text that any document may have, however short.
const TEXT_BYTES_FREE: usize = 64;

pub(super) fn write(document: &[u8], out: &mut String) -> Result<(), Error> {
    // Lax modes store an empty document for a missing one, which MySQL reads as null.
    let Some((kind, bytes)) = document.split_first() else {
        out.push_str("null");
        return Ok(());
    };
    let text_max = document.len().saturating_mul(JSON_TEXT_FACTOR_MAX).saturating_add(TEXT_BYTES_FREE);
    let length_max = out.len().saturating_add(text_max);
    Writer { out, text_max, length_max }.value(*kind, bytes, 0)
}

struct Writer<'w> {
    out: &'w mut String,
    text_max: usize,
    length_max: usize,
}

/// How an array or object is laid out: offsets, counts and sizes of 2 or 4 bytes.
#[derive(Clone, Copy)]
struct Width(usize);

impl Width {
    /// Whether a value of that type stands in the table itself.
    fn inlines(self, kind: u8) -> bool {
        match kind {
            LITERAL | INT16 | UINT16 => true,
            INT32 | UINT32 => self.0 == 4,
            _ => false,
        }
    }
}

impl Writer<'_> {
    fn value(&mut self, kind: u8, bytes: &[u8], depth: usize) -> Result<(), Error> {
        if depth > JSON_DEPTH_MAX {
            let (found, limit) = (depth as u64, JSON_DEPTH_MAX as u64);
            return Err(Error::TooLarge { place: "depth of binary JSON", found, limit });
        }
        let mut cursor = Cursor::new(bytes, PLACE);
        match kind {
            SMALL_OBJECT => self.object(bytes, Width(2), depth)?,
            LARGE_OBJECT => self.object(bytes, Width(4), depth)?,
            SMALL_ARRAY => self.array(bytes, Width(2), depth)?,
            LARGE_ARRAY => self.array(bytes, Width(4), depth)?,
            LITERAL => self.literal(cursor.u8()?)?,
            INT16 => self.format(format_args!("{}", cursor.u16()? as i16))?,
            UINT16 => self.format(format_args!("{}", cursor.u16()?))?,
            INT32 => self.format(format_args!("{}", cursor.u32()? as i32))?,
            UINT32 => self.format(format_args!("{}", cursor.u32()?))?,
            INT64 => self.format(format_args!("{}", cursor.u64()? as i64))?,
            UINT64 => self.format(format_args!("{}", cursor.u64()?))?,
            DOUBLE => self.double(f64::from_le_bytes(cursor.array()?))?,
            STRING => {
                let length = length(&mut cursor)?;
                let text = cursor.text(length)?;
                self.string(text)?;
            }
            OPAQUE => self.opaque(&mut cursor)?,
            _ => return Err(cursor.malformed("a type is not known")),
        }
        if self.out.len() > self.length_max {
            let limit = self.text_max as u64;
            return Err(Error::TooLarge { place: "text of binary JSON", found: limit + 1, limit });
        }
        Ok(())
    }

    fn format(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        let refused = |_| Error::Malformed { place: PLACE, what: "a value has no text" };
        self.out.write_fmt(text).map_err(refused)
    }

    fn literal(&mut self, code: u8) -> Result<(), Error> {
        self.out.push_str(match code {
            0 => "null",
            1 => "true",
            2 => "false",
            _ => return Err(Error::Malformed { place: PLACE, what: "a literal is not known" }),
        });
        Ok(())
    }

    fn double(&mut self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            return Err(Error::Malformed { place: PLACE, what: "a number is not finite" });
        }
        // The shortest text that reads as the same number, with a point or an exponent.
        self.format(format_args!("{value:?}"))
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        self.out.push('"');
        for char in text.chars() {
            match char {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\u{8}' => self.out.push_str("\\b"),
                '\t' => self.out.push_str("\\t"),
                '\n' => self.out.push_str("\\n"),
                '\u{c}' => self.out.push_str("\\f"),
                '\r' => self.out.push_str("\\r"),
                '\0'..='\u{1f}' => self.format(format_args!("\\u{:04x}", u32::from(char)))?,
                _ => self.out.push(char),
            }
        }
        self.out.push('"');
        Ok(())
    }

    /// A value of another type of SQL: the type's code, a length, and the bytes.
    fn opaque(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Error> {
        let kind = cursor.u8()?;
        let length = length(cursor)?;
        let mut bytes = Cursor::new(cursor.take(length)?, PLACE);
        match kind {
            246 => {
                let [precision, scale] = bytes.array()?;
                self.format(format_args!("{}", Decimal::read(precision, scale, &mut bytes)?))?;
            }
            7 | 10 | 12 | 17 | 18 => {
                let packed = bytes.u64()?;
                let moment = packed_datetime(packed >> 24, (packed & 0xff_ffff) as u32);
                match kind {
                    10 => self.format(format_args!("\"{}\"", moment.date))?,
                    _ => self.format(format_args!("\"{moment:.6}\""))?,
                }
            }
            11 | 19 => self.format(format_args!("\"{:.6}\"", Time::from_packed(bytes.u64()? as i64)))?,
            _ => self.format(format_args!("\"base64:type{kind}:{}\"", STANDARD.encode(bytes.rest())))?,
        }
        Ok(())
    }

    fn array(&mut self, bytes: &[u8], width: Width, depth: usize) -> Result<(), Error> {
        let mut table = Cursor::new(bytes, PLACE);
        let count = table.little(width.0)? as usize;
        table.take(width.0)?;
        self.out.push('[');
        for position in 0..count {
            if position > 0 {
                self.out.push_str(", ");
            }
            self.element(bytes, &mut table, width, depth)?;
        }
        self.out.push(']');
        Ok(())
    }

    /// The table of an object has first all keys (offset and length), then all values.
    fn object(&mut self, bytes: &[u8], width: Width, depth: usize) -> Result<(), Error> {
        let mut keys = Cursor::new(bytes, PLACE);
        let count = keys.little(width.0)? as usize;
        keys.take(width.0)?;
        let mut values = keys;
        values.take(count.saturating_mul(width.0 + 2))?;
        self.out.push('{');
        for position in 0..count {
            if position > 0 {
                self.out.push_str(", ");
            }
            let offset = keys.little(width.0)? as usize;
            let length = usize::from(keys.u16()?);
            let key = at(bytes, offset)?.text(length)?;
            self.string(key)?;
            self.out.push_str(": ");
            self.element(bytes, &mut values, width, depth)?;
        }
        self.out.push('}');
        Ok(())
    }

    /// One entry of a table: a type, and a value or its offset.
    fn element(&mut self, bytes: &[u8], table: &mut Cursor<'_>, width: Width, depth: usize) -> Result<(), Error> {
        let kind = table.u8()?;
        let entry = table.take(width.0)?;
        if width.inlines(kind) {
            return self.value(kind, entry, depth + 1);
        }
        let offset = Cursor::new(entry, PLACE).little(width.0)? as usize;
        self.value(kind, at(bytes, offset)?.rest(), depth + 1)
    }
}

fn at(bytes: &[u8], offset: usize) -> Result<Cursor<'_>, Error> {
    let mut cursor = Cursor::new(bytes, PLACE);
    cursor.take(offset)?;
    Ok(cursor)
}

/// A length in groups of seven bits, the least significant first; the eighth says that more follow.
fn length(cursor: &mut Cursor<'_>) -> Result<usize, Error> {
    let mut length = 0u64;
    for group in 0..5 {
        let byte = cursor.u8()?;
        length |= u64::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return usize::try_from(length).map_err(|_| cursor.malformed("a length does not fit the memory"));
        }
    }
    Err(cursor.malformed("a length has more than five bytes"))
}
