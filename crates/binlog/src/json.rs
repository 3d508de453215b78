//! MySQL's binary JSON, as text.

mod diff;
mod writer;

pub use diff::{JsonDiff, JsonDiffs, JsonOperation};

use crate::Error;

const PLACE: &str = "binary JSON";

/// A JSON document of MySQL, in its binary form until it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a> {
    bytes: &'a [u8],
}

impl<'a> Json<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes as they are stored: a type and a value.
    pub fn stored(&self) -> &'a [u8] {
        self.bytes
    }

    /// The document as MySQL itself writes it as text: a space after each comma and colon, members in
    /// the stored order, decimals as numbers, dates and times as strings, other types of SQL as
    /// `base64:typeN:...`.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] and [`Error::Truncated`] if the document is damaged, [`Error::TooLarge`]
    /// if it is nested too deeply or becomes longer than a real one can.
    pub fn to_text(&self) -> Result<String, Error> {
        let mut text = String::new();
        self.write(&mut text)?;
        Ok(text)
    }

    /// Appends the text to `out`, which has a part of it after an error.
    ///
    /// # Errors
    ///
    /// As [`Json::to_text`].
    pub fn write(&self, out: &mut String) -> Result<(), Error> {
        writer::write(self.bytes, out)
    }
}
