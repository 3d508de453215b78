//! What has a limit, and which.

/// Columns of a table. Both servers allow 4096.
pub const COLUMNS_MAX: usize = 4096;

/// Bytes of one event, or of one transaction's payload, after decompression. Both servers keep
/// events within the packet size they allow at most, which is 1 GiB. [`Decoder::limit_uncompressed`]
/// lowers it. No memory is taken ahead of what the compressed bytes really hold.
///
/// [`Decoder::limit_uncompressed`]: crate::Decoder::limit_uncompressed
pub const UNCOMPRESSED_BYTES_MAX: usize = 1 << 30;

/// Nesting of a JSON document. MySQL allows 100.
pub const JSON_DEPTH_MAX: usize = 100;

/// Bytes of JSON text for each byte of binary JSON. Real documents stay below 7: a control character
/// takes one byte there and six here. Damaged ones can name one value many times.
pub const JSON_TEXT_FACTOR_MAX: usize = 8;

/// Tables whose descriptions are kept, so that a table map that comes again need not be read again.
pub const TABLES_KEPT_MAX: usize = 4096;

/// Table maps of one statement.
pub const TABLES_OF_STATEMENT_MAX: usize = 4096;
