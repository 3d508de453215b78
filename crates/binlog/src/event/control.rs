//! Events about files and servers.

use crate::{Error, Flavor, Header, cursor::Cursor};

/// The stream goes on in another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// Name of the file, without its folder.
    pub file: &'a str,
    /// Where in it the next event begins, in bytes.
    pub position: u64,
}

/// How the events of a file are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatDescription<'a> {
    /// Version of the server that wrote the file.
    pub server_version: &'a str,
    /// When the server was started, in seconds since 1970, if this is its first file since; else 0. After
    /// a restart, unfinished transactions before this event are void.
    pub created: u32,
    /// Whether events end with a CRC-32; unknown if the caller cut the byte off that tells.
    pub has_checksums: Option<bool>,
    pub(crate) post_header_lengths: &'a [u8],
}

/// There is nothing to send, and the server is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// The file that would be read on.
    pub file: &'a str,
    /// Where in it, in bytes. Servers before the second version of this event tell it modulo 4 GiB.
    pub position: u64,
}

impl<'a> Rotate<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body, "rotate event");
        let position = cursor.u64()?;
        let file = cursor.text_rest()?;
        Ok(Self { file, position })
    }
}

impl<'a> FormatDescription<'a> {
    const VERSION_BYTES: usize = 50;

    /// Reads the body. `algorithm` is the byte for the checksum, which stands after it.
    pub(crate) fn read(body: &'a [u8], algorithm: Option<u8>) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body, "format description event");
        if cursor.u16()? != 4 {
            return Err(cursor.malformed("the binlog's version is not 4"));
        }
        let version = cursor.take(Self::VERSION_BYTES)?;
        let length = version.iter().position(|byte| *byte == 0).unwrap_or(version.len());
        let server_version = Cursor::new(version, cursor.place()).text(length)?;
        let created = cursor.u32()?;
        if usize::from(cursor.u8()?) != Header::LENGTH {
            return Err(cursor.malformed("headers have not 19 bytes"));
        }
        let has_checksums = match algorithm {
            None => None,
            Some(0) => Some(false),
            Some(1) => Some(true),
            Some(_) => return Err(cursor.malformed("the checksum's algorithm is not known")),
        };
        Ok(Self { server_version, created, has_checksums, post_header_lengths: cursor.rest() })
    }
}

pub(crate) fn heartbeat<'a>(header: &Header, body: &'a [u8], flavor: Flavor) -> Result<Heartbeat<'a>, Error> {
    let mut cursor = Cursor::new(body, "heartbeat event");
    // A position that the header has no room for stands before the name, in MariaDB alone.
    let is_beyond_header = flavor == Flavor::Mariadb && header.next_position == 0;
    let position = if is_beyond_header { cursor.u64()? } else { u64::from(header.next_position) };
    Ok(Heartbeat { file: cursor.text_rest()?, position })
}

/// The second version: fields with a number and a length before each, ended by the number 0.
pub(crate) fn heartbeat_v2(body: &[u8]) -> Result<Heartbeat<'_>, Error> {
    let mut cursor = Cursor::new(body, "heartbeat event");
    let mut heartbeat = Heartbeat { file: "", position: 0 };
    while !cursor.is_empty() {
        let field = cursor.packed()?;
        if field == 0 {
            break;
        }
        let length = cursor.packed_length()?;
        match field {
            1 => heartbeat.file = cursor.text(length)?,
            2 => heartbeat.position = Cursor::new(cursor.take(length)?, cursor.place()).packed()?,
            _ => cursor.take(length).map(|_| ())?,
        }
    }
    Ok(heartbeat)
}

pub(crate) fn checkpoint(body: &[u8]) -> Result<&str, Error> {
    let mut cursor = Cursor::new(body, "binlog checkpoint event");
    let length = cursor.u32()?;
    cursor.text(length as usize)
}

/// The number and the message of an incident.
pub(crate) fn incident(body: &[u8]) -> Result<(u16, &[u8]), Error> {
    let mut cursor = Cursor::new(body, "incident event");
    let kind = cursor.u16()?;
    let length = cursor.u8()?;
    Ok((kind, cursor.take(usize::from(length))?))
}

/// The name of a user variable.
pub(crate) fn user_var(body: &[u8]) -> Result<&[u8], Error> {
    let mut cursor = Cursor::new(body, "user variable event");
    let length = cursor.u32()?;
    cursor.take(length as usize)
}
