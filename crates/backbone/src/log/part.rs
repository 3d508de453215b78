//! The parts of a log: sequences with offsets of their own.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One sequence of the log: a partition of a topic. Embedded there is one, [`Part::outbox`].
///
/// As text, in the database and for people, it is `topic/number`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Part {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition of the topic, from 0.
    pub number: i32,
}

/// The text is not a topic and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a part of the log is written topic/number")]
pub struct InvalidPart;

impl Part {
    /// The one part of the embedded log.
    pub fn outbox() -> Self {
        Self { topic: Arc::from("outbox"), number: 0 }
    }

    /// Reads a part that this crate wrote to `table`.
    pub(crate) fn read(text: &str, table: &'static str) -> Result<Self> {
        text.parse().map_err(|InvalidPart| Error::MalformedRow { table, reason: format!("part is `{text}`") })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.number)
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        part.to_string()
    }
}

impl TryFrom<String> for Part {
    type Error = InvalidPart;

    fn try_from(text: String) -> Result<Self, InvalidPart> {
        text.parse()
    }
}

impl FromStr for Part {
    type Err = InvalidPart;

    fn from_str(text: &str) -> Result<Self, InvalidPart> {
        let (topic, number) = text.rsplit_once('/').ok_or(InvalidPart)?;
        let number = number.parse().ok().filter(|number| *number >= 0).ok_or(InvalidPart)?;
        if topic.is_empty() { Err(InvalidPart) } else { Ok(Self { topic: Arc::from(topic), number }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_back_from_its_text() {
        for part in [Part::outbox(), Part { topic: Arc::from("a/b.c"), number: 11 }] {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        for text in ["", "outbox", "outbox/", "/1", "a/-1", "a/x"] {
            assert_eq!(text.parse::<Part>(), Err(InvalidPart), "{text}");
        }
    }
}
