//! Events that begin a transaction.

use uuid::Uuid;

use super::Xid;
use crate::{
    Error, Header,
    cursor::Cursor,
    gtid::{
        mariadb,
        mysql::{self, Source, Tag, variable, variable_signed},
    },
};

/// A transaction of MySQL begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlGtid {
    /// Its GTID.
    pub gtid: mysql::Gtid,
    /// Whether it may hold statements instead of rows.
    pub may_have_statements: bool,
}

/// A transaction of MariaDB begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MariadbGtid {
    /// Its GTID.
    pub gtid: mariadb::Gtid,
    /// It is the one event after this, such as a DDL statement: no commit follows.
    pub is_standalone: bool,
    /// All its changes can be rolled back.
    pub is_transactional: bool,
    /// It is DDL.
    pub is_ddl: bool,
    /// It ends with the preparation of an XA transaction: not yet with its commit.
    pub prepares: Option<Xid>,
    /// It is the verdict on an XA transaction that was prepared before.
    pub completes: Option<Xid>,
    /// Transactions with the same number were committed together.
    pub commit_id: Option<u64>,
}

pub(crate) fn mysql(body: &[u8]) -> Result<MysqlGtid, Error> {
    let mut cursor = Cursor::new(body, "GTID event");
    let flags = cursor.u8()?;
    let source = Source { uuid: Uuid::from_bytes(cursor.array()?), tag: Tag::default() };
    let gtid = mysql::Gtid { source, number: cursor.u64()? };
    Ok(MysqlGtid { gtid, may_have_statements: flags & 1 != 0 })
}

/// A GTID with a tag: fields of MySQL's serialization library, each after its number, in their order.
/// The first four are always there; those after them say nothing of the GTID.
pub(crate) fn mysql_tagged(body: &[u8]) -> Result<MysqlGtid, Error> {
    let mut cursor = Cursor::new(body, "tagged GTID event");
    let _version = variable(&mut cursor)?;
    let _size = variable(&mut cursor)?;
    let _last_that_must_be_known = variable(&mut cursor)?;
    field(&mut cursor, 0)?;
    let flags = variable(&mut cursor)?;
    field(&mut cursor, 1)?;
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = u8::try_from(variable(&mut cursor)?).map_err(|_| cursor.malformed("a UUID is damaged"))?;
    }
    field(&mut cursor, 2)?;
    let number = u64::try_from(variable_signed(&mut cursor)?).map_err(|_| cursor.malformed("a number is negative"))?;
    field(&mut cursor, 3)?;
    let length = usize::try_from(variable(&mut cursor)?).unwrap_or(usize::MAX);
    let tag = Tag::new(cursor.text(length)?)?;
    let source = Source { uuid: Uuid::from_bytes(uuid), tag };
    Ok(MysqlGtid { gtid: mysql::Gtid { source, number }, may_have_statements: flags & 1 != 0 })
}

fn field(cursor: &mut Cursor<'_>, number: u64) -> Result<(), Error> {
    match variable(cursor)? == number {
        true => Ok(()),
        false => Err(cursor.malformed("a field is missing")),
    }
}

pub(crate) fn mariadb(header: &Header, body: &[u8]) -> Result<MariadbGtid, Error> {
    const STANDALONE: u8 = 1;
    const GROUP_COMMIT_ID: u8 = 2;
    const TRANSACTIONAL: u8 = 4;
    const DDL: u8 = 32;
    const PREPARED_XA: u8 = 64;
    const COMPLETED_XA: u8 = 128;

    let mut cursor = Cursor::new(body, "MariaDB GTID event");
    let (sequence, domain_id) = (cursor.u64()?, cursor.u32()?);
    let flags = cursor.u8()?;
    let commit_id = if flags & GROUP_COMMIT_ID != 0 { Some(cursor.u64()?) } else { None };
    let xid = if flags & (PREPARED_XA | COMPLETED_XA) != 0 { Some(xid(&mut cursor)?) } else { None };
    let (prepares, completes) = if flags & PREPARED_XA != 0 { (xid, None) } else { (None, xid) };
    Ok(MariadbGtid {
        gtid: mariadb::Gtid { domain_id, server_id: header.server_id, sequence },
        is_standalone: flags & STANDALONE != 0,
        is_transactional: flags & TRANSACTIONAL != 0,
        is_ddl: flags & DDL != 0,
        prepares,
        completes,
        commit_id,
    })
}

fn xid(cursor: &mut Cursor<'_>) -> Result<Xid, Error> {
    let format_id = cursor.u32()?;
    let [gtrid, bqual] = cursor.array()?;
    Xid::read(cursor, format_id, usize::from(gtrid), usize::from(bqual))
}
