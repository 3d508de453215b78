//! Which columns hold the follower and the one who is followed.

use super::{BadLine, Record, excerpt};

/// Names of the columns that are taken where the header has them.
const NAMES: (&str, &str) = ("from", "to");

/// Which columns to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// `from` and `to`; in a header of two other names, the two in their order.
    #[default]
    Usual,
    /// The columns of these names.
    Named {
        /// Column of the follower.
        from: String,
        /// Column of the one who is followed.
        to: String,
    },
}

/// Why the columns cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// There is no line at all.
    #[error("there is no header line")]
    Missing,
    /// The first line is no line of CSV.
    #[error("the header is unreadable: {0}")]
    Malformed(BadLine),
    /// The first line holds ids; taking it for a header would lose a follow.
    #[error("the first line is data; a header line such as `from,to` must come before it")]
    Data,
    /// No column has this name.
    #[error("the header names no column {name}; it names {names}")]
    NoColumn {
        /// The name looked for.
        name: String,
        /// The names there are.
        names: String,
    },
    /// More than one column has this name.
    #[error("the header names the column {0} more than once")]
    Ambiguous(String),
    /// Both columns are the same.
    #[error("follower and followed are in the same column {0}")]
    Same(String),
    /// There is no way to tell.
    #[error("the header names neither `from` and `to` nor two columns alone, but {0}; say which to take")]
    Unclear(String),
}

/// The columns, counted from 0.
pub(super) struct Found {
    pub(super) columns: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

pub(super) fn find(header: &Record<'_>, wanted: &Columns) -> Result<Found, BadHeader> {
    let columns = header.len();
    let (from, to) = match wanted {
        Columns::Named { from, to } if from == to => return Err(BadHeader::Same(excerpt(from))),
        Columns::Named { from, to } => (position(header, from)?, position(header, to)?),
        Columns::Usual => usual(header)?,
    };
    Ok(Found { columns, from, to })
}

fn usual(header: &Record<'_>) -> Result<(usize, usize), BadHeader> {
    let has = |name: &str| (0..header.len()).any(|column| header.get(column) == name.as_bytes());
    if has(NAMES.0) && has(NAMES.1) {
        return Ok((position(header, NAMES.0)?, position(header, NAMES.1)?));
    }
    if header.len() != 2 {
        return Err(BadHeader::Unclear(names(header)));
    }
    let is_number = |column| header.get(column).iter().all(u8::is_ascii_digit);
    if is_number(0) && is_number(1) { Err(BadHeader::Data) } else { Ok((0, 1)) }
}

fn position(header: &Record<'_>, name: &str) -> Result<usize, BadHeader> {
    let mut columns = (0..header.len()).filter(|column| header.get(*column) == name.as_bytes());
    match (columns.next(), columns.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => Err(BadHeader::Ambiguous(excerpt(name))),
        (None, _) => Err(BadHeader::NoColumn { name: excerpt(name), names: names(header) }),
    }
}

/// The first names of the header, to be shown.
fn names(header: &Record<'_>) -> String {
    const SHOWN_MAX: usize = 10;
    let shown = (0..header.len().min(SHOWN_MAX)).map(|column| excerpt(&String::from_utf8_lossy(header.get(column))));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if header.len() > SHOWN_MAX {
        text.push_str(&format!(" and {} more", header.len() - SHOWN_MAX));
    }
    text
}
