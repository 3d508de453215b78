//! What can be wrong with the bytes of a binlog.

/// Why bytes could not be read as what they should be.
///
/// All of them are the bytes' own fault, or that of a stream which began in the middle of a
/// statement; reading the same bytes again gives the same answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before what they should hold.
    #[error("{place}: {needed} more bytes were expected, {left} are left")]
    Truncated {
        /// What was being read.
        place: &'static str,
        /// Bytes that the next part takes.
        needed: usize,
        /// Bytes that there are.
        left: usize,
    },
    /// The bytes contradict the format.
    #[error("{place}: {what}")]
    Malformed {
        /// What was being read.
        place: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// The header names another size than the body has, even without its checksum.
    #[error("the event should have {expected} bytes by its header, {found} were given")]
    Size {
        /// Bytes of the whole event by its header.
        expected: usize,
        /// Bytes of the header and of the body given.
        found: usize,
    },
    /// The event was damaged between its writer and here.
    #[error("the event's checksum is {found:#010x}, its bytes have {expected:#010x}")]
    Checksum {
        /// CRC-32 of the bytes.
        expected: u32,
        /// CRC-32 that was sent with them.
        found: u32,
    },
    /// Rows came without the table map that describes them: the stream was begun in the middle of a
    /// statement. Begin at the start of the transaction instead.
    #[error("rows of table id {table_id} came without its table map; begin at a transaction's start")]
    NoTableMap {
        /// The server's number for the table.
        table_id: u64,
    },
    /// A value in a row cannot be read.
    #[error("column {column} of `{schema}`.`{table}` cannot be read")]
    Column {
        /// Database of the table.
        schema: String,
        /// Name of the table.
        table: String,
        /// Position of the column, from 0.
        column: usize,
        /// What is wrong with the value.
        source: Box<Error>,
    },
    /// The table has more or fewer columns than it should.
    #[error("`{schema}`.`{table}` has {found} columns, {expected} were expected")]
    ColumnCount {
        /// Database of the table.
        schema: String,
        /// Name of the table.
        table: String,
        /// Columns that were expected.
        expected: usize,
        /// Columns that there are.
        found: usize,
    },
    /// Something is larger than its limit; see [`limits`](crate::limits).
    #[error("{place}: {found} were found, at most {limit} are allowed")]
    TooLarge {
        /// What was being read.
        place: &'static str,
        /// How much was found, or announced.
        found: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// Compressed bytes do not decompress.
    #[error("{place}: the compressed bytes are damaged")]
    Decompress {
        /// What was being read.
        place: &'static str,
        /// What the decompressor said.
        source: std::io::Error,
    },
    /// A text is not UTF-8, which names in a binlog always are.
    #[error("{place}: the text is not UTF-8")]
    Text {
        /// What was being read.
        place: &'static str,
        /// Where it breaks.
        source: std::str::Utf8Error,
    },
    /// A text is not a GTID, or not a set or list of them.
    #[error("`{text}` is not a GTID: {what}")]
    Gtid {
        /// The part that is wrong.
        text: String,
        /// What is wrong.
        what: &'static str,
    },
}
