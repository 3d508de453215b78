//! The unique name of a user.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::limits::HANDLE_CHARS_MAX;

/// The unique name of a user: 1 to 32 of `a-z 0-9 _ . -`, beginning with a letter or digit. Made
/// only by parsing. Capitals are refused rather than folded, so that a name is what was typed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Handle(String);

/// Why a text is not a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHandle {
    /// No characters, or more than [`HANDLE_CHARS_MAX`].
    #[error("a handle has 1 to {HANDLE_CHARS_MAX} characters")]
    Length,
    /// The first character is punctuation.
    #[error("a handle begins with a letter or a digit")]
    Start,
    /// A capital letter.
    #[error("a handle has small letters only, not `{0}`")]
    Capital(char),
    /// Something else that a handle does not hold.
    #[error("a handle holds only a-z, 0-9, `_`, `.` and `-`, not {0:?}")]
    Character(char),
}

impl Handle {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Handle {
    type Error = InvalidHandle;

    fn try_from(text: String) -> Result<Self, InvalidHandle> {
        if let Some(other) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '_' | '.' | '-')) {
            let capital = other.is_uppercase();
            return Err(if capital { InvalidHandle::Capital(other) } else { InvalidHandle::Character(other) });
        }
        // Only ASCII is left: bytes are characters.
        if text.is_empty() || text.len() > HANDLE_CHARS_MAX {
            return Err(InvalidHandle::Length);
        }
        if text.starts_with(['_', '.', '-']) {
            return Err(InvalidHandle::Start);
        }
        Ok(Self(text))
    }
}

impl FromStr for Handle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        Self::try_from(text.to_owned())
    }
}

impl From<Handle> for String {
    fn from(handle: Handle) -> Self {
        handle.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_handles() {
        for text in ["a", "0", "ada", "ada.l-0_x", "9-", &"z".repeat(32)] {
            assert_eq!(text.parse::<Handle>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", InvalidHandle::Length),
            (&*"z".repeat(33), InvalidHandle::Length),
            (".ada", InvalidHandle::Start),
            ("-", InvalidHandle::Start),
            ("Ada", InvalidHandle::Capital('A')),
            ("adÄ", InvalidHandle::Capital('Ä')),
            ("a b", InvalidHandle::Character(' ')),
            ("艾达", InvalidHandle::Character('艾')),
            ("a\0", InvalidHandle::Character('\0')),
        ] {
            assert_eq!(text.parse::<Handle>().unwrap_err(), reason, "{text:?}");
        }
    }

    #[test]
    fn json_cannot_make_a_handle_past_the_parser() {
        assert!(serde_json::from_str::<Handle>("\"Ada\"").is_err());
        assert_eq!(serde_json::to_string(&"ada".parse::<Handle>().unwrap()).unwrap(), "\"ada\"");
    }
}
