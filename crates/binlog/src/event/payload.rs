//! Whole transactions, compressed.

use std::borrow::Cow;
use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use crate::{Error, cursor::Cursor};

/// The events of a transaction of MySQL with `binlog_transaction_compression=ON`.
///
/// They are read with [`TransactionPayload::events`], [`Events`](crate::Events) and
/// [`Decoder::decode_inner`](crate::Decoder::decode_inner):
///
/// ```no_run
/// # fn each(decoder: &mut tidings_binlog::Decoder, payload: &tidings_binlog::TransactionPayload<'_>)
/// # -> Result<(), tidings_binlog::Error> {
/// let bytes = payload.events(64 << 20)?;
/// for event in tidings_binlog::Events::new(&bytes) {
///     let (header, body) = event?;
///     let event = decoder.decode_inner(&header, body)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPayload<'a> {
    /// How the payload is compressed.
    pub compression: Compression,
    /// Bytes of the events, as announced; nothing for events that are not compressed.
    pub uncompressed_size: Option<u64>,
    /// The events as they were sent.
    pub payload: &'a [u8],
}

/// How a payload is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// With Zstandard.
    Zstd,
}

const PLACE: &str = "transaction payload event";

impl<'a> TransactionPayload<'a> {
    /// Reads fields with a number and a length before each, ended by the number 0, and the payload.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body, PLACE);
        let (mut size, mut compression, mut uncompressed_size) = (None, None, None);
        loop {
            let field = cursor.packed()?;
            if field == 0 {
                break;
            }
            let mut value = Cursor::new(cursor.packed_bytes()?, PLACE);
            match field {
                1 => size = Some(value.packed_length()?),
                2 => compression = Some(value.packed()?),
                3 => uncompressed_size = Some(value.packed()?),
                _ => {}
            }
        }
        let (Some(size), Some(compression)) = (size, compression) else {
            return Err(cursor.malformed("the size or the method of compression is missing"));
        };
        let compression = match compression {
            0 => Compression::Zstd,
            255 => Compression::None,
            _ => return Err(cursor.malformed("the method of compression is not known")),
        };
        Ok(Self { compression, uncompressed_size, payload: cursor.take(size)? })
    }

    /// The bytes of the events, one after the other, without checksums.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if they are more than `bytes_max`, [`Error::Decompress`] and
    /// [`Error::Malformed`] if they are damaged.
    pub fn events(&self, bytes_max: usize) -> Result<Cow<'a, [u8]>, Error> {
        let too_large = |found| Error::TooLarge { place: PLACE, found, limit: bytes_max as u64 };
        let announced = self.uncompressed_size.unwrap_or(0).max(self.payload.len() as u64);
        match self.compression {
            Compression::None if self.payload.len() > bytes_max => Err(too_large(announced)),
            Compression::None => Ok(Cow::Borrowed(self.payload)),
            Compression::Zstd => {
                let bytes = zstd(self.payload, bytes_max as u64)
                    .map_err(|source| Error::Decompress { place: PLACE, source })?;
                if bytes.len() > bytes_max {
                    return Err(too_large(announced.max(bytes.len() as u64)));
                }
                match self.uncompressed_size.is_none_or(|size| size == bytes.len() as u64) {
                    true => Ok(Cow::Owned(bytes)),
                    false => Err(Error::Malformed { place: PLACE, what: "the size is another one than announced" }),
                }
            }
        }
    }
}

/// At most one byte more than `bytes_max`, so that more is noticed.
fn zstd(mut frames: &[u8], bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while !frames.is_empty() && bytes.len() as u64 <= bytes_max {
        let decoder = StreamingDecoder::new(&mut frames).map_err(std::io::Error::other)?;
        decoder.take(bytes_max + 1 - bytes.len() as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
