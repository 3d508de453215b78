//! Statements.

use std::borrow::Cow;

use super::Statement;
use crate::{Error, cursor::Cursor, decompress};

/// A statement as its client sent it, or as the server wrote it for replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// The connection that ran it.
    pub thread_id: u32,
    /// Seconds that it took.
    pub seconds: u32,
    /// The error that the same statement must give on a replica, usually 0. Such a statement may have
    /// changed rows before it failed.
    pub error_code: u16,
    /// The current database.
    pub schema: &'a str,
    /// Its text, in the client's character set.
    pub sql: Cow<'a, [u8]>,
    /// Whether it loads a file whose contents came in ignored events before.
    pub loads_file: bool,
}

const PLACE: &str = "query event";

/// Bytes of the file's number, of where its name stands in the text, and of what to do with doubles.
const LOAD_HEADER_BYTES: usize = 13;

impl<'a> Query<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Error> {
        Self::read_parts(body, 0).map(|(query, _)| query)
    }

    /// Reads a query that loads a file.
    pub(crate) fn read_load(body: &'a [u8]) -> Result<Self, Error> {
        Self::read_parts(body, LOAD_HEADER_BYTES).map(|(query, _)| Self { loads_file: true, ..query })
    }

    /// Reads a compressed query of MariaDB.
    pub(crate) fn read_compressed(body: &'a [u8], bytes_max: usize) -> Result<Self, Error> {
        let (query, compressed) = Self::read_parts(body, 0)?;
        let sql = decompress::mariadb(compressed, bytes_max, "compressed query event")?;
        Ok(Self { sql: Cow::Owned(sql), ..query })
    }

    fn read_parts(body: &'a [u8], more_header_bytes: usize) -> Result<(Self, &'a [u8]), Error> {
        let mut cursor = Cursor::new(body, PLACE);
        let (thread_id, seconds) = (cursor.u32()?, cursor.u32()?);
        let schema_length = usize::from(cursor.u8()?);
        let error_code = cursor.u16()?;
        let status_length = usize::from(cursor.u16()?);
        cursor.take(more_header_bytes)?;
        // Session variables that matter to whoever would run the statement.
        cursor.take(status_length)?;
        let schema = cursor.text(schema_length)?;
        cursor.take(1)?;
        let sql = cursor.rest();
        let query = Self { thread_id, seconds, error_code, schema, sql: Cow::Borrowed(sql), loads_file: false };
        Ok((query, sql))
    }

    /// The text, with replacement characters where it is not UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.sql)
    }

    /// What the statement does to transactions.
    pub fn statement(&self) -> Statement {
        Statement::of(&self.sql)
    }
}
