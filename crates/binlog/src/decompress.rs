//! Decompression that takes no more memory than there really are bytes, nor more than is allowed.

use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::{Error, cursor::Cursor};

/// Memory taken ahead, whatever size is announced.
const AHEAD_BYTES_MAX: u64 = 64 * 1024;

/// What `compressed` gives, which must be `length` bytes and at most `limit`.
pub(crate) fn exactly(
    length: u64,
    limit: usize,
    compressed: &mut dyn Read,
    place: &'static str,
) -> Result<Vec<u8>, Error> {
    if length > limit as u64 {
        return Err(Error::TooLarge { place, found: length, limit: limit as u64 });
    }
    let mut bytes = Vec::with_capacity(length.min(AHEAD_BYTES_MAX) as usize);
    // One byte more than announced is asked for, so that more than announced is noticed.
    compressed.take(length + 1).read_to_end(&mut bytes).map_err(|source| Error::Decompress { place, source })?;
    if bytes.len() as u64 != length {
        return Err(Error::Malformed { place, what: "the size is another one than was announced" });
    }
    Ok(bytes)
}

/// The rest of a compressed event of MariaDB: a byte with the method and the bytes of the length, the
/// length with its most significant byte first, and zlib.
pub(crate) fn mariadb(compressed: &[u8], limit: usize, place: &'static str) -> Result<Vec<u8>, Error> {
    let mut cursor = Cursor::new(compressed, place);
    let mark = cursor.u8()?;
    let length_bytes = mark & 7;
    if mark & 0xf0 != 0x80 || !(1..=4).contains(&length_bytes) {
        return Err(cursor.malformed("the method of compression is not known"));
    }
    let length = cursor.big(usize::from(length_bytes))?;
    exactly(length, limit, &mut ZlibDecoder::new(cursor.rest()), place)
}
