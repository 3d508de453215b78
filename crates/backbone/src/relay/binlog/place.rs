//! Where a stream stands.

use std::str::FromStr;

use tidings_binlog::{
    Error, Flavor, Header,
    gtid::{mariadb, mysql},
};

use crate::relay::Position;

/// The transactions that a stream has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    Mariadb(mariadb::Position),
    Mysql(mysql::Set),
}

/// A transaction's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gtid {
    Mariadb(mariadb::Gtid),
    Mysql(mysql::Gtid),
    Anonymous,
}

/// Where a stream stands: between two transactions, and somewhere in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relay) struct Place {
    pub(super) executed: Executed,
    pub(super) file: String,
    pub(super) offset: u64,
}

impl Executed {
    fn parse(flavor: Flavor, text: &str) -> Result<Self, Error> {
        Ok(match flavor {
            Flavor::Mariadb => Self::Mariadb(mariadb::Position::from_str(text)?),
            Flavor::Mysql => Self::Mysql(mysql::Set::from_str(text)?),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Mariadb(position) => position.is_empty(),
            Self::Mysql(set) => set.is_empty(),
        }
    }

    pub(super) fn add(&mut self, gtid: &Gtid) {
        match (self, gtid) {
            (Self::Mariadb(position), Gtid::Mariadb(gtid)) => position.update(*gtid),
            (Self::Mysql(set), Gtid::Mysql(gtid)) => set.insert(gtid),
            _ => {}
        }
    }

    /// Adds domains of MariaDB that are not known yet: a position that lacks one would be given that
    /// domain anew from its oldest log.
    pub(super) fn add_missing(&mut self, list: &[mariadb::Gtid]) {
        if let Self::Mariadb(position) = self {
            position.add_missing(list);
        }
    }
}

impl std::fmt::Display for Executed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mariadb(position) => position.fmt(out),
            Self::Mysql(set) => set.fmt(out),
        }
    }
}

impl std::fmt::Display for Gtid {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mariadb(gtid) => gtid.fmt(out),
            Self::Mysql(gtid) => gtid.fmt(out),
            Self::Anonymous => Ok(()),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.file, self.offset)?;
        if self.executed.is_empty() { Ok(()) } else { write!(out, " ({})", self.executed) }
    }
}

impl Place {
    pub(in crate::relay) fn parse(flavor: Flavor, position: &Position) -> Result<Self, Error> {
        let executed = Executed::parse(flavor, &position.gtid)?;
        Ok(Self { executed, file: position.file.clone(), offset: position.offset })
    }

    pub(super) fn position(&self) -> Position {
        Position { gtid: self.executed.to_string(), file: self.file.clone(), offset: self.offset }
    }

    /// Moves to the end of an event. Its header has the lower 32 bits of that, and nothing where the
    /// event was made for the stream alone.
    pub(super) fn pass(&mut self, header: &Header) {
        const HIGH: u64 = !0xffff_ffff;
        if header.next_position == 0 || header.flags & Header::ARTIFICIAL != 0 {
            return;
        }
        let mut next = (self.offset & HIGH) | u64::from(header.next_position);
        if next < self.offset {
            next += 1 << 32;
        }
        self.offset = next;
    }

    /// Whether everything before `other` lies before this place too.
    pub(in crate::relay) fn is_at_or_after(&self, other: &Self) -> bool {
        match (&self.executed, &other.executed) {
            (Executed::Mariadb(mine), Executed::Mariadb(theirs)) if !theirs.is_empty() => {
                theirs.iter().all(|gtid| mine.contains(gtid))
            }
            (Executed::Mysql(mine), Executed::Mysql(theirs)) if !theirs.is_empty() => mine.contains_all(theirs),
            _ => (file_number(&self.file), self.offset) >= (file_number(&other.file), other.offset),
        }
    }
}

/// Whether a position is known to be behind all that a server has executed, as it says in its own words. Where one of
/// both has no GTIDs, nobody knows.
pub(crate) fn has_read(flavor: Flavor, position: &Position, executed: &str) -> bool {
    let executed = Position { gtid: executed.replace(['\n', ' '], ""), ..Position::default() };
    match (Place::parse(flavor, position), Place::parse(flavor, &executed)) {
        (Ok(place), Ok(executed)) if !place.executed.is_empty() && !executed.executed.is_empty() => {
            place.is_at_or_after(&executed)
        }
        _ => false,
    }
}

/// The number at the end of the name of a binlog file: the names themselves do not sort once the
/// numbers have seven digits.
fn file_number(file: &str) -> u64 {
    file.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tidings_binlog::EventType;

    use super::*;

    fn place(gtid: &str, file: &str, offset: u64) -> Place {
        let flavor = if gtid.contains(':') { Flavor::Mysql } else { Flavor::Mariadb };
        Place::parse(flavor, &Position { gtid: gtid.to_owned(), file: file.to_owned(), offset }).unwrap()
    }

    fn header(next_position: u32) -> Header {
        Header { timestamp: 0, event_type: EventType::XID, server_id: 1, event_size: 31, next_position, flags: 0 }
    }

    #[test]
    fn offsets_beyond_four_gigabytes_go_on_rising_although_headers_have_32_bits() {
        let mut place = place("", "mysql-bin.000001", 0xffff_ff00);
        place.pass(&header(0x20));
        assert_eq!(place.offset, 0x1_0000_0020);
        place.pass(&header(0x40));
        assert_eq!(place.offset, 0x1_0000_0040);
        place.pass(&header(0));
        assert_eq!(place.offset, 0x1_0000_0040);
    }

    #[test]
    fn a_place_is_after_another_by_gtid_where_there_are_some_and_else_by_file_and_offset() {
        assert!(place("0-1-7,1-1-3", "x.000001", 4).is_at_or_after(&place("0-1-7", "x.000009", 4)));
        assert!(!place("0-1-6", "x.000009", 4).is_at_or_after(&place("0-1-7", "x.000001", 4)));
        assert!(!place("0-1-7", "x.000009", 4).is_at_or_after(&place("0-1-7,1-1-3", "x.000001", 4)));
        assert!(place("", "x.1000000", 4).is_at_or_after(&place("", "x.999999", 900)));
        assert!(!place("", "x.000001", 4).is_at_or_after(&place("", "x.000001", 5)));
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let (all, some) = (format!("{uuid}:1-9"), format!("{uuid}:1-5:7"));
        assert!(place(&all, "", 0).is_at_or_after(&place(&some, "", 0)));
        assert!(!place(&some, "", 0).is_at_or_after(&place(&all, "", 0)));
    }
}
