//! GTIDs and sets of them as text.

use std::{fmt, str::FromStr};

use uuid::Uuid;

use super::{
    Gtid, Set, Source, Tag,
    set::{Interval, NUMBER_END},
};
use crate::Error;

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.uuid)?;
        if self.tag.is_empty() { Ok(()) } else { write!(out, ":{}", self.tag.as_str()) }
    }
}

impl fmt::Display for Gtid {
    /// `uuid:number` or `uuid:tag:number`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.source, self.number)
    }
}

impl fmt::Display for Set {
    /// As `gtid_executed` has it, without line ends: each UUID once, in their order, its untagged
    /// intervals before the tagged ones.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<&Source> = None;
        for (source, intervals) in self.sources() {
            let is_same_uuid = before.is_some_and(|before| before.uuid == source.uuid);
            match (is_same_uuid, before) {
                (true, _) => write!(out, ":{}", source.tag.as_str())?,
                (false, Some(_)) => write!(out, ",{source}")?,
                (false, None) => write!(out, "{source}")?,
            }
            for Interval { start, end } in intervals {
                let last = end - 1;
                if *start == last { write!(out, ":{start}")? } else { write!(out, ":{start}-{last}")? }
            }
            before = Some(source);
        }
        Ok(())
    }
}

fn error(text: &str, what: &'static str) -> Error {
    Error::Gtid { text: text.to_owned(), what }
}

fn number(text: &str) -> Result<u64, Error> {
    // `parse` would take a plus sign too.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number @ 1..NUMBER_END) if is_number => Ok(number),
        _ => Err(error(text, "a number is from 1 to 9223372036854775806")),
    }
}

impl FromStr for Gtid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (source, last) = text.rsplit_once(':').ok_or_else(|| error(text, "it should be uuid:number"))?;
        let (uuid, tag) = source.split_once(':').unwrap_or((source, ""));
        Ok(Self { source: Source { uuid: parse_uuid(uuid)?, tag: Tag::new(tag)? }, number: number(last)? })
    }
}

/// A UUID as MySQL writes it: with hyphens.
fn parse_uuid(text: &str) -> Result<Uuid, Error> {
    match Uuid::try_parse(text) {
        Ok(uuid) if text.len() == uuid::fmt::Hyphenated::LENGTH => Ok(uuid),
        _ => Err(error(text, "it does not begin with a UUID")),
    }
}

impl FromStr for Set {
    type Err = Error;

    /// Reads what `gtid_executed` and the like hold. Spaces and line ends do not matter, nor does the
    /// order; intervals may overlap.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut pieces = part.split(':').map(str::trim);
            let uuid = parse_uuid(pieces.next().unwrap_or_default())?;
            let mut source = Source { uuid, tag: Tag::default() };
            for piece in pieces {
                if !piece.starts_with(|char: char| char.is_ascii_digit()) {
                    source.tag = Tag::new(piece)?;
                    continue;
                }
                let (start, last) = piece.split_once('-').unwrap_or((piece, piece));
                let (start, last) = (number(start.trim())?, number(last.trim())?);
                set.insert_interval(&source, Interval { start, end: last + 1 });
            }
        }
        Ok(set)
    }
}
