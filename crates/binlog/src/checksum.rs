//! The CRC-32 at the end of events.

use crate::{EventType, Header};

/// Bytes of a checksum.
pub const LENGTH: usize = 4;

/// Whether the last four bytes of a whole event (header, body, checksum) are the CRC-32 of the rest.
///
/// The raw bytes are hashed as they are. For an event whose checksum was cut off already, compare it
/// with [`of`].
pub fn verify(raw_event: &[u8]) -> bool {
    let Ok(header) = Header::parse(raw_event) else {
        return false;
    };
    raw_event.get(Header::LENGTH..).is_some_and(|body| matches(&header, body))
}

/// The CRC-32 of an event whose body was parted from its header and lacks the checksum.
///
/// `body` must be all that stood between header and checksum. Some clients cut one byte more off a
/// format description event: the algorithm before the checksum; hash it with that byte added.
pub fn of(header: &Header, body: &[u8]) -> u32 {
    let mut header = *header;
    if header.event_type == EventType::FORMAT_DESCRIPTION {
        // The server clears the flag when it closes the file, and does not write the checksum anew.
        header.flags &= !Header::IN_USE;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header.to_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Whether `body` ends with the checksum of header and body.
pub(crate) fn matches(header: &Header, body: &[u8]) -> bool {
    split(body).is_some_and(|(body, found)| of(header, body) == found)
}

/// A body and the checksum at its end; nothing if it is too short for one.
pub(crate) fn split(body: &[u8]) -> Option<(&[u8], u32)> {
    let (body, checksum) = body.split_last_chunk::<LENGTH>()?;
    Some((body, u32::from_le_bytes(*checksum)))
}
