//! Names of XA transactions.

use std::fmt;

use crate::{Error, cursor::Cursor};

/// The name of an XA transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid {
    /// Number of the naming scheme, 1 unless the client chose another.
    pub format_id: u32,
    /// The global transaction, at most 64 bytes.
    pub gtrid: Box<[u8]>,
    /// Its branch, at most 64 bytes.
    pub bqual: Box<[u8]>,
}

/// The rows since the transaction's begin were prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XaPrepare {
    /// The name they were prepared under.
    pub xid: Xid,
    /// They were committed at once: `XA COMMIT ... ONE PHASE`.
    pub is_one_phase: bool,
}

/// Bytes of each part of a name at most.
const PART_BYTES_MAX: usize = 64;

impl Xid {
    pub(crate) fn read(cursor: &mut Cursor<'_>, format_id: u32, gtrid: usize, bqual: usize) -> Result<Self, Error> {
        if gtrid > PART_BYTES_MAX || bqual > PART_BYTES_MAX {
            return Err(cursor.malformed("the name of an XA transaction is too long"));
        }
        Ok(Self { format_id, gtrid: cursor.take(gtrid)?.into(), bqual: cursor.take(bqual)?.into() })
    }

    /// Reads `X'6162',X'',1`, the form in which the servers write names into the binlog.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',').map(str::trim);
        let (gtrid, bqual) = (hex(parts.next()?)?, hex(parts.next()?)?);
        let format_id = parts.next()?.parse().ok()?;
        match parts.next() {
            None => Some(Self { format_id, gtrid, bqual }),
            Some(_) => None,
        }
    }
}

fn hex(text: &str) -> Option<Box<[u8]>> {
    let digits = text.strip_prefix(['X', 'x'])?.strip_prefix('\'')?.strip_suffix('\'')?.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let part: Option<Box<[u8]>> =
        pairs.iter().map(|[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8)).collect();
    part.filter(|part| part.len() <= PART_BYTES_MAX)
}

impl fmt::Display for Xid {
    /// `X'6162',X'',1`: what `XA COMMIT` takes.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.gtrid, &self.bqual] {
            out.write_str("X'")?;
            part.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
            out.write_str("',")?;
        }
        write!(out, "{}", self.format_id)
    }
}

impl XaPrepare {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body, "XA prepare event");
        let is_one_phase = cursor.u8()? != 0;
        let (format_id, gtrid, bqual) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let xid = Xid::read(&mut cursor, format_id, gtrid as usize, bqual as usize)?;
        Ok(Self { xid, is_one_phase })
    }
}
