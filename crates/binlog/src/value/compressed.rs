//! MariaDB's compressed columns.

use std::{borrow::Cow, io::Read};

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::{Error, cursor::Cursor, decompress};

const PLACE: &str = "value of a COMPRESSED column";

/// A value of a column that was declared `COMPRESSED`, as MariaDB stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed<'a> {
    stored: &'a [u8],
}

impl<'a> Compressed<'a> {
    pub(super) fn new(stored: &'a [u8]) -> Self {
        Self { stored }
    }

    /// The bytes as they are stored.
    pub fn stored(&self) -> &'a [u8] {
        self.stored
    }

    /// The value itself, if it has at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if it is larger, [`Error::Decompress`] and [`Error::Malformed`] if it is
    /// damaged.
    pub fn value(&self, bytes_max: usize) -> Result<Cow<'a, [u8]>, Error> {
        let mut cursor = Cursor::new(self.stored, PLACE);
        if cursor.is_empty() {
            return Ok(Cow::Borrowed(&[]));
        }
        // The first byte has the method in its upper half (0 is none, 8 zlib), then a bit that is set
        // where zlib's own frame was left out, then the bytes of the length that follows.
        let mark = cursor.u8()?;
        match mark >> 4 {
            0 => Ok(Cow::Borrowed(cursor.rest())),
            8 => {
                let length = cursor.big(usize::from(mark & 7))?;
                let bytes: &mut dyn Read = match mark & 8 {
                    0 => &mut ZlibDecoder::new(cursor.rest()),
                    _ => &mut DeflateDecoder::new(cursor.rest()),
                };
                decompress::exactly(length, bytes_max, bytes, PLACE).map(Cow::Owned)
            }
            _ => Err(cursor.malformed("the method of compression is not known")),
        }
    }
}
