//! MariaDB's GTIDs.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::{Error, cursor::Cursor};

/// A GTID of MariaDB. Within a domain, transactions come in the order of their sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    /// The domain: a stream of transactions that is ordered in itself.
    pub domain_id: u32,
    /// The server that first committed the transaction.
    pub server_id: u32,
    /// Its number in the domain.
    pub sequence: u64,
}

/// How far a stream has come: the last GTID of each domain.
///
/// **It must know all domains.** A server takes a position that lacks one for "nothing of that domain
/// yet" and sends the domain anew from its oldest log, without an error. So it is seeded with the
/// `GTID_LIST` event at the start of each file, by [`Position::add_missing`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    domains: BTreeMap<u32, Gtid>,
}

impl Position {
    /// Whether it knows no domain.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The last GTID of a domain.
    pub fn get(&self, domain_id: u32) -> Option<Gtid> {
        self.domains.get(&domain_id).copied()
    }

    /// The last GTID of each domain, in the order of domains.
    pub fn iter(&self) -> impl Iterator<Item = Gtid> + '_ {
        self.domains.values().copied()
    }

    /// Moves the GTID's domain to it. It is not compared with what was there: in a domain that several
    /// servers write to without strict mode, numbers may fall.
    pub fn update(&mut self, gtid: Gtid) {
        self.domains.insert(gtid.domain_id, gtid);
    }

    /// Adds the domains of a GTID list that are not known yet, and leaves the others alone. A list may
    /// name a domain several times, once for each server; its last entry is the newest.
    pub fn add_missing(&mut self, list: &[Gtid]) {
        let mut missing = Self::default();
        list.iter().filter(|gtid| !self.domains.contains_key(&gtid.domain_id)).for_each(|gtid| missing.update(*gtid));
        self.domains.extend(missing.domains);
    }

    /// Whether the transaction is at or before this position in its domain.
    pub fn contains(&self, gtid: Gtid) -> bool {
        self.get(gtid.domain_id).is_some_and(|last| gtid.sequence <= last.sequence)
    }
}

impl FromIterator<Gtid> for Position {
    /// The last GTID of each domain.
    fn from_iter<T: IntoIterator<Item = Gtid>>(gtids: T) -> Self {
        let mut position = Self::default();
        gtids.into_iter().for_each(|gtid| position.update(gtid));
        position
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.domain_id, self.server_id, self.sequence)
    }
}

impl fmt::Display for Position {
    /// As `gtid_slave_pos` has it: `0-1-100,1-2-5`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, gtid) in self.iter().enumerate() {
            write!(out, "{}{gtid}", if number > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Gtid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let error = |what| Error::Gtid { text: text.to_owned(), what };
        let mut parts = text.splitn(3, '-');
        let mut part = || {
            let part = parts.next().ok_or_else(|| error("it should be domain-server-sequence"))?;
            // `parse` would take a plus sign too.
            match part.bytes().all(|byte| byte.is_ascii_digit()) {
                true => part.parse::<u64>().map_err(|_| error("a number is missing or too large")),
                false => Err(error("it should be three numbers")),
            }
        };
        let (domain, server, sequence) = (part()?, part()?, part()?);
        let small = |number| u32::try_from(number).map_err(|_| error("domain or server is too large"));
        Ok(Self { domain_id: small(domain)?, server_id: small(server)?, sequence })
    }
}

impl FromStr for Position {
    type Err = Error;

    /// Reads what `gtid_slave_pos` and the like hold; spaces and line ends around commas do not matter.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut position = Self::default();
        if text.trim().is_empty() {
            return Ok(position);
        }
        for part in text.split(',') {
            let gtid: Gtid = part.trim().parse()?;
            if position.domains.insert(gtid.domain_id, gtid).is_some() {
                return Err(Error::Gtid { text: part.to_owned(), what: "its domain occurs twice" });
            }
        }
        Ok(position)
    }
}

/// Reads the body of a GTID_LIST event.
pub(crate) fn read_list(body: &[u8]) -> Result<Vec<Gtid>, Error> {
    const COUNT_BITS: u32 = 28;
    const GTID_BYTES: usize = 16;
    let mut cursor = Cursor::new(body, "GTID list");
    let count = (cursor.u32()? & ((1 << COUNT_BITS) - 1)) as usize;
    let mut list = Cursor::new(cursor.take(count.saturating_mul(GTID_BYTES))?, "GTID list");
    (0..count).map(|_| Ok(Gtid { domain_id: list.u32()?, server_id: list.u32()?, sequence: list.u64()? })).collect()
}
