//! Events that lie one after the other in memory.

use crate::{Error, Header, cursor::Cursor};

/// The first four bytes of every binlog file.
pub const MAGIC: [u8; 4] = *b"\xfebin";

/// Parts bytes into events: the contents of a file after [`MAGIC`], or of a transaction payload. After
/// an error there are none.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Events<'a> {
    /// The events in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(bytes, "events") }
    }
}

impl<'a> Iterator for Events<'a> {
    /// A header, and all bytes of the event after it.
    type Item = Result<(Header, &'a [u8]), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.is_empty() {
            return None;
        }
        let event = read(&mut self.cursor);
        if event.is_err() {
            self.cursor = Cursor::new(&[], "events");
        }
        Some(event)
    }
}

fn read<'a>(cursor: &mut Cursor<'a>) -> Result<(Header, &'a [u8]), Error> {
    let header = Header::parse(cursor.take(Header::LENGTH)?)?;
    let body = cursor.take(header.length() - Header::LENGTH)?;
    Ok((header, body))
}
