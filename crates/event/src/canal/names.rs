//! Names of tables and topics, matched as Canal matches them.

use regex::{Regex, RegexBuilder};

use crate::Error;

/// One entry of a list: a name, or a pattern for the whole name. Neither minds the case.
#[derive(Clone, Debug)]
pub(super) enum Names {
    One(String),
    Pattern(Regex),
}

impl Names {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        if is_pattern(text) { whole(text).map(Self::Pattern) } else { Ok(Self::One(text.to_owned())) }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            // `equalsIgnoreCase`, which folds beyond ASCII as well.
            Self::One(one) => one.eq_ignore_ascii_case(name) || one.to_lowercase() == name.to_lowercase(),
            Self::Pattern(pattern) => pattern.is_match(&name.to_lowercase()),
        }
    }
}

/// Canal takes a text as a pattern if it holds one of these (`MQMessageUtils.isWildCard`). A dot alone
/// is none, since it stands between schema and table.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '+', '|', '(', ')', '{', '}', '[', ']', '\\', '$', '^'])
}

/// Compiles a pattern that has to match from end to end.
fn whole(pattern: &str) -> Result<Regex, Error> {
    RegexBuilder::new(&format!(r"\A(?:{pattern})\z"))
        .case_insensitive(true)
        .dot_matches_new_line(true)
        .build()
        .map_err(|source| Error::Pattern { pattern: pattern.to_owned(), source: Box::new(source) })
}

/// The entries of a list. Commas and semicolons part them, also those within `{1,2}`, as in Canal.
pub(super) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ';']).filter(|entry| !entry.is_empty())
}
