//! Reads follows from CSV, a line at a time, whatever the bytes are.
//!
//! The first line is the header; it tells which two columns hold the follower and the one who is
//! followed. A line is one record (RFC 4180 without line breaks inside quotes), so that every
//! problem has a line number and an unclosed quote spoils one line only. Blank lines are passed
//! over, and so is white space around names and ids. Memory: some lines of [`LINE_BYTES_MAX`].

mod header;

use std::io::{self, BufRead, Read as _};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use tidings_community::{Pair, UserId};

pub use header::{BadHeader, Columns};

/// Bytes of a line; of a longer one only its number is told.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Columns of a line.
pub const COLUMNS_MAX: usize = 1_024;
/// Characters of a wrong value that are shown.
const EXCERPT_CHARS_MAX: usize = 40;

/// A line of the file that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number; the header is line 1.
    pub number: u64,
    /// Who is to follow whom, or why the line does not say so.
    pub follow: Result<Pair, BadLine>,
}

/// Why a line is no follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// The line is over [`LINE_BYTES_MAX`].
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The line has more than [`COLUMNS_MAX`] columns.
    #[error("more than {COLUMNS_MAX} columns")]
    TooManyColumns,
    /// The line ends inside quotes.
    #[error("a quote is not closed")]
    UnclosedQuote,
    /// The line has more or fewer columns than the header.
    #[error("{found} columns, but the header has {expected}")]
    Columns {
        /// Columns of the header.
        expected: usize,
        /// Columns of the line.
        found: usize,
    },
    /// The value is not valid UTF-8.
    #[error("{0} is not UTF-8 text")]
    NotText(String),
    /// The value is not a whole number in its plain form: digits only, no leading zero.
    #[error("{0} is not a user id")]
    NotAnId(String),
    /// The value is a whole number beyond the last id.
    #[error("{0} is out of range: the last user id is {max}", max = i64::MAX)]
    OutOfRange(String),
    /// Nobody follows himself.
    #[error("user {0} follows himself")]
    Yourself(UserId),
}

/// Follows of a CSV file.
#[derive(Debug)]
pub struct FollowsCsv<R> {
    lines: Lines<R>,
    columns: usize,
    from: usize,
    to: usize,
}

impl<R: BufRead> FollowsCsv<R> {
    /// Reads the header and finds the columns.
    ///
    /// # Errors
    /// When reading fails; the inner error is what is wrong with the header.
    pub fn open(input: R, columns: &Columns) -> io::Result<Result<Self, BadHeader>> {
        let mut lines = Lines::new(input);
        let header = match lines.next()? {
            None => return Ok(Err(BadHeader::Missing)),
            Some((_, Err(bad))) => return Ok(Err(BadHeader::Malformed(bad))),
            Some((_, Ok(record))) => header::find(&record, columns),
        };
        Ok(header.map(|found| Self { lines, columns: found.columns, from: found.from, to: found.to }))
    }

    /// The columns in use, counted from 0: the follower's, and the one's who is followed.
    pub fn columns(&self) -> (usize, usize) {
        (self.from, self.to)
    }

    /// The next line that is not blank; `None` at the end.
    ///
    /// # Errors
    /// When reading fails.
    pub fn read(&mut self) -> io::Result<Option<Line>> {
        let Some((number, record)) = self.lines.next()? else {
            return Ok(None);
        };
        let follow = record.and_then(|record| {
            if record.len() != self.columns {
                return Err(BadLine::Columns { expected: self.columns, found: record.len() });
            }
            let (from, to) = (id(record.get(self.from))?, id(record.get(self.to))?);
            if from == to { Err(BadLine::Yourself(from)) } else { Ok(Pair { from, to }) }
        });
        Ok(Some(Line { number, follow }))
    }
}

fn id(field: &[u8]) -> Result<UserId, BadLine> {
    let Ok(text) = std::str::from_utf8(field) else {
        return Err(BadLine::NotText(excerpt(&String::from_utf8_lossy(field))));
    };
    text.parse().map_err(|_| {
        let is_number = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { BadLine::OutOfRange(excerpt(text)) } else { BadLine::NotAnId(excerpt(text)) }
    })
}

/// The beginning of a value, quoted; what a terminal would obey is escaped.
fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(EXCERPT_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// The fields of a line.
struct Record<'l> {
    fields: &'l [u8],
    ends: &'l [usize],
}

impl Record<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field without the white space around it; empty where there is none.
    fn get(&self, column: usize) -> &[u8] {
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.fields[start..self.ends[column]].trim_ascii()
    }
}

/// Lines that are not blank, split into fields, with their numbers.
#[derive(Debug)]
struct Lines<R> {
    input: R,
    splitter: Reader,
    number: u64,
    line: Vec<u8>,
    fields: Vec<u8>,
    ends: Vec<usize>,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            // Lines are cut before they are split: a `\r` inside one is a wrong character, not an end.
            splitter: ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build(),
            number: 0,
            line: Vec::new(),
            fields: vec![0; LINE_BYTES_MAX + 2],
            ends: vec![0; COLUMNS_MAX + 1],
        }
    }

    fn next(&mut self) -> io::Result<Option<(u64, Result<Record<'_>, BadLine>)>> {
        loop {
            if !self.cut()? {
                return Ok(None);
            }
            self.number += 1;
            if self.line.len() > LINE_BYTES_MAX {
                self.pass_over_rest()?;
                return Ok(Some((self.number, Err(BadLine::TooLong))));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some((self.number, self.split())))
    }

    /// Reads one line without its end, or the first bytes of one that is too long. Answers whether
    /// there was one.
    fn cut(&mut self) -> io::Result<bool> {
        self.line.clear();
        // Room for `\r\n`, so that a line of exactly the limit is still read to its end.
        let limit = LINE_BYTES_MAX as u64 + 2;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
        if self.line.ends_with(b"\n") {
            self.line.pop();
            if self.line.ends_with(b"\r") {
                self.line.pop();
            }
            // Nothing is left to pass over, so a line that is too long must not look unfinished.
            if self.line.len() > LINE_BYTES_MAX {
                self.line.push(b'\n');
            }
        }
        Ok(read > 0)
    }

    /// Passes over what is left of a line that is too long, without keeping it.
    fn pass_over_rest(&mut self) -> io::Result<()> {
        while !self.line.ends_with(b"\n") {
            self.line.clear();
            if self.input.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut self.line)? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn split(&mut self) -> Result<Record<'_>, BadLine> {
        self.line.push(b'\n');
        let (result, _, fields, columns) = self.splitter.read_record(&self.line, &mut self.fields, &mut self.ends);
        match result {
            ReadRecordResult::Record => Ok(Record { fields: &self.fields[..fields], ends: &self.ends[..columns] }),
            ReadRecordResult::OutputEndsFull => {
                self.splitter.reset();
                Err(BadLine::TooManyColumns)
            }
            // The end of the line did not end the record, so it was part of a value.
            ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull | ReadRecordResult::End => {
                self.splitter.reset();
                Err(BadLine::UnclosedQuote)
            }
        }
    }
}

#[cfg(test)]
mod tests;
