//! What of a body is the event, and what its checksum.

use crate::{Error, EventType, Header, checksum, event::FormatDescription};

/// What the format description said of the events after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Framing {
    /// Nothing before the format description, and after one whose byte for it was cut off.
    has_checksums: Option<bool>,
    /// Table ids of four bytes, which versions long gone wrote, by the event's header length.
    short_ids: Box<[EventType]>,
}

/// A body without its checksum.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    pub(super) bytes: &'a [u8],
    /// Of a format description, the byte that names the checksum's algorithm.
    pub(super) algorithm: Option<u8>,
}

impl Framing {
    pub(super) fn learn(&mut self, format: &FormatDescription<'_>) {
        const SHORT_HEADER: u8 = 6;
        self.has_checksums = format.has_checksums;
        let lengths = format.post_header_lengths.iter().zip(1..=u8::MAX);
        self.short_ids =
            lengths.filter(|(length, _)| **length == SHORT_HEADER).map(|(_, code)| EventType(code)).collect();
    }

    pub(super) fn table_id_bytes(&self, event_type: EventType) -> usize {
        if self.short_ids.contains(&event_type) { 4 } else { 6 }
    }

    /// Cuts off and verifies what follows the event itself, unless the caller did.
    pub(super) fn strip<'a>(&self, header: &Header, body: &'a [u8]) -> Result<Body<'a>, Error> {
        const CUT: usize = checksum::LENGTH;
        const CUT_WITH_ALGORITHM: usize = CUT + 1;
        let (expected, found) = (header.length(), Header::LENGTH + body.len());
        let is_format = header.event_type == EventType::FORMAT_DESCRIPTION;
        let body = match expected.checked_sub(found) {
            Some(0) if self.ends_with_checksum(header, body) => verified(header, body)?,
            Some(0) => body,
            Some(CUT) => body,
            Some(CUT_WITH_ALGORITHM) if is_format => return Ok(Body { bytes: body, algorithm: None }),
            _ => return Err(Error::Size { expected, found }),
        };
        match body.split_last() {
            Some((algorithm, bytes)) if is_format => Ok(Body { bytes, algorithm: Some(*algorithm) }),
            _ => Ok(Body { bytes: body, algorithm: None }),
        }
    }

    fn ends_with_checksum(&self, header: &Header, body: &[u8]) -> bool {
        // A format description always has the bytes, also where there are no checksums else.
        let is_format = header.event_type == EventType::FORMAT_DESCRIPTION;
        is_format || self.has_checksums.unwrap_or_else(|| checksum::matches(header, body))
    }
}

fn verified<'a>(header: &Header, body: &'a [u8]) -> Result<&'a [u8], Error> {
    let Some((body, found)) = checksum::split(body) else {
        return Err(Error::Truncated { place: "checksum", needed: checksum::LENGTH, left: body.len() });
    };
    // The algorithm's byte 0 says that what follows a format description is no checksum.
    if header.event_type == EventType::FORMAT_DESCRIPTION && body.last() == Some(&0) {
        return Ok(body);
    }
    let expected = checksum::of(header, body);
    if expected == found { Ok(body) } else { Err(Error::Checksum { expected, found }) }
}
