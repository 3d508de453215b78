//! Reading from the front of a slice, without any way to panic.

use crate::Error;

/// A slice that is read from its front, and what it is, for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    left: &'a [u8],
    place: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], place: &'static str) -> Self {
        Self { left: bytes, place }
    }

    pub(crate) fn place(&self) -> &'static str {
        self.place
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.left.len()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.left
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { place: self.place, what }
    }

    #[cold]
    fn truncated(&self, needed: usize) -> Error {
        Error::Truncated { place: self.place, needed, left: self.left.len() }
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let Some((head, tail)) = self.left.split_at_checked(count) else {
            return Err(self.truncated(count));
        };
        self.left = tail;
        Ok(head)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((head, tail)) = self.left.split_first_chunk::<N>() else {
            return Err(self.truncated(N));
        };
        self.left = tail;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// An integer of `count` bytes, at most 8, the least significant first.
    #[inline]
    pub(crate) fn little(&mut self, count: usize) -> Result<u64, Error> {
        Ok(self.take(count)?.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    /// An integer of `count` bytes, at most 8, the most significant first.
    #[inline]
    pub(crate) fn big(&mut self, count: usize) -> Result<u64, Error> {
        Ok(self.take(count)?.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    /// A length-encoded integer of the client protocol: one byte, or a mark and 2, 3 or 8 bytes.
    #[inline]
    pub(crate) fn packed(&mut self) -> Result<u64, Error> {
        match self.u8()? {
            byte @ 0..=250 => Ok(u64::from(byte)),
            252 => self.little(2),
            253 => self.little(3),
            254 => self.u64(),
            _ => Err(self.malformed("a length-encoded integer begins with 251 or 255")),
        }
    }

    /// A length-encoded integer that counts bytes or things in memory.
    pub(crate) fn packed_length(&mut self) -> Result<usize, Error> {
        let length = self.packed()?;
        usize::try_from(length).map_err(|_| self.malformed("a length does not fit the memory"))
    }

    /// As many bytes as the length-encoded integer before them says.
    pub(crate) fn packed_bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.packed_length()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self, count: usize) -> Result<&'a str, Error> {
        let bytes = self.take(count)?;
        std::str::from_utf8(bytes).map_err(|source| Error::Text { place: self.place, source })
    }

    pub(crate) fn text_rest(&mut self) -> Result<&'a str, Error> {
        self.text(self.left.len())
    }
}
