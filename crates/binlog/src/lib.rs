//! The binlog of MySQL 8.4 and later and of MariaDB 10.11 and later, in row format: bytes in, rows out.
//!
//! This room knows bytes. It does no I/O: whoever holds the connection or file hands over each event's
//! header and body. Everything is borrowed from those bytes; no bytes make it panic or take more
//! memory than its [`limits`] say.
//!
//! - [`Decoder`]: events out of headers and bodies; [`Events`] parts files and payloads into them.
//! - [`Event`]: what there is; [`Query::statement`] and [`Xid`] for transactions of all sorts.
//! - [`Table`], [`Column`]: what table maps tell, and how to add what they do not.
//! - [`Rows`], [`Row`], [`Value`]: the changes.
//! - [`gtid`]: positions that outlive files and servers.
//! - [`checksum`]: the CRC-32 of events.
//!
//! What it does not read: DATETIME, TIME and TIMESTAMP with a fraction of MariaDB tables that were made
//! with `mysql56_temporal_format=OFF`, since their table maps do not tell the digits; and events that
//! MySQL before 5.1 wrote.
//!
//! ```
//! use tidings_binlog::{Decoder, Event, Events, Error, Flavor, Row};
//!
//! /// How many rows the events of a file change.
//! fn count(file: &[u8]) -> Result<usize, Error> {
//!     let mut decoder = Decoder::new(Flavor::Mariadb);
//!     let mut count = 0;
//!     for event in Events::new(file) {
//!         let (header, body) = event?;
//!         if let Event::Rows(rows) = decoder.decode(&header, body)? {
//!             let (mut reader, mut row) = (rows.reader(), Row::default());
//!             while reader.read(&mut row)? {
//!                 count += 1;
//!             }
//!         }
//!     }
//!     Ok(count)
//! }
//! # assert_eq!(count(&[])?, 0);
//! # Ok::<(), Error>(())
//! ```

mod cursor;
mod decoder;
mod decompress;
mod error;
mod event;
mod event_type;
mod events;
mod header;
mod json;
mod rows;
mod table;
mod value;

pub mod checksum;
pub mod gtid;
pub mod limits;

pub use decoder::{Decoder, Flavor};
pub use error::Error;
pub use event::{
    Compression, Event, FormatDescription, Heartbeat, MariadbGtid, MysqlGtid, Query, Rotate, Statement,
    TransactionPayload, XaPrepare, Xid,
};
pub use event_type::EventType;
pub use events::{Events, MAGIC};
pub use header::Header;
pub use json::{Json, JsonDiff, JsonDiffs, JsonOperation};
pub use rows::{Change, Row, RowReader, Rows};
pub use table::{Charset, Column, ColumnSchema, ColumnType, Table, UnreadableTable};
pub use value::{Compressed, Date, DateTime, Decimal, Time, Timestamp, Value};
