//! The 19 bytes before every event.

use crate::{Error, EventType, cursor::Cursor};

/// The 19 bytes before every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When the statement began, in seconds since 1970; 0 in events that the server makes for the
    /// stream alone.
    pub timestamp: u32,
    /// What the body is.
    pub event_type: EventType,
    /// The server that first wrote the event.
    pub server_id: u32,
    /// Bytes of the whole event: header, body and checksum.
    pub event_size: u32,
    /// Where the next event begins in the file, modulo 4 GiB; 0 in events made for the stream alone.
    pub next_position: u32,
    /// Bits; see the constants.
    pub flags: u16,
}

impl Header {
    /// Bytes of a header.
    pub const LENGTH: usize = 19;
    /// The file is still being written. Set in the first event of a file; not part of its checksum.
    pub const IN_USE: u16 = 0x0001;
    /// The event was made for the stream and stands in no file.
    pub const ARTIFICIAL: u16 = 0x0020;
    /// Who does not know the event may skip it.
    pub const IGNORABLE: u16 = 0x0080;

    /// Reads a header from the front of `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if there are fewer than 19 bytes, [`Error::Malformed`] if the event is
    /// said to be shorter than its header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(bytes, "event header");
        let header = Self {
            timestamp: cursor.u32()?,
            event_type: EventType(cursor.u8()?),
            server_id: cursor.u32()?,
            event_size: cursor.u32()?,
            next_position: cursor.u32()?,
            flags: cursor.u16()?,
        };
        if header.length() < Self::LENGTH {
            return Err(cursor.malformed("the event is said to be shorter than its header"));
        }
        Ok(header)
    }

    /// The header as it stands in a binlog.
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0..4].copy_from_slice(&self.timestamp.to_le_bytes());
        bytes[4] = self.event_type.0;
        bytes[5..9].copy_from_slice(&self.server_id.to_le_bytes());
        bytes[9..13].copy_from_slice(&self.event_size.to_le_bytes());
        bytes[13..17].copy_from_slice(&self.next_position.to_le_bytes());
        bytes[17..19].copy_from_slice(&self.flags.to_le_bytes());
        bytes
    }

    /// Bytes of the whole event.
    pub(crate) fn length(&self) -> usize {
        // The event lies in memory, or should: a 16-bit machine is not among the targets.
        self.event_size as usize
    }
}
