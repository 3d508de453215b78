//! Events out of headers and bodies.

mod framing;
mod tables;

use std::sync::Arc;

use self::{framing::Framing, tables::Tables};
use crate::{
    Change, Error, Event, EventType, Header, Rows, Table, TransactionPayload,
    cursor::Cursor,
    decompress,
    event::{self, FormatDescription, Query, Rotate, XaPrepare},
    gtid::{mariadb, mysql},
    limits::UNCOMPRESSED_BYTES_MAX,
    table::{Described, table_id},
};

/// Which family of servers wrote the binlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// MySQL, 8.4 and later.
    Mysql,
    /// MariaDB, 10.11 and later.
    Mariadb,
}

/// Decodes the events of one stream or file, in their order.
///
/// It keeps what later events need: the format description, and the table maps of the statement that
/// is being read. Begin a new one for each connection.
#[derive(Clone, Debug)]
pub struct Decoder {
    flavor: Flavor,
    framing: Framing,
    tables: Tables,
    uncompressed_bytes_max: usize,
}

impl Decoder {
    /// A decoder for the start of a stream.
    pub fn new(flavor: Flavor) -> Self {
        let (framing, tables) = (Framing::default(), Tables::default());
        Self { flavor, framing, tables, uncompressed_bytes_max: UNCOMPRESSED_BYTES_MAX }
    }

    /// Sets how many bytes a compressed event may have when it is decompressed.
    #[must_use]
    pub fn limit_uncompressed(mut self, bytes_max: usize) -> Self {
        self.uncompressed_bytes_max = bytes_max;
        self
    }

    /// Decodes an event that was received.
    ///
    /// `body` is all that came after the header. Whether its checksum was cut off already is seen from
    /// the size in the header, so both will do; if it is there, it is verified. What was received before
    /// the format description is cut only if its last four bytes are its checksum: MariaDB sends one
    /// with the first rotate event, MySQL does not, and no client knows yet.
    ///
    /// # Errors
    ///
    /// The event is damaged, or came without what it needs; see [`Error`]. The decoder can go on with
    /// the next event after any of them.
    pub fn decode<'a>(&mut self, header: &Header, body: &'a [u8]) -> Result<Event<'a>, Error> {
        let body = self.framing.strip(header, body)?;
        self.decode_stripped(header, body)
    }

    /// Decodes an event of a [`TransactionPayload`], none of which has a checksum.
    ///
    /// # Errors
    ///
    /// As [`Decoder::decode`].
    pub fn decode_inner<'a>(&mut self, header: &Header, body: &'a [u8]) -> Result<Event<'a>, Error> {
        let body = framing::Body { bytes: body, algorithm: None };
        self.decode_stripped(header, body)
    }

    /// Puts a table in the place of the one that its table map described: the same one with more
    /// knowledge, made by [`Table::with_schema`]. Rows that follow are decoded by it, also after further
    /// table maps that have the same id and say the same.
    pub fn describe(&mut self, table: Arc<Table>) {
        self.tables.describe(table);
    }

    fn decode_stripped<'a>(&mut self, header: &Header, body: framing::Body<'a>) -> Result<Event<'a>, Error> {
        let bytes = body.bytes;
        Ok(match header.event_type {
            EventType::TABLE_MAP => self.table_map(bytes)?,
            EventType::QUERY => Event::Query(Query::read(bytes)?),
            EventType::EXECUTE_LOAD_QUERY => Event::Query(Query::read_load(bytes)?),
            EventType::MARIADB_QUERY_COMPRESSED => {
                Event::Query(Query::read_compressed(bytes, self.uncompressed_bytes_max)?)
            }
            EventType::XID => Event::Commit(Cursor::new(bytes, "xid event").u64()?),
            EventType::XA_PREPARE => Event::XaPrepare(XaPrepare::read(bytes)?),
            EventType::GTID => Event::MysqlGtid(event::mysql_gtid(bytes)?),
            EventType::GTID_TAGGED => Event::MysqlGtid(event::mysql_tagged_gtid(bytes)?),
            EventType::ANONYMOUS_GTID => Event::AnonymousGtid,
            EventType::MARIADB_GTID => Event::MariadbGtid(event::mariadb_gtid(header, bytes)?),
            EventType::PREVIOUS_GTIDS => Event::PreviousGtids(mysql::Set::decode(bytes)?),
            EventType::MARIADB_GTID_LIST => Event::GtidList(mariadb::read_list(bytes)?),
            EventType::ROTATE => self.rotate(bytes)?,
            EventType::FORMAT_DESCRIPTION => self.format_description(bytes, body.algorithm)?,
            EventType::TRANSACTION_PAYLOAD => Event::TransactionPayload(TransactionPayload::read(bytes)?),
            EventType::HEARTBEAT => Event::Heartbeat(event::heartbeat(header, bytes, self.flavor)?),
            EventType::HEARTBEAT_V2 => Event::Heartbeat(event::heartbeat_v2(bytes)?),
            EventType::MARIADB_ANNOTATE_ROWS => Event::RowsQuery(bytes),
            // The byte before the text was its length, and is too small for it.
            EventType::ROWS_QUERY => Event::RowsQuery(bytes.get(1..).unwrap_or_default()),
            _ => match rows_kind(header.event_type) {
                Some(kind) => self.rows(kind, header.event_type, bytes)?,
                None => self.rare(header, bytes)?,
            },
        })
    }

    fn rare<'a>(&mut self, header: &Header, body: &'a [u8]) -> Result<Event<'a>, Error> {
        let mut cursor = Cursor::new(body, "event before a statement");
        Ok(match header.event_type {
            EventType::MARIADB_BINLOG_CHECKPOINT => Event::BinlogCheckpoint(event::checkpoint(body)?),
            EventType::MARIADB_START_ENCRYPTION => Event::StartEncryption,
            EventType::INCIDENT => {
                let (kind, message) = event::incident(body)?;
                Event::Incident { kind, message }
            }
            EventType::INTVAR => Event::Intvar { kind: cursor.u8()?, value: cursor.u64()? },
            EventType::RAND => Event::Rand { seeds: [cursor.u64()?, cursor.u64()?] },
            EventType::USER_VAR => Event::UserVar { name: event::user_var(body)? },
            EventType::STOP | EventType::IGNORABLE => Event::Ignored(header.event_type),
            EventType::TRANSACTION_CONTEXT | EventType::VIEW_CHANGE => Event::Ignored(header.event_type),
            EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK | EventType::DELETE_FILE => {
                Event::Ignored(header.event_type)
            }
            other if header.flags & Header::IGNORABLE != 0 => Event::Ignored(other),
            other => Event::Unknown(other),
        })
    }

    fn rotate<'a>(&mut self, body: &'a [u8]) -> Result<Event<'a>, Error> {
        self.tables.end_statement();
        Rotate::read(body).map(Event::Rotate)
    }

    fn format_description<'a>(&mut self, body: &'a [u8], algorithm: Option<u8>) -> Result<Event<'a>, Error> {
        let format = FormatDescription::read(body, algorithm)?;
        self.framing.learn(&format);
        // A server that was started anew counts its tables anew.
        self.tables.forget();
        Ok(Event::FormatDescription(format))
    }

    fn table_map<'a>(&mut self, body: &[u8]) -> Result<Event<'a>, Error> {
        let mut cursor = Cursor::new(body, "table map");
        let id = table_id(&mut cursor, self.framing.table_id_bytes(EventType::TABLE_MAP))?;
        Ok(match self.tables.map(id, cursor.rest(), self.flavor)? {
            Described::Table(table) => Event::TableMap(table),
            Described::Unreadable(table) => Event::UnreadableTable(table),
        })
    }

    fn rows<'a>(&mut self, kind: RowsKind, event_type: EventType, body: &'a [u8]) -> Result<Event<'a>, Error> {
        const STATEMENT_END: u16 = 1;
        let mut cursor = Cursor::new(body, "rows event");
        let id = table_id(&mut cursor, self.framing.table_id_bytes(event_type))?;
        let ends_statement = cursor.u16()? & STATEMENT_END != 0;
        if kind.has_extra_data {
            let Some(length) = cursor.u16()?.checked_sub(2) else {
                return Err(cursor.malformed("the extra data is shorter than its length"));
            };
            cursor.take(usize::from(length))?;
        }
        let table = self.tables.get(id);
        // The tables are needed no more after the last rows of a statement, whether these can be read
        // or not.
        if ends_statement {
            self.tables.end_statement();
        }
        let is_dummy = ends_statement && (id == DUMMY_TABLE_ID || id == DUMMY_TABLE_ID_WIDE);
        let table = match table {
            Some(Described::Table(table)) => table,
            Some(Described::Unreadable(table)) => return Ok(Event::UnreadableRows(table)),
            None if is_dummy => return Ok(Event::NoRows),
            None => return Err(Error::NoTableMap { table_id: id }),
        };
        let columns = cursor.packed_length()?;
        if columns != table.columns().len() {
            return Err(table.column_count(table.columns().len(), columns));
        }
        let first = cursor.take(columns.div_ceil(8))?;
        let second = if kind.change == Change::Update { cursor.take(columns.div_ceil(8))? } else { &[] };
        let images = match kind.is_compressed {
            true => decompress::mariadb(cursor.rest(), self.uncompressed_bytes_max, "compressed rows event")?.into(),
            false => cursor.rest().into(),
        };
        let RowsKind { change, is_partial, .. } = kind;
        Ok(Event::Rows(Rows { table, change, ends_statement, is_partial, first, second, images }))
    }
}

/// The table of an event that has no rows, only the end of a statement.
const DUMMY_TABLE_ID: u64 = 0xff_ffff;
const DUMMY_TABLE_ID_WIDE: u64 = 0xffff_ffff_ffff;

/// How the rows of an event are laid out.
#[derive(Clone, Copy)]
struct RowsKind {
    change: Change,
    has_extra_data: bool,
    is_compressed: bool,
    is_partial: bool,
}

fn rows_kind(event_type: EventType) -> Option<RowsKind> {
    let change = match event_type.0 {
        20 | 23 | 30 | 166 | 169 => Change::Insert,
        21 | 24 | 31 | 39 | 167 | 170 => Change::Update,
        22 | 25 | 32 | 168 | 171 => Change::Delete,
        _ => return None,
    };
    Some(RowsKind {
        change,
        has_extra_data: matches!(event_type.0, 30..=32 | 39 | 169..=171),
        is_compressed: matches!(event_type.0, 166..=171),
        is_partial: event_type == EventType::PARTIAL_UPDATE_ROWS,
    })
}
