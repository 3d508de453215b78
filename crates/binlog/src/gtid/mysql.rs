//! MySQL's GTIDs, with tags as of MySQL 8.4.

mod set;
mod text;

use uuid::Uuid;

pub use set::Set;

use crate::{Error, cursor::Cursor};

/// A tag: nothing, or up to 32 letters, digits and underscores in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(Box<str>);

/// Who numbers transactions: a server, and the tag it gave them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The server that first committed the transaction.
    pub uuid: Uuid,
    /// The tag, usually empty.
    pub tag: Tag,
}

/// A GTID of MySQL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    /// Who numbered the transaction.
    pub source: Source,
    /// Its number, from 1.
    pub number: u64,
}

impl Tag {
    /// Bytes of a tag at most.
    pub const BYTES_MAX: usize = 32;

    /// The tag of that text, in lower case.
    ///
    /// # Errors
    ///
    /// [`Error::Gtid`] if it is not a tag.
    pub fn new(text: &str) -> Result<Self, Error> {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let is_begun_well = text.bytes().next().is_none_or(is_letter);
        let is_well = text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit());
        if !is_begun_well || !is_well || text.len() > Self::BYTES_MAX {
            return Err(Error::Gtid { text: text.to_owned(), what: "it is not a tag" });
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// The text, empty if there is no tag.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is no tag.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An integer as MySQL's serialization library writes it: the set bits at the end of the first byte
/// count the bytes that follow, the rest is the number.
pub(crate) fn variable(cursor: &mut Cursor<'_>) -> Result<u64, Error> {
    let first = cursor.u8()?;
    let more = first.trailing_ones() as usize;
    if more == 8 {
        return cursor.u64();
    }
    let high = cursor.little(more)?;
    Ok(high << (7 - more) | u64::from(first) >> (more + 1))
}

/// The same for a number with a sign, which is its lowest bit.
pub(crate) fn variable_signed(cursor: &mut Cursor<'_>) -> Result<i64, Error> {
    let number = variable(cursor)?;
    let absolute = (number >> 1) as i64;
    Ok(if number & 1 == 0 { absolute } else { -1 - absolute })
}
